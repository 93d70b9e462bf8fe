// One snapshot, in one of the states in which something can be done with it, with its file.

import { ServiceError } from '../../base/service-error.ts';
import type { Snapshot, SnapshotState } from '../../domain/snapshot.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { SnapshotArchive } from '../../ports/snapshot-archive.ts';
import type { Repositories } from '../../ports/store.ts';

const hints: { readonly [S in SnapshotState]?: string } = {
  deleted: 'run dke snapshot undelete before it is purged',
  missing: 'its file was removed outside of DKE: restore it from another copy with dke snapshot import',
  creating: 'wait until it is complete',
};

export const findSnapshot = async (
  from: Pick<Repositories, 'snapshots'>,
  id: string,
  states?: readonly SnapshotState[],
  /** The reach of the caller: a snapshot of another tenant is 'not-found'. */
  reach: TenantScope = everyTenant,
): Promise<Snapshot> => {
  const found = await from.snapshots.get(id);
  if (found === undefined || (reach !== everyTenant && found.tenantId !== reach))
    throw new ServiceError('not-found', 'snapshot not found');
  if (states !== undefined && !states.includes(found.state)) {
    const hint = hints[found.state];
    throw new ServiceError('conflict', `the snapshot is ${found.state}`, hint === undefined ? {} : { hint });
  }
  if (found.integrity !== 'ok')
    throw new ServiceError('key-tampered', "the snapshot's record was changed from outside", {
      hint: 'import its file again, with the verifier key of its signer',
    });
  return found;
};

/** In the audit log. */
export const subjectOf = (id: string) => ({ kind: 'snapshot', id }) as const;

export const requireFile = async (archive: Pick<SnapshotArchive, 'has'>, id: string): Promise<void> => {
  if (await archive.has(id)) return;
  throw new ServiceError('conflict', 'the file of the snapshot is missing', {
    hint: 'restore it from a copy with dke snapshot import, or create another snapshot',
  });
};
