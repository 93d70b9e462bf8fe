// The inbox as people use it.

import { ServiceError } from '../../base/errors.ts';
import { serviceTenantId } from '../../base/ids.ts';
import { type Notification, notificationRow, textOf } from '../../domain/notification.ts';
import type { Page } from '../../domain/page.ts';
import type { Ports } from '../../ports/ports.ts';
import type { InboxItem, NotificationOperations } from '../index.ts';
import { byId, pageOf } from '../paging.ts';
import type { NotificationDelivery } from './deliver.ts';

const harmCursor = ({ harmAt, id }: Notification): string => `${harmAt}.${id}`;

const tell = (one: Notification): InboxItem => ({ ...one, text: textOf(one), cure: notificationRow(one.kind).cure });
const tellPage = ({ items, next }: Page<Notification>): Page<InboxItem> => ({ items: items.map(tell), next });

export const inbox = (
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  delivery: NotificationDelivery,
): NotificationOperations => ({
  list: async ({ reach }, { state = 'open', ...query }) => {
    if (state === 'resolved')
      return tellPage(
        await pageOf(query, (window) => store.read.notifications.listResolved(reach, query, window), byId),
      );
    if (query.after !== undefined && !/^\d{1,16}\..{1,64}$/.test(query.after))
      throw new ServiceError('validation', 'after is not a cursor of this list');
    return tellPage(
      await pageOf(query, (window) => store.read.notifications.listOpen(reach, query, window), harmCursor),
    );
  },
  acknowledge: (actor, id) =>
    store.write(async (tx) => {
      const before = await tx.notifications.get(actor.reach, id);
      if (before === undefined) throw new ServiceError('not-found', 'no such notification');
      if (before.acknowledgedAt !== null || before.resolvedAt !== null) return tell(before);
      const after: Notification = { ...before, acknowledgedAt: clock.now(), acknowledgedBy: actor.name };
      await tx.notifications.update(after);
      await tx.audit.append({
        kind: 'notification.acknowledged',
        actor,
        tenantId: after.tenantId,
        subject: { kind: 'notification', id },
        details: { notification: after.kind, name: after.subject.name, severity: after.severity },
      });
      return tell(after);
    }),
  targets: () => delivery.state(),
  test: async (actor) => {
    const results = await delivery.test();
    await store.write((tx) =>
      tx.audit.append({
        kind: 'notification.tested',
        actor,
        tenantId: serviceTenantId,
        subject: { kind: 'service', id: 'service' },
        details: {
          targets: results.map(({ name }) => name),
          failed: results.filter(({ failure }) => failure !== null).map(({ name }) => name),
        },
      }),
    );
    return results;
  },
});
