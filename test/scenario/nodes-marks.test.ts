// The assumptions of test/model about the database: a node's report about its shown changes counts
// only in the history that has them, and an erasure run waits for copies of the database in which
// everything is sealed again. And the model's findings about concurrent root keys.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { openCore } from '../../server/adapters/crypto/open-core.ts';
import { openFileRoot } from '../../server/adapters/roots/file-root.ts';
import { openPostgresStore } from '../../server/adapters/store/store.ts';
import { createEvents } from '../../server/base/events.ts';
import { newId, serviceTenantId } from '../../server/base/ids.ts';
import { systemClock } from '../../server/base/time.ts';
import type { RootEvents } from '../../server/operations/nodes/running-fleet.ts';
import { createAwaitCopies } from '../../server/operations/root/await-copies.ts';
import { createRootSpread, type RootSpread } from '../../server/operations/root/spread-root.ts';
import type { NodeLink } from '../../server/ports/node-link.ts';
import type { Ports } from '../../server/ports/ports.ts';
import type { RootProvider } from '../../server/ports/root-provider.ts';
import type { Store } from '../../server/ports/store.ts';
import { until } from '../support/host.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';

let postgres: PostgresServer;
/** One for each test. */
let database = '';
let databases = 0;
let store: Store;
let link: NodeLink;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.remove());
beforeEach(async () => {
  databases += 1;
  database = `dke${databases}`;
  const place = postgres.createDatabase(database);
  store = await openPostgresStore({
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
    postgres: {
      ...{ host: place.host, port: place.port, user: place.user, database },
      readers: 2,
      password: undefined,
      ca: undefined,
    },
  });
  await store.started();
  if (store.link === undefined) throw new Error('the store has no link');
  link = store.link;
});
afterEach(() => store.close());

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
  // Marks of a history that a failover has lost: the numbers are there, and are of other changes.
  expect(await shownAfter({ ...second, history: 'lost' })).toBe(0);
  expect(await shownAfter({ ...first, history: 'lost' })).toBe(0);

  const reported: number[] = [];
  link.listen({
    changed: () => undefined,
    applied: (_, epoch) => reported.push(epoch),
    rootRunChanged: () => undefined,
    lost: () => undefined,
    copied: () => undefined,
  });
  await link.tellShown(id, { ...second, history: 'lost' });
  await link.tellShown(id, first);
  await link.tellShown(id, second);
  await until('the notifications', async () => (reported.includes(second.epoch) ? true : undefined));
  expect(reported).toEqual([first.epoch, second.epoch]);

  // A node that is behind the oldest stored change is behind.
  postgres.run(database, 'delete from node_changes');
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

// --- two nodes that each create a root key -------------------------------------------------------
interface RootNode {
  readonly id: string;
  readonly root: RootProvider;
  readonly spread: RootSpread;
}
let folder: string;
/** What the nodes have logged as errors. */
let errors: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-spread-'));
  errors = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const { core, raw } = openCore({ allowUnlocked: true });
const rowOf = async (id: string) => (await link.nodes()).find((node) => node.id === id);
/** A node with a copy of the same root key file. `through`: how it reaches the database. */
const joinNode = async (name: string, through: Partial<NodeLink> = {}): Promise<RootNode> => {
  const id = newId(0);
  const path = join(folder, name);
  const first = join(folder, 'one');
  if (name !== 'one') copyFileSync(first, path);
  const root = openFileRoot(raw, path, name === 'one');
  let ahead = 0;
  const spread = createRootSpread({
    ...{ core, root, store: { ...store, link: { ...link, ...through } } },
    events: createEvents<RootEvents>(),
    // This test uses neither.
    ring: {} as Ports['ring'],
    clock: { ...systemClock, monotonic: () => systemClock.monotonic() + ahead },
    log: {
      ...{ debug: () => undefined, info: () => undefined, warn: () => undefined },
      error: (message: string, details: unknown) => {
        errors.push(`${message} ${JSON.stringify(details)}`);
        // The awaited confirmation does not arrive.
        ahead = 60_000;
      },
    },
    fleet: {
      ...{ id, holds: () => true },
      duties: { current: () => undefined, fence: (each: Store) => each },
      others: async () => (await link.nodes()).filter((node) => node.id !== id && node.state !== 'removed'),
    },
  });
  await link.join({ ...{ id, name, version: '1', contactMs: 1_000, directory: '' }, ...spread.nodeKeys() });
  return { id, root, spread };
};
const epochsOf = ({ root }: RootNode) => [root.current.epoch, root.previous?.epoch];

test('a node that has taken the new root key of another one since it began a run makes none', async () => {
  const one = await joinNode('one');
  let answer = (): void => undefined;
  let begun = (): void => undefined;
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const two = await joinNode('two', {
    setRootRun: async (...rootRun) => {
      const done = await link.setRootRun(...rootRun);
      await new Promise<void>((resolve) => {
        answer = resolve;
        begun();
      });
      return done;
    },
  });
  const beginning = two.spread.begin();
  await isBegun;
  // A failover has lost its start; the other node created its root key before.
  postgres.run(database, 'delete from root_runs');
  one.root.addEpoch();
  const offering = one.spread.offer();
  await until('the root key', async () => {
    await two.spread.follow(await link.rootRun(), await rowOf(two.id));
    return two.root.current.epoch === 2 ? true : undefined;
  });
  expect(await offering).toEqual([]);
  answer();
  await expect(beginning).rejects.toThrow('another node has taken over the job erasure: nothing was changed');
  expect(epochsOf(two)).toEqual([2, 1]);
  expect(errors).toEqual([]);
});

test('a node that has another root key of the same number is named, with what to do', async () => {
  const one = await joinNode('one');
  const two = await joinNode('two');
  for (const { id, root, spread } of [one, two]) {
    root.addEpoch();
    await link.tellRoot({ id, ...spread.nodeKeys() });
  }
  expect(await one.spread.offer()).toEqual(['two']);
  expect(errors).toEqual([expect.stringMatching(/^a node has made another root key .*dke node remove two/)]);
  postgres.run(database, "update nodes set state = 'removed' where name = 'two'");
  expect(await one.spread.offer()).toEqual([]);
});
