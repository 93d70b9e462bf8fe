// The names of `dke backup create --folder`, and which files `--keep` removes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freeNameIn, outdated } from '../../../server/cli/host/backup.ts';

const at = (day: number, node = ''): string => `dke-202601${String(day).padStart(2, '0')}T010000Z${node}.dkebackup`;
const all = (name: string) => Promise.resolve(name);

test('the oldest dated files go, so that as many are left as were named', async () => {
  const names = [at(3), at(1, '-0123456789ab'), at(2), at(4), 'mine.dkebackup', `${at(1)}.part`, 'dke-2026.dkebackup'];
  expect(await outdated(names, at(4), 2, all)).toEqual([at(1, '-0123456789ab'), at(2)]);
  expect(await outdated(names, at(4), 1, all)).toEqual([at(1, '-0123456789ab'), at(2), at(3)]);
  expect(await outdated(names, at(4), 9, all)).toEqual([]);
});

test('the new file stays when the clock was set back, and its name is the oldest', async () => {
  expect(await outdated([at(1), at(2), at(3)], at(1), 2, all)).toEqual([at(2)]);
  expect(await outdated([at(1), at(2), at(3)], at(1), 1, all)).toEqual([at(2), at(3)]);
});

test('a file of another service is neither counted nor removed', async () => {
  const isOwn = (name: string) => Promise.resolve(name === at(1) || name === at(3) ? undefined : name);
  expect(await outdated([at(1), at(2), at(3), at(4), at(5)], at(5), 2, isOwn)).toEqual([at(2)]);
});

test('a copy of an old backup under a later name counts as that backup, and is left alone', async () => {
  const idOf = (name: string) => Promise.resolve(name >= at(20) ? at(1) : name);
  const names = [at(1), at(2), at(3), at(4), at(20), at(21), at(22)];
  expect(await outdated(names, at(4), 3, idOf)).toEqual([at(1)]);
  // Its own backup, too.
  expect(
    await outdated([at(2), at(3), at(9)], at(3), 2, (name) => Promise.resolve(name === at(9) ? at(3) : name)),
  ).toEqual([]);
});

test('a backup of the same second has the name of the next one that is free', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-names-'));
  try {
    const moment = Date.parse('2026-01-31T23:59:58.900Z');
    const made = [0, 1, 2].map(() => {
      const name = freeNameIn(folder, moment, 'node_0123456789ab');
      writeFileSync(join(folder, name), '');
      return name;
    });
    expect(made).toEqual([
      'dke-20260131T235958Z-0123456789ab.dkebackup',
      'dke-20260131T235959Z-0123456789ab.dkebackup',
      'dke-20260201T000000Z-0123456789ab.dkebackup',
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
