// Ends an access_guid. The last live one is kept: an application without any is a disabled
// application, and says so.

import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import { showApplication } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ApplicationOperations } from './applications-operations.ts';

export const removeAccessGuid =
  ({
    store,
    directory,
    clock,
  }: Pick<Ports, 'store' | 'directory' | 'clock'>): ApplicationOperations['removeAccessGuid'] =>
  async (actor, id, accessGuidId) => {
    const removed = await store.write(async (tx) => {
      const application = await showApplication(tx, actor.tenantId, id);
      const all = await tx.accessGuids.list(id);
      const found = all.find((accessGuid) => accessGuid.id === accessGuidId);
      if (found === undefined) throw new ServiceError('not-found', 'access_guid not found');
      const { hash: _hash, ...before } = found;
      if (found.removedAt !== null) return before;
      const live = all.filter(({ removedAt, integrity }) => removedAt === null && integrity === 'ok');
      if (live.every((each) => each.id === found.id))
        throw new ServiceError('conflict', 'this is the last valid access_guid', {
          hint: 'first run dke tde app rotate-guid, or disable the application',
        });
      const removedAt = clock.now();
      await tx.accessGuids.update({ ...found, removedAt });
      await recordEvent(tx, 'access-guid.removed', actor, about('application', application), { accessGuidId });
      return { ...before, removedAt };
    });
    await directory.renew({ applications: [id] });
    return removed;
  };
