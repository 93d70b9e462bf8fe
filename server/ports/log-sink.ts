// Where the audit log and the request log are forwarded to. Sinks come only from the configuration
// file, never from the API: who may use the console may not choose which file the service writes.

import type { AuditEvent } from '../domain/audit-event.ts';
import type { XksRequestRecord } from './xks-directory.ts';

export type LogItem =
  | { readonly kind: 'record'; readonly sequence: number; readonly event: AuditEvent; readonly text: string }
  /** Stands behind the record that it ends with. */
  | { readonly kind: 'checkpoint'; readonly sequence: number; readonly at: number; readonly text: string }
  | { readonly kind: 'request'; readonly sequence: number; readonly request: XksRequestRecord; readonly text: string };

export const forwardedLogs = ['audit', 'requests'] as const;
export type ForwardedLog = (typeof forwardedLogs)[number];

/** A record by its number and the hash of its text (base/merkle-tree.ts), in hex. */
export interface KnownRecord {
  readonly sequence: number;
  readonly hash: string;
}
/**
 * The sink has another record under this number of the same log: the log went back to an older
 * state and continued, or a copy of it writes to the same sink. `hash`: of the record that the sink
 * has last.
 */
export type LogFork = KnownRecord;

export interface LogSink {
  readonly name: string;
  readonly type: 'file' | 'syslog' | 'https';
  /** For people: path, or host and port. */
  readonly target: string;
  /**
   * A log that continues under another name is sent from its first record, so that what the sink
   * has of it can be verified.
   */
  readonly wholeLogs: boolean;
  /**
   * `log` is the name of the log that they are from. Resolves when the sink has them all; rejects
   * when it is not certain, and the same ones come again. In order, one call at a time. `before`:
   * the record before the first item, where it is known. A number proves nothing: a sink that can
   * read what it has compares the records, and answers the fork, with nothing written.
   */
  send(items: readonly LogItem[], log: string, before?: KnownRecord): Promise<LogFork | undefined>;
  /**
   * Keeps what it has of the log under a name of its own, and takes the log from its first record.
   * Answers where that is now.
   */
  setAside?: (log: string, fork: LogFork) => Promise<string>;
  close(): Promise<void>;
}

/** What a sink takes. */
export interface Forwarded {
  readonly sink: LogSink;
  readonly log: ForwardedLog;
  /** Ids of the endpoints whose requests are sent from the request log. Empty: all requests. */
  readonly endpoints: readonly string[];
}

/** What a sink still has of the audit log, read before anything is sent to it. */
export interface AuditSinkSource extends Pick<LogSink, 'name' | 'type' | 'target'> {
  /**
   * Lines of an export of this log, from the first record behind `after` on; absent: the sink only
   * takes.
   */
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
  /**
   * Records that it never gets: it refuses them, or retention removed them from the request log
   * before the sink took them.
   */
  readonly lost: number;
  readonly lostAt: number | null;
  /** Another history of the same log was found at the sink: the record that differs, and when. */
  readonly fork: { readonly record: number; readonly at: number } | null;
  readonly deliveredAt: number | null;
  /** Null: the last attempt went well. */
  readonly failure: { readonly since: number; readonly message: string } | null;
}
