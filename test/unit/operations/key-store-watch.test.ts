// The watch over external key stores: which store is due, and that one that cannot be checked waits
// as long as all others.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { neverLooked } from '../../../server/domain/external-key-store.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createKeyStoreWatch, type KeyStoreWatch } from '../../../server/operations/endpoints/external-key-stores.ts';
import { createJobBoard } from '../../../server/operations/shared/job-board.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { askUnlocked } from '../../support/test-store.ts';

/** Milliseconds between two runs of the watch's own timer; the clock is this test's. */
const every = 5;
const begun = 1_700_000_000_000;
let now = begun;
const clock = { now: () => now, monotonic: () => now };

let folder: string;
let store: Store;
let watch: KeyStoreWatch;
let runs: number;
let looked: string[];
let complaints: unknown[];
/** Endpoints whose probe ends when it is released. */
const slow = new Set<string>();
const released: (() => void)[] = [];

beforeEach(async () => {
  now = begun;
  runs = 0;
  looked = [];
  complaints = [];
  folder = folderOfTest();
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
  watch = createKeyStoreWatch(
    {
      store,
      clock,
      log: {
        ...quietLog,
        error: (_, fields) => void complaints.push((fields as { id: string }).id),
      },
      keyStoreProbe: {
        probe: async (endpointId) => {
          looked.push(endpointId);
          if (slow.has(endpointId)) await new Promise<void>((resolve) => released.push(resolve));
          return { state: 'CONNECTED', errorCode: null, detail: null };
        },
      },
      cloud: undefined,
      fleet: {
        perform: (_, work) => {
          runs += 1;
          return work();
        },
      },
    },
    every,
    createJobBoard(clock),
  );
});
afterEach(async () => {
  slow.clear();
  for (const release of released.splice(0)) release();
  await watch.stop();
  await store.close();
});

/** Outside the service, whose endpoints and tenants these have not. */
const asStored = async (sql: string): Promise<void> => {
  const database = new DatabaseSync(join(folder, 'dke.db'), { enableForeignKeyConstraints: false });
  await askUnlocked(() => database.exec('begin immediate'));
  database.exec(`${sql}; commit`);
  database.close();
};
const register = (...names: readonly string[]): Promise<void> =>
  asStored(
    names
      .map(
        (name) =>
          `insert into external_key_stores (id, tenant_id, name, custom_key_store_id, region, endpoint_id, created_at, connection, row_mac)
           values ('${name}', 'tenant', '${name}', 'cks-${name}', 'eu-central-1', 'endpoint of ${name}', 1, '{}', '');`,
      )
      .join(''),
  );
/** Two more runs have started, so that one of them is over. */
const runOnce = (): Promise<void> => {
  const before = runs;
  return vi.waitFor(() => expect(runs).toBeGreaterThan(before + 1), { timeout: 300_000, interval: 1 });
};

test('each is checked once when it is due, and one that is added later when it is added', async () => {
  await register(...Array.from({ length: 250 }, (_, at) => `store ${at}`));
  watch.start();
  await runOnce();
  expect(looked.toSorted()).toEqual(Array.from({ length: 250 }, (_, at) => `endpoint of store ${at}`).toSorted());
  await runOnce();
  expect(looked).toHaveLength(250);
  await register('late');
  await runOnce();
  expect(looked.slice(250)).toEqual(['endpoint of late']);
  now += every - 1;
  await runOnce();
  expect(looked).toHaveLength(251);
  now += 1;
  await runOnce();
  expect(looked).toHaveLength(502);
});

test('one whose row was changed is reported once in its time, keeps what was seen, and delays no one', async () => {
  await register('a', 'b', 'c');
  await asStored("update external_key_stores set row_mac = 'another' where id = 'b'");
  watch.start();
  await runOnce();
  await runOnce();
  expect(looked).toEqual(['endpoint of a', 'endpoint of c']);
  expect(complaints).toEqual(['b']);
  const [a, b] = await store.read.externalKeyStores.list(everyTenant, { limit: 10 });
  expect(a?.connection).toMatchObject({ state: 'CONNECTED', checkedAt: begun });
  expect(b?.connection).toEqual(neverLooked);
  now += every;
  await runOnce();
  expect(looked.slice(2).toSorted()).toEqual(['endpoint of a', 'endpoint of c']);
  expect(complaints).toEqual(['b', 'b']);
});

test('one whose address does not answer delays the next checks of itself, and not those of others', async () => {
  slow.add('endpoint of a');
  await register('a', ...Array.from({ length: 150 }, (_, at) => `store ${at}`));
  watch.start();
  await vi.waitFor(() => expect(looked).toHaveLength(151), { timeout: 300_000, interval: 1 });
  for (const release of released.splice(0)) release();
  await runOnce();
  expect(looked).toHaveLength(151);
});
