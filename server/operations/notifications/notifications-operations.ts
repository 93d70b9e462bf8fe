// What can be done with notifications.

import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { Notification, NotificationFilter } from '../../domain/notification.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { NotificationTargetState } from '../../ports/notification-target.ts';

/** A notification with its texts. */
export interface InboxItem extends Notification {
  readonly text: string;
  readonly fix: string;
  /** What to do in a few words, and the page of the console that it begins on. */
  readonly action: string;
  readonly page: string;
}

export interface NotificationOperations {
  /** Open ones by the time of their harm, resolved ones newest first. */
  list(
    actor: TenantActor,
    query: PageRequest & NotificationFilter & { readonly state?: 'open' | 'resolved' | undefined },
  ): Promise<Page<InboxItem>>;
  /** The actor takes responsibility. An acknowledged or resolved notification stays as it is. */
  acknowledge(actor: TenantActor, id: string): Promise<InboxItem>;
  /** Gives the responsibility back. */
  release(actor: TenantActor, id: string): Promise<InboxItem>;
  targets(): Promise<readonly NotificationTargetState[]>;
  /** Sends a test to every target; null: it took it. */
  test(actor: Actor): Promise<readonly { readonly name: string; readonly failure: string | null }[]>;
}
