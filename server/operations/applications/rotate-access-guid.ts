// Issues a second access_guid. Both hold until the old one is removed, so that instances can be
// moved one by one.

import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication } from '../shared/find.ts';
import type { ApplicationOperations } from './applications-operations.ts';
import { issueAccessGuid } from './issue-access-guid.ts';

const mostLive = 2;

export const rotateAccessGuid =
  (
    ports: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock' | 'identity'>,
  ): ApplicationOperations['rotateAccessGuid'] =>
  async (actor, id) => {
    const { store, directory } = ports;
    const issued = await store.write(async (tx) => {
      const application = await findApplication(tx, actor.tenantId, id);
      const live = (await tx.accessGuids.list(id)).filter((accessGuid) => accessGuid.removedAt === null);
      if (live.length >= mostLive)
        throw new ServiceError('conflict', 'the application already has two valid access_guids', {
          hint: 'remove the old one first',
        });
      return issueAccessGuid(ports, tx, actor, application);
    });
    await directory.renew({ applications: [id] });
    return issued;
  };
