// Receipts of backups: who owns the file, and when it answers that there are none.
import { chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addReceipt, readReceipts } from '../../../server/adapters/roots/receipts.ts';
import { folderOfTest } from '../../support/folders.ts';

const read = (path: string) => readReceipts(path, (found) => found);

test('a new file belongs to the owner of its folder, so that the service reads what root has added', () => {
  const folder = folderOfTest();
  if (process.getuid?.() === 0) chownSync(folder, 65534, 65534);
  const path = join(folder, 'receipts');
  expect(read(path)).toEqual([]);
  addReceipt(path, { id: 'one' });
  addReceipt(path, { id: 'two' });
  const { uid, gid, mode } = statSync(path);
  const owner = statSync(folder);
  expect([uid, gid, mode & 0o777]).toEqual([owner.uid, owner.gid, 0o600]);
  expect(read(path)).toEqual([{ id: 'one' }, { id: 'two' }]);
});

test('a link in its place is not written through', () => {
  const folder = folderOfTest();
  const [path, other] = [join(folder, 'receipts'), join(folder, 'other')];
  writeFileSync(other, 'as it was');
  symlinkSync(other, path);
  expect(() => addReceipt(path, { id: 'one' })).toThrow('ELOOP');
  expect(statSync(other).size).toBe(9);
});

test('a file that cannot be read is not the same as none', () => {
  const path = join(folderOfTest(), 'receipts');
  mkdirSync(path);
  expect(() => read(path)).toThrow(`${path} cannot be read (EISDIR)`);
});
