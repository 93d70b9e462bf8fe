// The command and the core open a recovery key that a page has created: the same file, the same id.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { formatRecoveryKey, parseRecoveryKey } from '../../../server/base/recovery-key.ts';
import { describeRecoveryKeyFile, openRecoveryKeyFile } from '../../../server/cli/service/recovery-key-file.ts';
import { makeRecoveryKey } from '../../../server/clients/web/src/recovery/new-recovery-key.ts';
import { sharedFolder } from '../../support/folders.ts';

const folder = sharedFolder();

test('its file opens only with the passphrase, and its public half is the one that was shown', async () => {
  core.initialize({ allowUnlocked: true });
  const passphrase = 'fünf Wörter für diese Datei';
  const made = await makeRecoveryKey(passphrase);
  const path = join(folder, 'recovery.key');
  writeFileSync(path, made.file, { mode: 0o600 });
  expect(made.file).toHaveLength(267);
  const parsed = parseRecoveryKey(made.publicKey);
  expect(describeRecoveryKeyFile(path)).toEqual({ id: parsed?.id, publicKey: made.publicKey, passphrase: true });
  await expect(openRecoveryKeyFile(core, path, async () => Buffer.from('another one'))).rejects.toThrow(
    'cannot be opened',
  );
  const { id, key } = await openRecoveryKeyFile(core, path, async () => Buffer.from(passphrase));
  expect([id, formatRecoveryKey(core.hpkePublicKey(key))]).toEqual([parsed?.id, made.publicKey]);
  core.release(key);
  const other = await makeRecoveryKey(passphrase);
  expect(Buffer.from(other.file).equals(Buffer.from(made.file))).toBe(false);
});
