// Handlers of files that left the service.

import { toRfc3339 } from '../../../base/time.ts';
import type { Copy } from '../../../contract/api/copies-routes.ts';
import type { OutsideCopy } from '../../../domain/copies.ts';
import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const representCopy = (copy: OutsideCopy): Copy => ({
  id: copy.id,
  kind: copy.kind,
  tenantId: copy.tenantId,
  snapshotId: copy.snapshotId,
  at: toRfc3339(copy.at),
  actorId: copy.actorId,
  actorName: copy.actorName,
  stateAt: copy.stateFrom === 0 ? null : toRfc3339(copy.stateFrom),
  rootEpoch: copy.rootEpoch,
  destroyedAt: copy.destroyedAt === null ? null : toRfc3339(copy.destroyedAt),
  tampered: copy.integrity !== 'ok',
});

export const copiesHandlers = ({ copies }: Operations): Handlers['copies'] => ({
  list: async ({ actor, query }) => representPage(await copies.list(actor, query), representCopy),
  get: async ({ actor, path }) => representCopy(await copies.get(actor, path.id)),
  confirmDestroyed: async ({ actor, path, body }) => ({
    items: (await copies.confirmDestroyed(actor, path.id, body.andOlder === true)).map(representCopy),
  }),
});
