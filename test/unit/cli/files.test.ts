// Files that the command reads: those with a secret, and those that it sends to the service.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openLargeFile, readSecretFile, reserveSecretFile } from '../../../server/cli/terminal/secret-files.ts';
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

/** In a process whose files have at most so many bytes. */
const inLittleSpace = (bytes: number, script: string): string => {
  const module = join(import.meta.dirname, '../../../server/cli/terminal/secret-files.ts');
  const code = `
    import { writeFileSync } from 'node:fs';
    import { Readable } from 'node:stream';
    import { pipeline } from 'node:stream/promises';
    import { exportTo, reserveSecretFile } from ${JSON.stringify(module)};
    try { ${script} } catch (error) { console.log(error.name, error.message, '|', error.hint); }`;
  const { status, stdout, stderr } = spawnSync(
    'prlimit',
    [`--fsize=${bytes}`, process.execPath, '--input-type=module', '--eval', code],
    { encoding: 'utf8' },
  );
  expect([status, stderr]).toEqual([0, '']);
  return stdout.trim();
};
const hint = 'free some space, or name a file on another disk';

test('a full disk is noticed before a secret is asked for, and leaves what was there', () => {
  const fresh = join(folder, 'secret');
  expect(inLittleSpace(1_000, `reserveSecretFile(${JSON.stringify(fresh)}, false)`)).toBe(
    `CommandError ${fresh} cannot be written (ENOSPC) | ${hint}`,
  );
  expect(existsSync(fresh)).toBe(false);
  expect(inLittleSpace(1_000, `reserveSecretFile(${JSON.stringify(path)}, true)`)).toContain('cannot be written');
  expect(readFileSync(path, 'utf8')).toBe('dket_example');
});

test('a disk that fills up afterwards takes the secret all the same, and one that is not written leaves no trace', () => {
  const fresh = join(folder, 'secret');
  // The file reserves more than 60,000 bytes: a secret fits even when the disk is full afterwards.
  const file = reserveSecretFile(fresh, false);
  expect(statSync(fresh).size).toBeGreaterThan(60_000);
  file.write('the secret');
  expect(readFileSync(fresh, 'utf8')).toBe('the secret');
  const kept = reserveSecretFile(path, true);
  kept.discard();
  expect(readFileSync(path, 'utf8')).toBe('dket_example');
});

test('an export that does not fit ends with what to do, and leaves no part', () => {
  const fresh = join(folder, 'export');
  const script = `await exportTo(${JSON.stringify(fresh)}, (into) => pipeline(Readable.from([Buffer.alloc(5_000)]), into))`;
  expect(inLittleSpace(1_000, script)).toBe(`CommandError ${fresh} cannot be written (EFBIG) | ${hint}`);
  expect(existsSync(fresh)).toBe(false);
  const late = `await exportTo(${JSON.stringify(fresh)}, async (into) => void into.write(Buffer.alloc(5_000)))`;
  expect(inLittleSpace(1_000, late)).toBe(`CommandError ${fresh} cannot be written (EFBIG) | ${hint}`);
});
