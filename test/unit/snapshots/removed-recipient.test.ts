// A recovery key that is removed while a snapshot is made: the file, which that key would open,
// does not become a snapshot, because the record of the removal has not named it.
import { beforeEach, expect, test } from 'vitest';
import { recoveryKeyId } from '../../../server/base/recovery-key.ts';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { RecoveryKey } from '../../../server/domain/snapshot.ts';
import { originSetting } from '../../../server/operations/audit/audit-origin.ts';
import { makeSnapshot } from '../../../server/operations/snapshots/make-snapshot.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { storeOfTest } from '../../support/open-store.ts';

const tenant = newTenant('default', 1);
const recoveryKey = (name: string): RecoveryKey => {
  const publicKey = Buffer.alloc(32, name);
  return {
    ...{ id: recoveryKeyId(publicKey), name, publicKey: publicKey.toString('base64') },
    ...{ createdAt: 1, removedAt: null, integrity: 'ok' },
  };
};
const keys = [recoveryKey('one'), recoveryKey('two')];
const [kept, removed] = keys;
let store: Store;
beforeEach(async () => {
  store = await storeOfTest(systemClock);
  await store.write(async (tx) => {
    await tx.tenants.insert(tenant);
    await tx.decisions.set(originSetting, 'dke/audit/test');
    for (const key of keys) await tx.recoveryKeys.insert(key);
  });
});

/** `meanwhile`: what is done when the file is complete, before it counts. */
const make = (meanwhile: () => Promise<unknown>) => {
  const gone: string[] = [];
  const closing = { rows: {}, units: 0, materials: 0, digest: 'digest' };
  const writer = {
    row: async () => undefined,
    finish: async () => ({ closing, size: 1 }),
    abandon: async () => undefined,
  };
  const archive = {
    require: async () => undefined,
    reached: () => true,
    begin: async () => writer,
    inspect: async () => {
      await meanwhile();
      return { closing };
    },
    remove: async (id: string) => void gone.push(id),
  };
  const ring = { auditPublicKey: () => Buffer.alloc(32), auditKeys: () => [], signAudit: () => Buffer.alloc(64) };
  const fleet = { run: () => 'a run', nodes: async () => [] };
  const exclusion = { run: (work: () => Promise<unknown>) => work() };
  const log = { error: () => undefined };
  const ports = { store, ring, archive, exclusion, clock: systemClock, log, fleet } as never;
  const done = makeSnapshot(ports)(serviceActor('test'), tenant.id, 'requested');
  return { done, gone };
};
const states = async () => (await store.read.snapshots.list({}, { limit: 9 })).map(({ state }) => state);

test('a recovery key that is removed while a snapshot is made opens none that counts', async () => {
  const remove = () =>
    store.write(async (tx) => {
      for (const key of await tx.recoveryKeys.list())
        if (key.id === removed?.id) await tx.recoveryKeys.update({ ...key, removedAt: 2 });
    });
  const { done, gone } = make(remove);
  await expect(done).rejects.toThrow('a recovery key was removed while the snapshot was created');
  expect([await states(), gone.length]).toEqual([['failed'], 1]);
  const { recoveryKeyIds } = await make(async () => undefined).done;
  expect(recoveryKeyIds).toEqual([kept?.id]);
  expect((await states()).toSorted()).toEqual(['available', 'failed']);
});
