// Files that the command reads: those with a secret, and those that it sends to the service.
import { chmodSync, chownSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openLargeFile, readSecretFile } from '../../../server/cli/files.ts';
import { folderOfTest } from '../../support/folders.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.info('files of another user are not tested: it takes root');
let folder: string;
let path: string;
beforeEach(() => {
  folder = folderOfTest();
  path = join(folder, 'token');
  writeFileSync(path, 'dket_example', { mode: 0o600 });
});

test('a file that others can read is refused', () => {
  chmodSync(path, 0o640);
  expect(() => readSecretFile(path)).toThrow('can be read by others (mode 640)');
});

test.runIf(isRoot)('root reads a file of another user', () => {
  chownSync(path, 1, 1);
  expect(readSecretFile(path).toString()).toBe('dket_example');
});

const contents = async (name: string): Promise<string> => {
  const { from } = await openLargeFile(name);
  return (await from.toArray()).map(String).join('');
};

test('a file to be sent is read as it is, and one that cannot be read is named', async () => {
  expect(await contents(path)).toBe('dket_example');
  writeFileSync(path, '');
  expect(await contents(path)).toBe('');
  await expect(contents(join(folder, 'none'))).rejects.toThrow(`${join(folder, 'none')} cannot be read (ENOENT)`);
  await expect(contents(folder)).rejects.toThrow(`${folder} cannot be read (EISDIR)`);
});

test('a file that becomes shorter while it is read', async () => {
  const { from, size } = await openLargeFile(path);
  expect(size).toBe(12);
  truncateSync(path, 5);
  await expect(from.toArray()).rejects.toThrow(`${path} became shorter while it was read`);
});
