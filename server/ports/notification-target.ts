// Where notifications are sent, in addition to the inbox. Targets are set only in the configuration
// file: users of the console cannot choose which hosts the service calls.

import type { AuditSeverity } from '../domain/audit-event.ts';
import type { Notification } from '../domain/notification.ts';

export interface NotificationMessage {
  /** Id of the event: every attempt has this id, so that a receiver recognizes a repeat. */
  readonly id: string;
  readonly event: 'raised' | 'worse' | 'resolved' | 'test';
  readonly at: number;
  readonly text: string;
  readonly fix: string;
  /** Null in a test. */
  readonly notification: Notification | null;
}

export interface NotificationTarget {
  readonly name: string;
  readonly type: 'webhook' | 'email';
  /** For people: host and path, or addresses. */
  readonly target: string;
  readonly minSeverity: AuditSeverity;
  /**
   * Resolves when the target has accepted it; rejects when that is not certain. One call at a time.
   */
  send(message: NotificationMessage): Promise<void>;
  close(): Promise<void>;
}

export interface NotificationTargetState {
  readonly name: string;
  readonly type: NotificationTarget['type'];
  readonly target: string;
  /** What it does not have yet. */
  readonly waiting: number;
  readonly deliveredAt: number | null;
  readonly failure: { readonly since: number; readonly message: string } | null;
}
