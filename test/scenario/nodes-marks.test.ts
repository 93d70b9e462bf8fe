// What test/model takes for granted of the database: what a node tells of the changes that it shows counts only in the history that has them, and an
// erasure run waits for copies of the database in which everything is sealed again.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../server/base/clock.ts';
import { newId, serviceTenantId } from '../../server/base/ids.ts';
import { createAwaitCopies } from '../../server/operations/root/await-copies.ts';
import type { NodeLink } from '../../server/ports/node-link.ts';
import type { Ports } from '../../server/ports/ports.ts';
import type { Store } from '../../server/ports/store.ts';
import { openPostgresStore } from '../../server/store/store.ts';
import { until } from '../support/host.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';

let postgres: PostgresServer;
let store: Store;
let link: NodeLink;
beforeEach(async () => {
  postgres = await startPostgres();
  const place = postgres.createDatabase('dke');
  store = await openPostgresStore({
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
    postgres: {
      ...{ host: place.host, port: place.port, user: 'dke', database: 'dke' },
      readers: 2,
      password: undefined,
      ca: undefined,
    },
  });
  await store.started();
  if (store.link === undefined) throw new Error('the store has no link');
  link = store.link;
});
afterEach(async () => {
  await store.close();
  await postgres.remove();
});

/** Commits a change that others hear of. */
const change = async (at: number) => {
  const kek = { tenantId: serviceTenantId, epoch: at, rootEpoch: 1, record: Buffer.from('sealed') };
  await store.write((tx) => tx.keks.insert(kek));
  return store.mark();
};

test('the last change that a node tells counts while the database has it in its history', async () => {
  const id = newId(0);
  const empty = Buffer.alloc(32);
  await link.join({
    ...{ id, name: 'one', version: '1', contactMs: 1_000, rootEpoch: 1, oldestRootEpoch: 1 },
    ...{ publicKey: empty, proof: empty, directory: '' },
  });
  const shownAfter = async (shown: Parameters<NodeLink['beat']>[0]['shown']): Promise<number | undefined> => {
    await link.beat({ id, shown }, 0);
    return (await link.nodes()).find((node) => node.id === id)?.epoch;
  };
  const [first, second] = [await change(1), await change(2)];
  expect(second.epoch).toBe(first.epoch + 1);
  expect(await shownAfter(undefined)).toBe(0);
  expect(await shownAfter(first)).toBe(first.epoch);
  expect(await shownAfter(second)).toBe(second.epoch);
  // Of a history that a failover has lost: the numbers are there, and are of other changes.
  expect(await shownAfter({ ...second, history: 'lost' })).toBe(0);
  expect(await shownAfter({ ...first, history: 'lost' })).toBe(0);

  const told: number[] = [];
  link.listen({
    changed: () => undefined,
    applied: (_, epoch) => told.push(epoch),
    turned: () => undefined,
    lost: () => undefined,
    copied: () => undefined,
  });
  await link.tellShown(id, { ...second, history: 'lost' });
  await link.tellShown(id, first);
  await link.tellShown(id, second);
  await until('the notifications', async () => (told.includes(second.epoch) ? true : undefined));
  expect(told).toEqual([first.epoch, second.epoch]);

  // A node that is behind what is kept is behind.
  postgres.run('dke', 'delete from node_changes');
  expect(await shownAfter(first)).toBe(0);
  expect(await shownAfter(second)).toBe(second.epoch);
});

test('copies of a database in which something is sealed under the old root key are not waited for: the run starts again', async () => {
  await change(1);
  let epoch = 2;
  const root = {
    get current() {
      return { epoch };
    },
  } as Ports['root'];
  const awaitCopies = createAwaitCopies({ store, root, clock: systemClock }, 0);
  await expect(awaitCopies(() => false)).rejects.toThrow('the database is sealed under another root key');
  await expect(awaitCopies(() => false)).rejects.toThrow('the database is sealed under another root key');
  epoch = 1;
  expect((await awaitCopies(() => false)).behind).toEqual([]);
});
