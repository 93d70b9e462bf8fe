// A node that hangs while its kernel keeps its connections: another node gets its duties, and its
// late writes as their owner fail.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPostgresStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';
import { createNodeDuties, DutyLost, leaseMs, stuckAfterMs } from '../../server/operations/nodes/node-duties.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import type { PostgresPlace } from '../support/postgresql.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
beforeAll(async () => {
  fleet = await startFleet(['one', 'two']);
  [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
});
afterAll(() => fleet?.end());

const dutiesOf = async (from: FleetMember, name: string): Promise<number> =>
  (await fleet.nodes(from)).find((node) => node.name === name)?.duties.length ?? 0;
const untilDuties = (from: FleetMember, name: string, count: number): Promise<boolean> =>
  until(`${count} duties of ${name}`, async () => ((await dutiesOf(from, name)) === count ? true : undefined));

test('all duties of a hung node move to another one, and each has one owner when it continues', async () => {
  // All are of the node that was first, unless a busy machine kept it for longer than its lease.
  const hung = await until('an owner', async () => {
    for (const member of [one, two]) if ((await dutiesOf(one, member.name)) > 0) return member;
    return undefined;
  });
  const other = hung === one ? two : one;
  hung.server.child.kill('SIGSTOP');
  try {
    await untilDuties(other, other.name, 6);
    expect(await dutiesOf(other, hung.name)).toBe(0);
    // The connections of the hung node are there all the same.
    expect(
      Number(fleet.postgres.run('dke', "select count(*) from pg_stat_activity where datname = 'dke'")),
    ).toBeGreaterThan(2);
  } finally {
    hung.server.child.kill('SIGCONT');
  }
  await untilActive(fleet, other, ['one', 'two']);
  // The node that has them then has them alone.
  await until('each duty to be of one node, as both see it', async () => {
    const [here, there] = [await fleet.nodes(one), await fleet.nodes(two)].map((nodes) =>
      nodes.map(({ name, duties }) => [name, ...duties].join(' ')).sort(),
    );
    const all = here?.flatMap((line) => line.split(' ').slice(1)) ?? [];
    return JSON.stringify(here) === JSON.stringify(there) && all.length === 6 && new Set(all).size === 6
      ? true
      : undefined;
  });
});

/** A store, and a node's duties in it, by a clock that the test sets. */
const openNode = async (place: PostgresPlace, id: string) => {
  const store = await openPostgresStore({
    postgres: { ...place, password: undefined, ca: undefined, readers: 1 },
    clock: systemClock,
    authenticateRow: (text) => text,
    onFatal: (error) => {
      throw error;
    },
  });
  await store.started();
  let now = 0;
  const silent = { info: () => undefined, warn: () => undefined };
  if (store.link === undefined) throw new Error('the store has no link');
  const duties = createNodeDuties(store.link, { clock: { monotonic: () => now }, log: silent }, id);
  return {
    duties,
    store: duties.fence(store),
    link: store.link,
    later: (ms: number) => {
      now += ms;
    },
    close: () => store.close(),
  };
};

test('an owner that comes late: its units of work fail, and so does its change of the run', async () => {
  const place = fleet.postgres.createDatabase('fenced');
  const [early, late] = [await openNode(place, 'early'), await openNode(place, 'late')];
  const nodes = [early, late];
  try {
    expect(await early.duties.tend(() => true)).toHaveLength(6);
    expect(await late.duties.tend(() => true)).toEqual([]);
    // Renewed in time: it stays where it is, however often the other one looks.
    for (let at = 0; at < 4; at += 1) {
      for (const each of nodes) each.later(0.8 * leaseMs);
      await early.duties.tend(() => true);
      expect(await late.duties.tend(() => true)).toEqual([]);
    }
    const written = await early.duties.perform('audit', async () => {
      await early.store.write((tx) => tx.settings.set('by-early', 'in time'));
      const rootRun = { epoch: 2, nodeId: 'early', phase: 'offered' } as const;
      expect(await early.link.setRootRun(undefined, rootRun, early.duties.current())).toBe(true);
      // Node early hangs here: its own clock continues, and it does not renew its duties.
      for (const each of nodes) each.later(1.2 * leaseMs);
      expect(await late.duties.tend(() => true)).toHaveLength(6);
      await expect(early.store.write((tx) => tx.settings.set('by-early', 'late'))).rejects.toThrow(DutyLost);
      expect(await early.link.setRootRun(rootRun, { ...rootRun, phase: 'erase' }, early.duties.current())).toBe(false);
      return early.store.read.settings.get('by-early');
    });
    expect(written).toBe('in time');
    expect([early.duties.holds('audit'), late.duties.holds('audit')]).toEqual([false, true]);
    expect(await early.duties.perform('audit', () => Promise.reject(new Error('it has no duty')))).toBeUndefined();
    await late.duties.perform('audit', () => late.store.write((tx) => tx.settings.set('by-late', 'the owner')));
    expect(await late.store.read.settings.get('by-late')).toBe('the owner');
    // Node early notices the loss and takes no duty back; all its other work continues.
    expect(await early.duties.tend(() => true)).toEqual([]);
    await early.store.write((tx) => tx.settings.set('by-early', 'asked by a person'));
  } finally {
    for (const each of nodes) await each.close();
  }
});

test('work that is stuck loses its duty although its node continues; no duty moves during a unit of work', async () => {
  const place = fleet.postgres.createDatabase('stuck');
  const [stuck, other] = [await openNode(place, 'stuck'), await openNode(place, 'other')];
  const nodes = [stuck, other];
  try {
    await stuck.duties.tend((duty) => duty === 'forwarding');
    const { promise, resolve } = Promise.withResolvers<void>();
    const work = stuck.duties.perform('forwarding', () => promise);
    const untilTaken = async (): Promise<readonly string[]> => {
      for (let passed = 0; passed < 2 * stuckAfterMs; passed += 0.8 * leaseMs) {
        for (const each of nodes) each.later(0.8 * leaseMs);
        await stuck.duties.tend((duty) => duty === 'forwarding');
        const taken = await other.duties.tend((duty) => duty === 'forwarding');
        if (taken.length > 0) return [...taken, passed < stuckAfterMs ? 'too early' : 'in time'];
      }
      return [];
    };
    expect(await untilTaken()).toEqual(['forwarding', 'in time']);
    resolve();
    await work;
    await stuck.duties.tend((duty) => duty === 'forwarding');
    await other.duties.perform('forwarding', () =>
      other.store.write(async () => {
        for (const each of nodes) each.later(1.2 * leaseMs);
        expect(await stuck.duties.tend(() => true)).not.toContain('forwarding');
      }),
    );
    expect(await stuck.duties.tend(() => true)).toContain('forwarding');
  } finally {
    for (const each of nodes) await each.close();
  }
});
