// What a purge clears after the crypto-erase, a step for each table whose declaration says so
// (adapters/store/schema/tables/table.ts). Each step is complete in itself, changes little at a
// time, and finds what is left when it runs again. The content of a tampered row does not count: it
// ends like any other.

import { toRfc3339 } from '../../base/time.ts';
import type { Actor } from '../../domain/actor.ts';
import type { Key } from '../../domain/key.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { TdeApplication } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { PurgeStep } from '../../ports/purge.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { removeFactorsOf, withoutPerson } from '../people/user-records.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';

export type PurgePorts = Pick<Ports, 'store' | 'ring' | 'directory' | 'clock' | 'erasure'>;
type Clear = (ports: PurgePorts, actor: Actor, tenantId: string) => Promise<void>;

/** Rows changed in one unit of work: small enough that other writers wait for milliseconds only. */
const batch = 100;
/** Above every epoch that a KEK can have. */
const beyondEpochs = 0x7fffffff;

/** A key's tombstone: what it was, and when it was destroyed. */
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

const inBatches = async <T>(
  { store }: PurgePorts,
  items: AsyncIterable<T>,
  change: (tx: Repositories, item: T) => Promise<void>,
  atOnce = batch,
): Promise<void> => {
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
    if (waiting.length >= atOnce) await write();
  }
  await write();
};

const endpointsOf = ({ store: { read } }: PurgePorts, tenantId: string) =>
  each((window) => read.endpoints.list(tenantId, window), byId, fewAtOnce);
const applicationsOf = ({ store: { read } }: PurgePorts, tenantId: string): AsyncIterable<TdeApplication> =>
  each((window) => read.applications.list(tenantId, {}, window), byId, fewAtOnce);
const usersOf = ({ store: { read } }: PurgePorts, tenantId: string) =>
  each((window) => read.users.list(tenantId, window), byId);
const tokensOf = ({ store: { read } }: PurgePorts, tenantId: string) =>
  each((window) => read.tokens.list(tenantId, window), byId);
async function* liveObjectsOf(ports: PurgePorts, tenantId: string): AsyncGenerator<StoredObject> {
  for await (const { id } of applicationsOf(ports, tenantId))
    for (let after = 0; ; ) {
      const page = await ports.store.read.objects.listByApplication(id, after, largestPageSize);
      for (const object of page) if (object.destroyedAt === null) yield object;
      after = page.at(-1)?.handle ?? after;
      if (page.length < largestPageSize) break;
    }
}

/** In the order in which they run. */
export const clearingSteps: Readonly<Record<PurgeStep, Clear>> = {
  key_records: async ({ store }, _actor, tenantId) => {
    for (;;) {
      const wiped = await store.write(async (tx) => {
        const records = await tx.records.listOlder(tenantId, beyondEpochs, batch);
        for (const record of records) await tx.records.wipe(record);
        return records.length;
      });
      if (wiped === 0) return;
    }
  },
  // Removed with the purge itself.
  tenant_keks: ({ store, ring }, _actor, tenantId) => store.write((tx) => ring.dropTenant(tx, tenantId)),
  keys: (ports, actor, tenantId) =>
    inBatches(
      ports,
      each((window) => ports.store.read.keys.list(tenantId, {}, window), byId),
      async (tx, { id }) => {
        const key = await tx.keys.stored(tenantId, id);
        if (key !== undefined && key.state !== 'destroyed')
          await destroyKeyOfPurged(tx, actor, key, await destructionTime(tx, ports.clock));
      },
    ),
  endpoints: (ports, _actor, tenantId) =>
    inBatches(
      ports,
      endpointsOf(ports, tenantId),
      async (tx, { id }) => {
        const endpoint = await tx.endpoints.stored(tenantId, id);
        if (endpoint !== undefined)
          await tx.endpoints.update({ ...endpoint, state: 'deleted', credentials: [], integrity: 'ok' });
      },
      1,
    ),
  endpoint_credentials: (ports, _actor, tenantId) =>
    inBatches(
      ports,
      endpointsOf(ports, tenantId),
      async (tx, { id }) => {
        const endpoint = await tx.endpoints.stored(tenantId, id);
        for (const credential of endpoint?.credentials ?? []) await tx.endpoints.removeCredential(credential.id);
      },
      1,
    ),
  external_key_stores: (ports, _actor, tenantId) =>
    inBatches(
      ports,
      each((window) => ports.store.read.externalKeyStores.list(tenantId, window), byId),
      (tx, { id }) => tx.externalKeyStores.remove(id),
    ),
  tde_objects: (ports, _actor, tenantId) =>
    inBatches(ports, liveObjectsOf(ports, tenantId), async (tx, { handle }) =>
      tx.objects.destroy(handle, await destructionTime(tx, ports.clock)),
    ),
  access_guids: (ports, _actor, tenantId) =>
    inBatches(
      ports,
      applicationsOf(ports, tenantId),
      async (tx, { id }) => {
        for (const accessGuid of await tx.accessGuids.list(id))
          if (accessGuid.removedAt === null)
            await tx.accessGuids.update({ ...accessGuid, removedAt: ports.clock.now(), integrity: 'ok' });
      },
      1,
    ),
  tde_applications: (ports, _actor, tenantId) =>
    inBatches(ports, applicationsOf(ports, tenantId), async (tx, { id }) => {
      const application = await tx.applications.stored(tenantId, id);
      if (application?.state === 'enabled')
        await tx.applications.update({ ...application, state: 'disabled', integrity: 'ok' });
    }),
  vaults: (ports, _actor, tenantId) =>
    inBatches(
      ports,
      each((window) => ports.store.read.vaults.list(tenantId, window), byId),
      async (tx, { id }) => {
        const vault = await tx.vaults.stored(tenantId, id);
        if (vault !== undefined && vault.state !== 'deleted')
          await tx.vaults.update({ ...vault, state: 'deleted', integrity: 'ok' });
      },
    ),
  users: (ports, actor, tenantId) =>
    inBatches(
      ports,
      usersOf(ports, tenantId),
      async (tx, { id }) => {
        const user = await tx.users.get(tenantId, id);
        if (user === undefined || user.state === 'deleted') return;
        await tx.users.update({ ...withoutPerson(user), integrity: 'ok' });
        const sessionsEnded = await tx.sessions.removeOf({ kind: 'user', id }, null);
        await recordEvent(tx, 'user.deleted', actor, about('user', { id, tenantId }), {
          name: user.name,
          sessionsEnded,
        });
      },
      1,
    ),
  user_factors: (ports, _actor, tenantId) =>
    inBatches(ports, usersOf(ports, tenantId), async (tx, { id }) => {
      await removeFactorsOf(tx, id);
    }),
  // Sessions of tokens only: sessions of people end with their user.
  sessions: (ports, _actor, tenantId) =>
    inBatches(ports, tokensOf(ports, tenantId), async (tx, { id }) => {
      await tx.sessions.removeOf({ kind: 'token', id }, null);
    }),
  api_tokens: (ports, _actor, tenantId) =>
    inBatches(ports, tokensOf(ports, tenantId), async (tx, { id }) => {
      const token = await tx.tokens.get(tenantId, id);
      if (token?.revokedAt === null)
        await tx.tokens.update({ ...token, revokedAt: ports.clock.now(), integrity: 'ok' });
    }),
};
