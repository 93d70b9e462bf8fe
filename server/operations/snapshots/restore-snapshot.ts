// Restores a snapshot: one unit of work, so that nobody sees half of it. A dry run does all of it and takes it back: what it says is what
// would happen.

import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Actor } from '../../domain/actor.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { checkTenantName, createTenantIn, newTenant as makeTenant } from '../create-tenant.ts';
import { findTenant } from '../find.ts';
import { findSnapshot } from './find-snapshot.ts';
import { type RestoreOutcome, type RestoreTarget, restoreRows } from './restore-rows.ts';
import { trustedFor } from './verify-snapshot.ts';

type RestorePorts = Pick<
  Ports,
  'store' | 'ring' | 'core' | 'archive' | 'directory' | 'erasure' | 'exclusion' | 'clock' | 'usage' | 'log'
>;

export interface RestoreRequest {
  /** An existing tenant; null: the one that the snapshot is of. */
  readonly tenantId: string | null;
  /** A new tenant of this name. */
  readonly newTenant: string | null;
  readonly dryRun: boolean;
}

/** Takes a unit of work back, with what it found. */
class TakenBack extends Error {
  override readonly name = 'TakenBack';
  readonly outcome: RestoreOutcome;
  constructor(outcome: RestoreOutcome) {
    super('taken back');
    this.outcome = outcome;
  }
}

const mostNamed = 100;

const chooseTarget = async (
  { ring, clock }: Pick<Ports, 'ring' | 'clock'>,
  tx: Repositories,
  actor: Actor,
  fromTenantId: string,
  { tenantId, newTenant }: RestoreRequest,
): Promise<RestoreTarget> => {
  if (newTenant !== null) {
    const now = clock.now();
    // Its own id, where nobody has it: what names the tenant elsewhere goes on being right.
    const id = (await tx.tenants.get(fromTenantId)) === undefined ? fromTenantId : newId(now);
    await createTenantIn({ ring }, tx, actor, { ...makeTenant(checkTenantName(newTenant), now), id });
    return { tenantId: id, newTenant: true, fromTenantId };
  }
  const id = tenantId ?? fromTenantId;
  if (tenantId === null && (await tx.tenants.get(id)) === undefined)
    throw new ServiceError('conflict', 'the tenant of the snapshot is not here', {
      hint: 'name an empty tenant to restore into, or a name for a new one',
    });
  const { state } = await findTenant(tx, id);
  if (state !== 'active' && state !== 'suspended')
    throw new ServiceError('conflict', `the tenant is ${state}`, {
      hint: 'restore the tenant first, or name a new one to restore into',
    });
  if (
    id !== fromTenantId &&
    (await tx.tenantRows.count('keys', id)) + (await tx.tenantRows.count('tde_groups', id)) > 0
  )
    throw new ServiceError('conflict', 'the tenant has keys or groups of its own', {
      hint: 'restore into the tenant that the snapshot is of, an empty one, or a new one',
    });
  return { tenantId: id, newTenant: false, fromTenantId };
};

export const restoreSnapshot =
  (ports: RestorePorts) =>
  /** `key`: the snapshot's own; it is released here. */
  async (actor: Actor, id: string, key: KeyRef, request: RestoreRequest): Promise<RestoreOutcome> => {
    const { store, ring, core, archive, erasure, exclusion, usage, log } = ports;
    try {
      const snapshot = await findSnapshot(store.read, id, ['held']);
      const trusted = trustedFor(ring, snapshot);
      await usage.flush(false);
      const outcome = await exclusion
        .run(() =>
          store.write(async (tx) => {
            const target = await chooseTarget(ports, tx, actor, snapshot.tenantId, request);
            const found = await restoreRows(ports, tx, archive.items(id, key, trusted), target);
            if (request.dryRun) throw new TakenBack(found);
            const sum = (of: 'made' | 'changed' | 'unchanged'): number =>
              Object.values(found.counts).reduce((total, each) => total + each[of], 0);
            await tx.audit.append({
              kind: 'snapshot.restored',
              actor,
              tenantId: found.tenantId,
              subject: { kind: 'snapshot', id },
              details: {
                tenantId: found.tenantId,
                newTenant: found.newTenant,
                newIds: found.newIds,
                made: sum('made'),
                changed: sum('changed'),
                unchanged: sum('unchanged'),
                stayDestroyed: found.stayDestroyed
                  .slice(0, mostNamed)
                  .map(({ id: keyId, name }) => ({ id: keyId, name })),
                revived: found.revived.slice(0, mostNamed).map((each) => ({ ...each })),
              },
            });
            return found;
          }),
        )
        .catch((error: unknown) => {
          if (error instanceof TakenBack) return error.outcome;
          throw error;
        })
        // A tenant's key that was not committed is taken out of memory.
        .finally(() => ring.retainStored(store.read));
      if (!request.dryRun) {
        await renewTenant(ports, outcome.tenantId);
        erasure.schedule();
        log.warn('a snapshot was restored', { snapshotId: id, tenantId: outcome.tenantId });
      }
      return outcome;
    } finally {
      core.release(key);
    }
  };

/** Shows the service's memory the tenant anew: nothing in it is of before the restore. */
const renewTenant = async (
  { store, directory }: Pick<Ports, 'store' | 'directory'>,
  tenantId: string,
): Promise<void> => {
  const idsOf = async (
    list: (window: { after?: string; limit: number }) => Promise<readonly { readonly id: string }[]>,
  ): Promise<readonly string[]> => {
    const ids: string[] = [];
    for (;;) {
      const after = ids.at(-1);
      const page = await list(after === undefined ? { limit: largestPageSize } : { after, limit: largestPageSize });
      ids.push(...page.map(({ id }) => id));
      if (page.length < largestPageSize) return ids;
    }
  };
  const known = directory.endpoints().filter((endpoint) => endpoint.tenantId === tenantId);
  const endpoints = new Set([
    ...known.map(({ id }) => id),
    ...(await idsOf((window) => store.read.endpoints.list(tenantId, window))),
  ]);
  const keys = new Set(known.map(({ keyId }) => keyId));
  for (const id of endpoints) {
    const endpoint = await store.read.endpoints.get(tenantId, id);
    if (endpoint !== undefined) keys.add(endpoint.keyId);
  }
  // With a vault every object goes out of memory.
  await directory.renew({
    tenants: [tenantId],
    vaults: await idsOf((window) => store.read.vaults.list(tenantId, window)),
    applications: await idsOf((window) => store.read.applications.list(tenantId, {}, window)),
    endpoints: [...endpoints],
    keys: [...keys],
  });
};
