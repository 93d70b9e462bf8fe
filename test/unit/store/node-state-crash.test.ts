// A power failure at each write of a node's own state: what is there before or after, and a
// quarantine ends last.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openNodeState, recordRootRestored } from '../../../server/adapters/store/node-state.ts';
import { crashPoints } from '../../support/crash-points.ts';
import { folderOfTest } from '../../support/folders.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { differences } from '../../support/sealers.ts';

const open = (folder: string) => openNodeState(folder, quietLog, false);
const quarantine = { finding: { differences, state: 'lost-changes' }, since: 5 } as const;
/** Each state that a crash can leave, as the next start reads it. */
const statesOf = async (folder: string, work: (state: ReturnType<typeof open>) => unknown) => {
  const state = open(folder);
  const { states } = await crashPoints(folder, async () => {
    await work(state);
    await state.kept();
  });
  await state.close();
  return states.map((copy) => {
    const { position, quarantine: found, rootRestoredAt } = open(copy);
    return { position: position === undefined ? 'none' : 'known', quarantine: found?.since, rootRestoredAt };
  });
};

test('a quarantine is recorded as a whole or not at all', async () => {
  const states = await statesOf(folderOfTest(), (state) => state.recordQuarantine(quarantine));
  expect(new Set(states.map(({ quarantine: since }) => since))).toEqual(new Set([undefined, 5]));
  expect(states.at(-1)?.quarantine).toBe(5);
});

test('that the root key was restored is recorded as a whole or not at all', async () => {
  const folder = folderOfTest();
  const { states } = await crashPoints(folder, () => recordRootRestored(folder, 0));
  const found = states.map((copy) => open(copy).rootRestoredAt);
  expect(new Set(found)).toEqual(new Set([undefined, '1970-01-01T00:00:00.000Z']));
});

test('a confirmation that is cut off leaves the quarantine until nothing else is left', async () => {
  const folder = folderOfTest();
  const first = open(folder);
  first.note({ last: { epoch: 1, history: 'h' }, rows: 1 } as Parameters<typeof first.note>[0]);
  await first.kept();
  first.recordQuarantine(quarantine);
  recordRootRestored(folder, 0);
  await first.close();
  const states = await statesOf(folder, (state) => state.clear());
  for (const { position, quarantine: since, rootRestoredAt } of states)
    if (since === undefined) expect([position, rootRestoredAt]).toEqual(['none', undefined]);
  expect(states.at(0)).toMatchObject({ position: 'known', quarantine: 5 });
  expect(open(join(folder)).quarantine).toBeUndefined();
});
