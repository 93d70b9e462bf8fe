// Where audit records are forwarded to. Sinks come from the configuration file alone, never from the API: who may use the console
// may not choose which file the service writes.

import type { AuditEvent } from '../domain/audit-event.ts';

export type AuditItem =
  | { readonly kind: 'record'; readonly sequence: number; readonly event: AuditEvent; readonly text: string }
  /** Stands behind the record that it ends with. */
  | { readonly kind: 'checkpoint'; readonly sequence: number; readonly at: number; readonly text: string };

export interface AuditSink {
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
  send(items: readonly AuditItem[], log: string): Promise<void>;
  close(): Promise<void>;
}

/** What a sink still has, read before anything is sent to it. */
export interface AuditSinkSource extends Pick<AuditSink, 'name' | 'type' | 'target'> {
  /** Lines of an export of this log, from the first record behind `after` on; absent: the sink only takes. */
  readonly read: ((log: string, after: number) => AsyncIterable<string>) | undefined;
}

export interface AuditSinkState {
  readonly name: string;
  readonly type: AuditSink['type'];
  readonly target: string;
  /** The last record that it has. */
  readonly forwarded: number;
  /** Records that it does not have yet. */
  readonly lag: number;
  readonly deliveredAt: number | null;
  /** Null: the last attempt went well. */
  readonly failure: { readonly since: number; readonly message: string } | null;
}
