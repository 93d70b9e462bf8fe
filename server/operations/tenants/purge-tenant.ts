// The purge of a deleted tenant: a crypto-erase. One transaction marks it and removes its KEK; from
// the commit on nothing that was sealed for it opens with what the store holds. What is left is
// then cleared in small steps, each complete in itself and found again after a crash: keys become
// tombstones, records and credentials go. The erasure run that follows makes old pages, logs and
// backups worthless too. Tombstones of keys and of the tenant stay forever.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, inTenant, serviceActor } from '../../domain/actor.ts';
import type { AuditDetails } from '../../domain/audit-event.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { retainStoredKeys } from '../keys/forget-unstored-keys.ts';
import { findTenant, showTenant } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { contentsOf, planForTenant, stateAfter } from './change-tenant.ts';
import { clearingSteps, type PurgePorts } from './purge-steps.ts';
import type { TenantOperations } from './tenants-operations.ts';

type RetentionPorts = PurgePorts & Pick<Ports, 'deadlines'>;

/**
 * Continues where an earlier process ended: each step finds what is left. Then the tenant can
 * become unrecoverable.
 */
const clearPurged = async (ports: PurgePorts, actor: Actor, tenantId: string): Promise<void> => {
  const { store, clock, erasure } = ports;
  for (const step of Object.values(clearingSteps)) await step(ports, actor, tenantId);
  for (const table of store.read.purge.tables())
    while ((await store.write((tx) => tx.purge.remove(table, tenantId))) > 0);
  await store.write(async (tx) => {
    const tenant = await tx.tenants.stored(tenantId);
    if (tenant?.integrity === 'ok') {
      if (tenant.clearedAt !== null) return;
      await tx.tenants.update({ ...tenant, clearedAt: clock.now() });
    }
    // Its row may have been changed from outside: what was purged is cleared all the same, and once
    // its row is repaired, again.
    const { name } = await showTenant(tx, tenantId);
    await recordEvent(tx, 'tenant.cleared', actor, about('tenant', { id: tenantId, tenantId }), { name });
  });
  erasure.schedule();
};

/** The crypto-erase. */
const purgeIn = async (
  { ring, clock }: Pick<PurgePorts, 'ring' | 'clock'>,
  tx: Repositories,
  actor: Actor,
  id: string,
  isDue: (tenant: Tenant) => boolean,
): Promise<Tenant> => {
  const before = await findTenant(tx, id);
  const state = stateAfter(before, 'purge');
  if (!isDue(before))
    throw new ServiceError('conflict', 'the tenant is not due to be purged', {
      hint: 'run dke tenant show to see when it is',
    });
  const after: Tenant = { ...before, state, purgedAt: await destructionTime(tx, clock) };
  const contents = await contentsOf(tx, before);
  await tx.tenants.update(after);
  await ring.dropTenant(tx, id);
  await recordEvent(tx, 'tenant.purged', actor, about('tenant', { id, tenantId: id }), {
    name: after.name,
    ...contents,
  });
  return after;
};

/** What follows it, after the commit. */
const afterPurge = async (ports: PurgePorts, actor: Actor, id: string): Promise<void> => {
  const { directory } = ports;
  await retainStoredKeys(ports);
  await directory.renew({ tenants: [id] });
  await clearPurged(ports, actor, id);
  await directory.renew({ tenants: [id] });
};

export const purgeTenant = (
  ports: PurgePorts,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): TenantOperations['purge'] => {
  const governed = withApproval<{ readonly tenantId: string }, Tenant>('tenant.purge', {
    permission: 'tenants:purge',
    plan: (from, id) => planForTenant(from, id, 'purge'),
    carryOut: async (tx, actor, { tenantId: id }) => ({
      answer: await purgeIn(ports, tx, actor, id, () => true),
      afterCommit: () => afterPurge(ports, actor, id),
    }),
  });
  return (actor, id) => governed.run(inTenant(actor, id), { tenantId: id });
};

/**
 * Tenants that were purged and can still be read by who has an old copy of the database and of the
 * root key of then.
 */
export const listPurged = async (from: Pick<Repositories, 'tenants'>, before: number): Promise<readonly Tenant[]> =>
  (await from.tenants.list()).filter(
    ({ purgedAt, unrecoverableAt, integrity }) =>
      integrity === 'ok' && purgedAt !== null && purgedAt < before && unrecoverableAt === null,
  );

/**
 * The purged tenants that are cleared. The others still have rows: to call them unrecoverable would
 * not be true yet.
 */
export const listUnerased = async (from: Pick<Repositories, 'tenants'>, before: number): Promise<readonly Tenant[]> =>
  (await listPurged(from, before)).filter(({ clearedAt }) => clearedAt !== null);

/** After the erasure run, in its last transaction: the tenants that it made unreadable. */
export const markErased = async (
  tx: Repositories,
  actor: Actor,
  tenants: readonly Tenant[],
  {
    now,
    erasure,
    named,
  }: { readonly now: number; readonly erasure: string; readonly named: AuditDetails<'tenant.unrecoverable'> },
): Promise<void> => {
  for (const tenant of tenants) {
    await tx.tenants.update({ ...tenant, unrecoverableAt: now, integrity: 'ok' });
    await recordEvent(tx, 'tenant.unrecoverable', actor, about('tenant', { id: tenant.id, tenantId: tenant.id }), {
      name: tenant.name,
      purgedAt: tenant.purgedAt === null ? null : toRfc3339(tenant.purgedAt),
      unrecoverableAt: toRfc3339(now),
      erasure,
      ...named,
    });
  }
};

export interface TenantRetention {
  /**
   * Purges the deleted tenants whose retention is over, and clears what an earlier process left.
   */
  run(): Promise<void>;
}

export const createTenantRetention = (ports: RetentionPorts): TenantRetention => {
  const { store, clock, deadlines } = ports;
  /** Known to be cleared. */
  const cleared = new Set<string>();
  return {
    run: async () => {
      const actor = serviceActor(newId(clock.now()));
      const now = await deadlines.now();
      const isDue = ({ purgeAt }: Tenant): boolean => purgeAt !== null && purgeAt <= now;
      for (const tenant of await store.read.tenants.list())
        if (tenant.state === 'deleted' && tenant.integrity === 'ok' && isDue(tenant)) {
          // Its deletion was under the rules of its vaults (change-tenant.ts), and this is what was
          // agreed to.
          await store.write((tx) => purgeIn(ports, tx, actor, tenant.id, isDue));
          await afterPurge(ports, actor, tenant.id);
          cleared.add(tenant.id);
        } else if (tenant.state === 'purged' && !cleared.has(tenant.id)) {
          if (tenant.clearedAt === null) await clearPurged(ports, actor, tenant.id);
          cleared.add(tenant.id);
        }
    },
  };
};
