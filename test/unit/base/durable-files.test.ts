// Files that survive a power failure (server/base/durable-files.ts).
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  publishSoon,
  putInPlaceSoon,
  removeDurably,
  replaceFile,
  writeDurably,
  writeWhole,
} from '../../../server/base/durable-files.ts';
import { folderOfTest } from '../../support/folders.ts';

test('a write that takes a part of its bytes is continued where it ended', async () => {
  const disk = Buffer.alloc(16);
  const handle = {
    write: (bytes: Uint8Array, offset: number, length: number, position: number) => {
      const bytesWritten = Math.min(3, length);
      disk.set(bytes.subarray(offset, offset + bytesWritten), position);
      return Promise.resolve({ bytesWritten, buffer: bytes });
    },
  };
  await writeWhole(handle as never, Buffer.from('erased units'), 2);
  expect(disk.toString('latin1')).toBe('\0\0erased units\0\0');
});

test('a disk that takes nothing ends the write with an error', async () => {
  const handle = { write: () => Promise.resolve({ bytesWritten: 0, buffer: Buffer.alloc(0) }) };
  await expect(writeWhole(handle as never, Buffer.from('x'), 0)).rejects.toThrow('the disk takes no bytes');
});

test('a replaced file has its mode and its content, and no draft stays', async () => {
  const folder = folderOfTest();
  const path = join(folder, 'file');
  replaceFile(path, 'one');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  replaceFile(path, 'two', 0o644);
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['two', 0o644]);
  writeDurably(`${path}.draft`, 'three');
  await putInPlaceSoon(`${path}.draft`, path);
  expect(readFileSync(path, 'utf8')).toBe('three');
  expect(existsSync(`${path}.new`) || existsSync(`${path}.draft`)).toBe(false);
  removeDurably(path);
  removeDurably(path);
  expect(existsSync(path)).toBe(false);
});

test.each([
  ['has links', undefined],
  ['has none', () => Promise.reject(Object.assign(new Error('no links'), { code: 'EPERM' }))],
])('what is published on a disk that %s replaces nothing', async (_, makeLink) => {
  const folder = folderOfTest();
  const [draft, path] = [join(folder, 'draft'), join(folder, 'file')];
  writeDurably(draft, 'one');
  await publishSoon(draft, path, makeLink);
  expect([readFileSync(path, 'utf8'), existsSync(draft)]).toEqual(['one', false]);
  writeDurably(draft, 'two');
  await expect(publishSoon(draft, path, makeLink)).rejects.toMatchObject({ code: 'EEXIST' });
  expect([readFileSync(path, 'utf8'), readFileSync(draft, 'utf8')]).toEqual(['one', 'two']);
});

test('a new file does not replace one that is there', () => {
  const path = join(folderOfTest(), 'file');
  writeFileSync(path, 'one');
  expect(() => writeDurably(path, 'two', { flag: 'wx' })).toThrow('EEXIST');
});
