// Files with a secret that the command reads.
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSecretFile } from '../../../server/cli/files.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.info('files of another user are not tested: it takes root');
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dke-secret-'));
  path = join(folder, 'token');
  writeFileSync(path, 'dket_example', { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a file that others can read is refused', () => {
  chmodSync(path, 0o640);
  expect(() => readSecretFile(path)).toThrow('can be read by others (mode 640)');
});

test.runIf(isRoot)('root reads a file of another user', () => {
  chownSync(path, 1, 1);
  expect(readSecretFile(path).toString()).toBe('dket_example');
});
