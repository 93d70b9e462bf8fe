// Which former names of a thing an approver sees: the last one, and those that it had for the
// longest time, however often it was renamed in between.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import { formerNamesOf } from '../../../server/operations/approvals/former-names.ts';
import { about } from '../../../server/operations/shared/record-event.ts';
import type { Store } from '../../../server/ports/store.ts';
import { sharedFolder } from '../../support/folders.ts';
import { administrator } from '../../support/open-service.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const start = Date.parse('2026-01-01T00:00:00Z');
let now = start;
let store: Store;
const folder = sharedFolder();
beforeAll(async () => {
  store = await openStore({
    path: join(folder, 'dke.db'),
    clock: { ...systemClock, now: () => now },
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
});
afterAll(() => store.close());

let things = 0;
/** A thing that has each name for as long as it says, from the first of January on. */
const thing = async (names: readonly (readonly [name: string, forMs: number])[], last: string) => {
  things += 1;
  const vault = { kind: 'vault', id: `vault-${things}`, name: last } as const;
  now = start;
  await store.write(async (tx) => {
    for (const [index, [from, forMs]] of names.entries()) {
      now += forMs;
      await tx.audit.append({
        kind: 'vault.renamed',
        actor: administrator,
        ...about('vault', { id: vault.id, tenantId: null }),
        details: { from, name: names[index + 1]?.[0] ?? last },
      });
    }
  });
  return vault;
};
const junk = (count: number, word: string, forMs = minute) =>
  Array.from({ length: count }, (_, index) => [`${word} ${index}`, forMs] as const);
const seen = async (...all: readonly Awaited<ReturnType<typeof thing>>[]) => {
  const { formerNames, formerNamesOmitted } = await formerNamesOf(store.read, all, start + 89 * day);
  return { names: formerNames.map(({ formerName }) => formerName), formerNames, omitted: formerNamesOmitted };
};

test.each([
  [0, 20],
  [20, 0],
  [25, 25],
  [300, 0],
  [0, 300],
  [300, 300],
  [1_000, 1_000],
])('a name of many days is seen behind %i quick ones and before %i', async (before, after) => {
  const names = [...junk(before, 'early'), ['prod-db', 79 * day] as const, ...junk(after, 'late')];
  const found = await seen(await thing(names, 'scratch-17'));
  expect(found.names).toContain('prod-db');
  expect(found.names[0]).toBe(names.at(-1)?.[0]);
  expect(found.names).toHaveLength(Math.min(20, names.length));
  // All were read, or at least so many are not shown.
  if (names.length < 2_500) expect(found.omitted).toBe(Math.max(0, names.length - 20));
  else expect(found.omitted).toBeGreaterThan(0);
});

test('what came too often to be read is said to be left out, and credited with no time', async () => {
  const names = [...junk(2_600, 'quick'), ['prod-db', 60 * day] as const, ...junk(30, 'late')];
  const found = await seen(await thing(names, 'now'));
  expect(found.names[0]).toBe('late 29');
  expect(found.omitted).toBeGreaterThan(2_500);
});

test('decoys at the same moment of each day hide no name', async () => {
  const days = Array.from({ length: 50 }, (_, at) => [
    ['prod', day - 2_000] as const,
    [`decoy ${at}`, 2_000] as const,
  ]).flat();
  const names = [...junk(200, 'quick', 1_000), ...days, ['tmp', minute] as const];
  const found = await seen(await thing(names, 'innocent'));
  expect(found.names.slice(0, 2)).toContain('tmp');
  expect(found.names).toContain('prod');
});

test('a name of some days is seen among others that were there for days, whatever came between', async () => {
  const names = Array.from({ length: 16 }, (_, week) => [
    ...junk(40, `quick ${week}`),
    [`of days ${week}`, 5 * day] as const,
  ]).flat();
  const { names: found } = await seen(await thing(names, 'now'));
  expect(found).toEqual(expect.arrayContaining(Array.from({ length: 16 }, (_, week) => `of days ${week}`)));
});

test('a name that came back counts by all its time, and is named by its last end', async () => {
  const pairs = Array.from({ length: 30 }, (_, index) => [
    ['in turns', 2 * minute] as const,
    [`other ${index}`, 3 * minute] as const,
  ]).flat();
  const { formerNames, names, omitted } = await seen(await thing(pairs, 'now'));
  expect(names.filter((name) => name === 'in turns')).toHaveLength(1);
  expect(formerNames.find(({ formerName }) => formerName === 'in turns')?.until).toBe(now - 3 * minute);
  expect(omitted).toBe(31 - 20);
});

test('the present name is none, and names of before the last 90 days are not seen', async () => {
  const vault = await thing(
    [
      ['too old', 0],
      ['now', day],
      ['before', 3 * day],
    ],
    'now',
  );
  const { formerNames } = await formerNamesOf(store.read, [vault], start + 91 * day);
  expect(formerNames.map(({ formerName }) => formerName)).toEqual(['before']);
});

test('many names of some things hide none of another', async () => {
  const crowd = [];
  for (let count = 0; count < 15; count += 1) crowd.push(await thing(junk(20, `crowd ${count}`), 'of the crowd'));
  const last = await thing([['ledger', day]], 'scratch');
  const { names, omitted } = await seen(...crowd, last);
  expect(names).toHaveLength(200);
  expect(names.at(-1)).toBe('ledger');
  expect(omitted).toBe(15 * 20 + 1 - 200);
});

test('a thing whose names are not read counts as one that is left out', async () => {
  const all = [];
  for (let count = 0; count < 203; count += 1) all.push(await thing([], 'never renamed'));
  expect(await seen(...all)).toEqual({ names: [], formerNames: [], omitted: 3 });
});
