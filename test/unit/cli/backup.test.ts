// Which files `dke backup create --folder --keep` removes.
import { expect, test } from 'vitest';
import { outdated } from '../../../server/cli/backup.ts';

const at = (day: number): string => `dke-202601${String(day).padStart(2, '0')}T010000Z.dkebackup`;

test('the oldest dated files go, so that as many are left as were named', () => {
  const names = [at(3), at(1), at(2), at(4), 'mine.dkebackup', `${at(1)}.part`, 'dke-2026.dkebackup'];
  expect(outdated(names, at(4), 2)).toEqual([at(1), at(2)]);
  expect(outdated(names, at(4), 1)).toEqual([at(1), at(2), at(3)]);
  expect(outdated(names, at(4), 9)).toEqual([]);
});

test('the new file stays when the clock was set back, and its name is the oldest', () => {
  expect(outdated([at(1), at(2), at(3)], at(1), 2)).toEqual([at(2)]);
  expect(outdated([at(1), at(2), at(3)], at(1), 1)).toEqual([at(2), at(3)]);
});
