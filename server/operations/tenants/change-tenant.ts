// The life of a tenant after it was made: rename, suspend, resume, delete, restore. What is in it
// is not touched: the directory asks the tenant's state with every request, so one row stops it all
// and one row brings it all back, open sessions too. Leaves out the purge: purge-tenant.ts.

import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Actor, inTenant, type TenantActor } from '../../domain/actor.ts';
import type { AuditValue } from '../../domain/audit-event.ts';
import { nextTenantState, type Tenant, type TenantEvent } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, TenantContents } from '../../ports/store.ts';
import type { Approvals, Plan } from '../approvals/governed-operation.ts';
import { copiesOfTenant } from '../copies/copies-of.ts';
import { defaultTenantSetting, findTenant, vaultsOf } from '../shared/find.ts';
import { byId, each } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { checkTenantName } from './create-tenant.ts';
import type { TenantOperations } from './tenants-operations.ts';

const kinds = {
  rename: 'tenant.renamed',
  suspend: 'tenant.suspended',
  resume: 'tenant.resumed',
  delete: 'tenant.deleted',
  restore: 'tenant.restored',
} as const satisfies Partial<Record<TenantEvent, string>>;
type ChangeEvent = keyof typeof kinds;

export interface TenantRules {
  /** How long a deleted tenant can be restored. */
  readonly retentionMs: number;
}

/**
 * 'conflict' where the state of the tenant refuses the event; 'key-tampered' where its row is not
 * what the service wrote.
 */
export const stateAfter = (tenant: Tenant, event: TenantEvent): Tenant['state'] => {
  if (tenant.integrity !== 'ok')
    throw new ServiceError('key-tampered', 'the stored tenant was changed from outside', {
      hint: 'compare the database with a backup; the audit log has an alarm that names the record',
    });
  const next = nextTenantState(tenant, event);
  if (next === null)
    throw new ServiceError('conflict', `the tenant is ${tenant.state}`, {
      ...(tenant.state === 'deleted' ? { hint: 'restore it first' } : {}),
    });
  return next;
};

/** The tenant after the event; pure. `name` is what it is renamed to. */
const changed = (
  before: Tenant,
  event: ChangeEvent,
  now: number,
  { retentionMs }: TenantRules,
  name: string | undefined,
): Tenant => {
  const state = stateAfter(before, event);
  if (event === 'rename') return { ...before, name: name ?? before.name };
  if (state === before.state) return before;
  switch (event) {
    case 'suspend':
      return { ...before, state, suspendedAt: now };
    case 'resume':
      return { ...before, state, suspendedAt: null };
    case 'delete':
      return { ...before, state, deletedAt: now, purgeAt: now + retentionMs };
    case 'restore':
      if (before.purgeAt !== null && now >= before.purgeAt)
        throw new ServiceError('conflict', 'the retention of the deleted tenant has ended: it is being purged');
      return { ...before, state, deletedAt: null, purgeAt: null };
  }
};

const refuseDefault = async (from: Pick<Repositories, 'decisions'>, id: string): Promise<void> => {
  if ((await from.decisions.get(defaultTenantSetting)) === id)
    throw new ServiceError('conflict', 'the default tenant cannot be deleted', {
      hint: 'requests that name no tenant use it; suspend it instead',
    });
};

/** What ends the keys of a tenant is under the rules of all its vaults. */
export const planForTenant = async (
  from: Repositories,
  id: string,
  event: Extract<TenantEvent, 'delete' | 'purge'>,
): Promise<Plan> => {
  const tenant = await findTenant(from, id);
  const isSo = stateAfter(tenant, event) === tenant.state;
  if (event === 'delete') await refuseDefault(from, id);
  // Numbers of keys and users do not show that some were replaced: the newest ones do.
  const [newest] = await from.keys.list(id, {}, { limit: 1 });
  const users: string[] = [];
  for await (const user of each((window) => from.users.list(id, window), byId)) users.push(user.id);
  const newestUser = users.at(-1) ?? null;
  const { tokens, copies, ...bound } = await contentsOf(from, tenant);
  return {
    tenantId: id,
    subject: { kind: 'tenant', id, name: tenant.name },
    vaults: isSo ? [] : await vaultsOf(from, id),
    impact: { ...bound, users: users.length },
    // Tokens expire, and backups are made every night.
    marks: { tokens, copies },
    state: {
      name: tenant.name,
      state: tenant.state,
      deletedAt: tenant.deletedAt,
      newestKey: newest?.id ?? null,
      newestUser,
    },
  };
};

/** What is in a tenant, and how many files that left the service have keys of it. */
export const contentsOf = async (
  from: Pick<Repositories, 'tenants' | 'outsideCopies' | 'audit'>,
  tenant: Tenant,
): Promise<{ readonly [K in keyof TenantContents]: number }> => ({
  ...(await from.tenants.contents(tenant.id)),
  copies: await copiesOfTenant(from, tenant),
});

const detailsOf = async (
  tx: Repositories,
  event: ChangeEvent,
  before: Tenant,
  after: Tenant,
): Promise<Readonly<Record<string, AuditValue>>> => {
  if (event === 'rename') return { name: after.name, from: before.name };
  const contents = event === 'suspend' || event === 'delete' ? await contentsOf(tx, before) : {};
  return {
    name: after.name,
    ...(event === 'restore' ? { state: after.state } : {}),
    ...(event === 'delete' && after.purgeAt !== null ? { purgeAt: toRfc3339(after.purgeAt) } : {}),
    ...contents,
  };
};

/**
 * The step within a transaction; the caller renews the directory after it. What is already so stays
 * so, without a record.
 */
export const changeTenantIn = async (
  tx: Repositories,
  actor: Actor,
  id: string,
  event: ChangeEvent,
  { now, rules, name }: { readonly now: number; readonly rules: TenantRules; readonly name?: string },
): Promise<Tenant> => {
  const before = await findTenant(tx, id);
  const after = changed(before, event, now, rules, name);
  if (after.state === before.state && after.name === before.name) return before;
  if (event === 'delete') await refuseDefault(tx, id);
  if (event === 'rename' && (await tx.tenants.findByName(after.name)) !== undefined)
    throw new ServiceError('conflict', 'a tenant with this name already exists', {
      hint: 'choose another name: dke tenant list shows all tenants, including deleted ones',
    });
  await tx.tenants.update(after);
  await recordEvent(
    tx,
    kinds[event],
    actor,
    about('tenant', { id, tenantId: id }),
    await detailsOf(tx, event, before, after),
  );
  return after;
};

export const changeTenant = (
  { store, directory, deadlines }: Pick<Ports, 'store' | 'directory' | 'deadlines'>,
  rules: TenantRules,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<TenantOperations, ChangeEvent | 'impact'> => {
  const change = async (actor: TenantActor, id: string, event: ChangeEvent, name?: string): Promise<Tenant> => {
    // While it is in doubt whether its time has passed, a tenant can be restored.
    const now = event === 'restore' ? await deadlines.now() : await deadlines.latest();
    const tenant = await store.write((tx) =>
      changeTenantIn(tx, actor, id, event, { now, rules, ...(name === undefined ? {} : { name }) }),
    );
    await directory.renew({ tenants: [id] });
    return tenant;
  };
  // A deleted tenant is purged by the clock, and its keys are gone: who is asked before keys are
  // destroyed is asked here.
  const governedDelete = withApproval<{ readonly tenantId: string }, Tenant>('tenant.delete', {
    permission: 'tenants:manage',
    plan: (from, id) => planForTenant(from, id, 'delete'),
    carryOut: async (tx, actor, { tenantId: id }) => ({
      answer: await changeTenantIn(tx, actor, id, 'delete', { now: await deadlines.latest(), rules }),
      afterCommit: () => directory.renew({ tenants: [id] }),
    }),
  });
  return {
    rename: (actor, id, { name }) => change(actor, id, 'rename', checkTenantName(name)),
    suspend: (actor, id) => change(actor, id, 'suspend'),
    resume: (actor, id) => change(actor, id, 'resume'),
    delete: (actor, id) => governedDelete.run(inTenant(actor, id), { tenantId: id }),
    restore: (actor, id) => change(actor, id, 'restore'),
    impact: async (_actor, id, event) => {
      const tenant = await findTenant(store.read, id);
      stateAfter(tenant, event);
      return { tenant, contents: await contentsOf(store.read, tenant) };
    },
  };
};
