// Makes an access_guid for an application, inside a transaction that the caller has open. The value
// leaves once.

import { newId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredAccessGuid } from '../../ports/tde-repositories.ts';
import { makeBearer } from '../access/bearer.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { IssuedAccessGuid } from './applications-operations.ts';

export const issueAccessGuid = async (
  { core, ring, clock, identity }: Pick<Ports, 'core' | 'ring' | 'clock' | 'identity'>,
  tx: Repositories,
  actor: Actor,
  application: TdeApplication,
): Promise<IssuedAccessGuid> => {
  const accessGuid = makeBearer(core, 'access-guid');
  const now = clock.now();
  const stored: StoredAccessGuid = {
    id: newId(now),
    applicationId: application.id,
    hash: ring.hashToken('access-guid', accessGuid),
    createdAt: now,
    removedAt: null,
    lastUsedAt: null,
    integrity: 'ok',
  };
  await tx.accessGuids.insert(stored);
  await recordEvent(tx, 'access-guid.added', actor, about('application', application), { accessGuidId: stored.id });
  const { hash: _hash, ...record } = stored;
  return {
    record,
    accessGuid,
    serverUrl: `${identity.publicUrl()}/tde/v1/${accessGuid}/${application.appId}`,
    authority: identity.authority(),
  };
};
