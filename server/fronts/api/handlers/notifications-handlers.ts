// Handlers of notifications.

import { toRfc3339 } from '../../../base/time.ts';
import type { Notification } from '../../../contract/api/notifications-routes.ts';
import type { InboxItem, Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

const moment = (at: number | null): string | null => (at === null ? null : toRfc3339(at));

const represent = ({ harmAt, raisedAt, resolvedAt, acknowledgedAt, ...rest }: InboxItem): Notification => ({
  ...rest,
  harmAt: toRfc3339(harmAt),
  raisedAt: toRfc3339(raisedAt),
  resolvedAt: moment(resolvedAt),
  acknowledgedAt: moment(acknowledgedAt),
});

export const notificationsHandlers = ({ notifications }: Operations): Handlers['notifications'] => ({
  list: async ({ actor, query }) => representPage(await notifications.list(actor, query), represent),
  acknowledge: async ({ actor, path }) => represent(await notifications.acknowledge(actor, path.id)),
  release: async ({ actor, path }) => represent(await notifications.release(actor, path.id)),
  targets: async () => ({
    items: (await notifications.targets()).map(({ deliveredAt, failure, ...rest }) => ({
      ...rest,
      deliveredAt: moment(deliveredAt),
      failure: failure === null ? null : { ...failure, since: toRfc3339(failure.since) },
    })),
  }),
  test: async ({ actor }) => ({ items: await notifications.test(actor) }),
});
