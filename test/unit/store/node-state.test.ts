// What a node keeps on its own disk: the last position, whatever a crash leaves of a write, and the
// quarantine until it is cleared.
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { openNodeState, recordRootRestored } from '../../../server/adapters/store/node-state.ts';
import { folderOfTest } from '../../support/folders.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { differences } from '../../support/sealers.ts';

const positionOf = (records: number) => ({
  last: { epoch: records, history: `h${records}` },
  records,
  root: 'ab',
  rows: 1,
});
const open = (folder: string, accepts = false) => openNodeState(folder, quietLog, accepts);
let folder: string;
beforeEach(() => {
  folder = folderOfTest();
});

test('the newest position that was noted is there at the next start, also when the last write was cut', async () => {
  const first = open(folder);
  expect(first.position).toBeUndefined();
  first.note(positionOf(1));
  await first.kept();
  for (const records of [2, 3, 4]) first.note(positionOf(records));
  await first.kept();
  first.note(positionOf(5));
  await first.close();
  const second = open(folder);
  expect(second.position).toEqual(positionOf(5));
  await second.close();
  const path = join(folder, 'position');
  const whole = readFileSync(path);
  /** Each place of the two cut at each byte: never more than was noted, and never nothing. */
  for (let at = 0; at < whole.length; at += 7) {
    const torn = Buffer.from(whole);
    torn.fill(0, at, Math.min(whole.length, (Math.floor(at / 512) + 1) * 512));
    writeFileSync(path, torn);
    expect([4, 5]).toContain(open(folder).position?.records);
  }
});

test('a quarantine is there until it is cleared; a start refuses one that cannot be read', async () => {
  const quarantine = { finding: { differences, state: 'lost-changes' }, since: 5 } as const;
  const first = open(folder);
  first.note(positionOf(1));
  await first.kept();
  first.recordQuarantine(quarantine);
  recordRootRestored(folder, 0);
  const second = open(folder);
  expect(second.quarantine).toEqual(quarantine);
  expect(second.rootRestoredAt).toBe('1970-01-01T00:00:00.000Z');
  second.clear();
  const third = open(folder);
  expect([third.position, third.quarantine, third.rootRestoredAt]).toEqual([undefined, undefined, undefined]);
  writeFileSync(join(folder, 'quarantine'), '{"finding":');
  expect(() => open(folder)).toThrow('says that this node is in quarantine, and cannot be read');
  expect(open(folder, true).quarantine).toBeUndefined();
  await first.close();
});

test('a disk that refuses the position: nothing is confirmed, no change is made, until it takes it', async () => {
  const state = open(folder);
  expect(state.refusal()).toBeUndefined();
  const path = join(folder, 'position');
  mkdirSync(path);
  state.note(positionOf(1));
  await expect(state.kept()).rejects.toMatchObject({ code: 'unavailable', reason: 'unconfirmed' });
  // Later callers, and later positions, are refused as well.
  await expect(state.kept()).rejects.toMatchObject({ reason: 'unconfirmed' });
  state.note(positionOf(2));
  await expect(state.kept()).rejects.toMatchObject({ reason: 'unconfirmed' });
  expect(state.refusal()).toMatchObject({ code: 'unavailable', message: expect.stringContaining('takes no changes') });
  expect(state.refusal()?.reason).toBeUndefined();

  rmdirSync(path);
  await expect.poll(() => state.refusal()).toBeUndefined();
  await state.kept();
  expect(open(folder).position).toEqual(positionOf(2));
  await state.close();
});

test('a disk that refuses the position does not keep the node from ending', async () => {
  const state = open(folder);
  mkdirSync(join(folder, 'position'));
  state.note(positionOf(1));
  await state.close();
  expect(state.refusal()).toBeDefined();
});

test('a write that fails is done again in its own place: the last that is whole stays', async () => {
  const state = open(folder);
  for (const records of [11, 12]) {
    state.note(positionOf(records));
    await state.kept();
  }
  const path = join(folder, 'position');
  const handle = await openFile(path, 'r');
  const syncs = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'datasync');
  syncs.mockRejectedValue(new Error('EIO'));
  try {
    for (const records of [13, 14, 15]) {
      state.note(positionOf(records));
      await expect(state.kept()).rejects.toMatchObject({ reason: 'unconfirmed' });
      expect(readFileSync(path, 'latin1')).toContain('"h12"');
    }
  } finally {
    syncs.mockRestore();
    await handle.close();
  }
  state.note(positionOf(16));
  await state.kept();
  await state.close();
  expect(open(folder).position).toEqual(positionOf(16));
});
