// The passphrase of a new recovery key: one rule with root providers (server/base/passphrase.ts).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shortestPassphrase } from '../../../server/base/passphrase.ts';
import { readPassphrase } from '../../../server/cli/terminal/ask-secret.ts';
import { folderOfTest } from '../../support/folders.ts';

const fileOf = (length: number): string => {
  const path = join(folderOfTest(), `passphrase-${length}`);
  writeFileSync(path, `${'p'.repeat(length)}\n`, { mode: 0o600 });
  return path;
};

test('a new passphrase that is too short is refused; one of an existing key is not judged', async () => {
  const short = fileOf(shortestPassphrase - 1);
  await expect(readPassphrase(short, true)).rejects.toThrow(
    `the passphrase of the recovery key must have at least ${shortestPassphrase} bytes`,
  );
  expect((await readPassphrase(short)).length).toBe(shortestPassphrase - 1);
  expect((await readPassphrase(fileOf(shortestPassphrase), true)).length).toBe(shortestPassphrase);
});
