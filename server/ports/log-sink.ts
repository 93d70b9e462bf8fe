// Where the audit log and the request log are forwarded to. Sinks come only from the configuration file, never from the API: who may use the
// console may not choose which file the service writes.

import type { AuditEvent } from '../domain/audit-event.ts';
import type { XksRequestRecord } from './xks-directory.ts';

export type LogItem =
  | { readonly kind: 'record'; readonly sequence: number; readonly event: AuditEvent; readonly text: string }
  /** Stands behind the record that it ends with. */
  | { readonly kind: 'checkpoint'; readonly sequence: number; readonly at: number; readonly text: string }
  | { readonly kind: 'request'; readonly sequence: number; readonly request: XksRequestRecord; readonly text: string };

export const forwardedLogs = ['audit', 'requests'] as const;
export type ForwardedLog = (typeof forwardedLogs)[number];

export interface LogSink {
  readonly name: string;
  readonly type: 'file' | 'syslog' | 'https';
  /** For people: path, or host and port. */
  readonly target: string;
  /** A log that continues under another name is sent from its first record, so that what the sink has of it can be verified. */
  readonly wholeLogs: boolean;
  /**
   * `log` is the name of the log that they are from. Resolves when the sink has them all; rejects when it is not certain, and the same ones
   * come again. In order, one call at a time.
   */
  send(items: readonly LogItem[], log: string): Promise<void>;
  close(): Promise<void>;
}

/** What a sink takes. */
export interface Forwarded {
  readonly sink: LogSink;
  readonly log: ForwardedLog;
  /** Of the request log: only requests of these endpoints, by their ids. Empty: all requests. */
  readonly endpoints: readonly string[];
}

/** What a sink still has of the audit log, read before anything is sent to it. */
export interface AuditSinkSource extends Pick<LogSink, 'name' | 'type' | 'target'> {
  /** Lines of an export of this log, from the first record behind `after` on; absent: the sink only takes. */
  readonly read: ((log: string, after: number) => AsyncIterable<string>) | undefined;
}

export interface LogSinkState {
  readonly name: string;
  readonly type: LogSink['type'];
  readonly target: string;
  readonly log: ForwardedLog;
  readonly endpoints: readonly string[];
  /** The last record that it has. */
  readonly forwarded: number;
  /** Records that it does not have yet. */
  readonly lag: number;
  /** Records that it never gets: it refuses them, or retention removed them from the request log before the sink took them. */
  readonly lost: number;
  readonly lostAt: number | null;
  readonly deliveredAt: number | null;
  /** Null: the last attempt went well. */
  readonly failure: { readonly since: number; readonly message: string } | null;
}
