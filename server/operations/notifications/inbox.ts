// The inbox as people use it.

import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { type Notification, notificationRow, placeOf, textOf } from '../../domain/notification.ts';
import type { Page } from '../../domain/page.ts';
import type { Ports } from '../../ports/ports.ts';
import { actsByRecovered } from '../access/recovered-tokens.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { about, aboutService, recordEvent } from '../shared/record-event.ts';
import type { NotificationDelivery } from './deliver.ts';
import type { InboxItem, NotificationOperations } from './notifications-operations.ts';

const released = { acknowledgedAt: null, acknowledgedBy: null } as const;
const harmCursor = ({ harmAt, id }: Notification): string => `${harmAt}.${id}`;

const tell = (one: Notification): InboxItem => {
  const { fix, action } = notificationRow(one.kind);
  return { ...one, text: textOf(one), fix, action, page: placeOf(one) };
};
const tellPage = ({ items, next }: Page<Notification>): Page<InboxItem> => ({ items: items.map(tell), next });

export const inbox = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  delivery: NotificationDelivery,
): NotificationOperations => {
  /** `takes`: a person takes care of it; otherwise that ends. */
  const change =
    (takes: boolean) =>
    (actor: TenantActor, id: string): Promise<InboxItem> =>
      store.write(async (tx) => {
        const before = await tx.notifications.get(actor.reach, id);
        if (before === undefined) throw new ServiceError('not-found', 'notification not found');
        if ((before.acknowledgedAt !== null) === takes || before.resolvedAt !== null) return tell(before);
        // Who has its value would end the alert about it, and stay unnoticed.
        if (
          takes &&
          before.kind === 'administrator.recovered' &&
          (await actsByRecovered(tx, before.subject.id, actor.id))
        )
          throw new ServiceError('forbidden', 'you act by the token that this notification is about', {
            hint: 'it must be acknowledged by a user or a token that this token has not created, changed or invited',
          });
        const by = takes ? { acknowledgedAt: clock.now(), acknowledgedBy: actor.name } : released;
        const after: Notification = { ...before, ...by };
        await tx.notifications.update(after);
        await recordEvent(
          tx,
          takes ? 'notification.acknowledged' : 'notification.released',
          actor,
          about('notification', after),
          { notification: after.kind, name: after.subject.name, severity: after.severity },
        );
        return tell(after);
      });

  return {
    list: async ({ reach }, { state = 'open', ...query }) => {
      if (state === 'resolved')
        return tellPage(
          await pageOf(query, (window) => store.read.notifications.listResolved(reach, query, window), byId),
        );
      if (query.after !== undefined && !/^\d{1,16}\..{1,64}$/.test(query.after))
        throw new ServiceError('validation', 'after must be the next of a previous page');
      return tellPage(
        await pageOf(query, (window) => store.read.notifications.listOpen(reach, query, window), harmCursor),
      );
    },
    acknowledge: change(true),
    release: change(false),
    targets: () => delivery.state(),
    test: async (actor) => {
      const results = await delivery.test();
      await store.write((tx) =>
        recordEvent(tx, 'notification.tested', actor, aboutService(), {
          targets: results.map(({ name }) => name),
          failed: results.filter(({ failure }) => failure !== null).map(({ name }) => name),
        }),
      );
      return results;
    },
  };
};
