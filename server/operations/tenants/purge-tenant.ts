// The purge of a deleted tenant: a crypto-erase. One transaction marks it and removes its KEK; from the commit on nothing that was
// sealed for it opens with what the store holds. What is left is then cleared in small steps, each complete in itself and found
// again after a crash: keys become tombstones, records and credentials go. The erasure run that follows makes old pages, logs and
// backups worthless too. Tombstones of keys and of the tenant stay forever.

import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, inTenant, serviceActor } from '../../domain/actor.ts';
import type { Key } from '../../domain/key.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { Tenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { retainStoredKeys } from '../keys/forget-unstored-keys.ts';
import { removeFactorsOf } from '../people/user-records.ts';
import { findTenant } from '../shared/find.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { planForTenant, stateAfter } from './change-tenant.ts';
import type { TenantOperations } from './interface.ts';

type PurgePorts = Pick<Ports, 'store' | 'ring' | 'directory' | 'clock' | 'erasure'>;
type RetentionPorts = PurgePorts & Pick<Ports, 'deadlines'>;

/** Rows changed in one unit of work: small enough that other writers wait for milliseconds only. */
const batch = 100;
/** Missing snapshots that the audit log names. */
const mostNamed = 20;
/** Above every epoch that a KEK can have. */
const beyondEpochs = 0x7fffffff;

/** A key's tombstone: what it was, and when it was destroyed. The content of a tampered row does not count. */
const destroyKeyOfPurged = async (tx: Repositories, actor: Actor, key: Key, now: number): Promise<void> => {
  const destroyed: Key = { ...key, state: 'destroyed', destroyedAt: now, reimportedAt: null, integrity: 'ok' };
  await tx.keys.update(destroyed);
  const object = key.kind === 'master' ? await tx.objects.getById(key.id) : undefined;
  if (object !== undefined) await tx.objects.destroy(object.handle, now);
  await recordEvent(tx, 'key.destroyed', actor, about('key', key), {
    name: key.name,
    kind: key.kind,
    destroyedAt: toRfc3339(now),
    ...(object === undefined ? {} : { label: object.label }),
    ...(key.applicationId === null ? {} : { applicationId: key.applicationId }),
  });
};

/** Whether something of a purged tenant is still to be cleared is told by doing it: every step finds what is left. */
const clearPurged = async (ports: PurgePorts, actor: Actor, tenantId: string): Promise<void> => {
  const { store, clock } = ports;
  const { read } = store;
  const inBatches = async <T>(items: AsyncIterable<T>, change: (tx: Repositories, item: T) => Promise<void>) => {
    let waiting: T[] = [];
    const write = async (): Promise<void> => {
      const taken = waiting;
      waiting = [];
      if (taken.length > 0)
        await store.write(async (tx) => {
          for (const item of taken) await change(tx, item);
        });
    };
    for await (const item of items) {
      waiting.push(item);
      if (waiting.length >= batch) await write();
    }
    await write();
  };

  for (;;) {
    const wiped = await store.write(async (tx) => {
      const records = await tx.records.listOlder(tenantId, beyondEpochs, batch);
      for (const record of records) await tx.records.wipe(record);
      return records.length;
    });
    if (wiped === 0) break;
  }
  await inBatches(
    each((window) => read.keys.list(tenantId, {}, window), byId),
    async (tx, { id }) => {
      const key = await tx.keys.stored(tenantId, id);
      if (key !== undefined && key.state !== 'destroyed')
        await destroyKeyOfPurged(tx, actor, key, await destructionTime(tx, clock));
    },
  );
  for await (const { id: endpointId } of each((window) => read.endpoints.list(tenantId, window), byId, fewAtOnce))
    await store.write(async (tx) => {
      const endpoint = await tx.endpoints.stored(tenantId, endpointId);
      if (endpoint === undefined) return;
      for (const { id } of endpoint.credentials) await tx.endpoints.removeCredential(id);
      await tx.endpoints.update({ ...endpoint, state: 'deleted', credentials: [], integrity: 'ok' });
    });
  for await (const keyStore of each((window) => read.externalKeyStores.list(tenantId, window), byId))
    await store.write((tx) => tx.externalKeyStores.remove(keyStore.id));
  for await (const { id: applicationId } of each(
    (window) => read.applications.list(tenantId, {}, window),
    byId,
    fewAtOnce,
  )) {
    await inBatches(
      (async function* live() {
        for (let after = 0; ; ) {
          const page = await read.objects.listByApplication(applicationId, after, largestPageSize);
          for (const object of page) if (object.destroyedAt === null) yield object;
          after = page.at(-1)?.handle ?? after;
          if (page.length < largestPageSize) return;
        }
      })(),
      async (tx, { handle }) => tx.objects.destroy(handle, await destructionTime(tx, clock)),
    );
    await store.write(async (tx) => {
      for (const accessGuid of await tx.accessGuids.list(applicationId))
        if (accessGuid.removedAt === null)
          await tx.accessGuids.update({ ...accessGuid, removedAt: clock.now(), integrity: 'ok' });
      const application = await tx.applications.stored(tenantId, applicationId);
      if (application?.state === 'enabled')
        await tx.applications.update({ ...application, state: 'disabled', integrity: 'ok' });
    });
  }
  await inBatches(
    each((window) => read.vaults.list(tenantId, window), byId),
    async (tx, { id }) => {
      const vault = await tx.vaults.stored(tenantId, id);
      if (vault !== undefined && vault.state !== 'deleted')
        await tx.vaults.update({ ...vault, state: 'deleted', integrity: 'ok' });
    },
  );
  for await (const { id: userId } of each((window) => read.users.list(tenantId, window), byId))
    await store.write(async (tx) => {
      const user = await tx.users.get(tenantId, userId);
      if (user === undefined || user.state === 'deleted') return;
      await tx.users.update({
        ...user,
        state: 'deleted',
        password: null,
        hasPassword: false,
        subject: null,
        invitationHash: null,
        invitedUntil: null,
        integrity: 'ok',
      });
      await removeFactorsOf(tx, user.id);
      const sessionsEnded = await tx.sessions.removeOf({ kind: 'user', id: user.id }, null);
      await recordEvent(tx, 'user.deleted', actor, about('user', { id: user.id, tenantId }), {
        name: user.name,
        sessionsEnded,
      });
    });
  await inBatches(
    each((window) => read.tokens.list(tenantId, window), byId),
    async (tx, { id }) => {
      const token = await tx.tokens.get(tenantId, id);
      if (token?.revokedAt === null) await tx.tokens.update({ ...token, revokedAt: clock.now(), integrity: 'ok' });
    },
  );
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
  const after: Tenant = { ...before, state, purgedAt: clock.now() };
  const contents = await tx.tenants.contents(id);
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
  const { directory, erasure } = ports;
  await retainStoredKeys(ports);
  await directory.renew({ tenants: [id] });
  await clearPurged(ports, actor, id);
  await directory.renew({ tenants: [id] });
  erasure.schedule();
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

/** Tenants that were purged and can still be read by who has an old copy of the database and of the root key of then. */
export const listUnerased = async (from: Pick<Repositories, 'tenants'>, before: number): Promise<readonly Tenant[]> =>
  (await from.tenants.list()).filter(
    ({ purgedAt, unrecoverableAt }) => purgedAt !== null && purgedAt < before && unrecoverableAt === null,
  );

/** After the erasure run, in its last transaction: the tenants that it made unreadable. */
export const markErased = async (
  tx: Repositories,
  actor: Actor,
  tenants: readonly Tenant[],
  { now, erasure, missing }: { readonly now: number; readonly erasure: string; readonly missing: readonly string[] },
): Promise<void> => {
  for (const tenant of tenants) {
    await tx.tenants.update({ ...tenant, unrecoverableAt: now, integrity: 'ok' });
    await recordEvent(tx, 'tenant.unrecoverable', actor, about('tenant', { id: tenant.id, tenantId: tenant.id }), {
      name: tenant.name,
      purgedAt: tenant.purgedAt === null ? null : toRfc3339(tenant.purgedAt),
      unrecoverableAt: toRfc3339(now),
      erasure,
      ...(missing.length === 0 ? {} : { except: missing.slice(0, mostNamed) }),
    });
  }
};

export interface TenantRetention {
  /** Purges the deleted tenants whose retention is over, and clears what an earlier process left. */
  run(): Promise<void>;
}

export const createTenantRetention = (ports: RetentionPorts): TenantRetention => {
  const { store, clock, deadlines, erasure } = ports;
  /** Purged before this process began, and cleared by it. */
  const cleared = new Set<string>();
  return {
    run: async () => {
      const actor = serviceActor(newId(clock.now()));
      const now = await deadlines.now();
      const isDue = ({ purgeAt }: Tenant): boolean => purgeAt !== null && purgeAt <= now;
      for (const tenant of await store.read.tenants.list())
        if (tenant.state === 'deleted' && tenant.integrity === 'ok' && isDue(tenant)) {
          // Its deletion was under the rules of its vaults (change-tenant.ts), and this is what was agreed to.
          await store.write((tx) => purgeIn(ports, tx, actor, tenant.id, isDue));
          await afterPurge(ports, actor, tenant.id);
          cleared.add(tenant.id);
        } else if (tenant.state === 'purged' && tenant.unrecoverableAt === null && !cleared.has(tenant.id)) {
          await clearPurged(ports, actor, tenant.id);
          cleared.add(tenant.id);
          erasure.schedule();
        }
    },
  };
};
