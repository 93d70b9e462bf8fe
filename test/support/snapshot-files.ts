// Snapshot files for tests: a folder with an archive over the real addon, a recovery key and a
// signer.
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyRef } from '../../addon/core.ts';
import { openArchive } from '../../server/adapters/archives/archive.ts';
import { parseBase64 } from '../../server/base/bytes.ts';
import { verifierKey } from '../../server/base/checkpoint.ts';
import { newId } from '../../server/base/ids.ts';
import { recoveryKeyId, sealingContext } from '../../server/base/recovery-key.ts';
import type { SnapshotPreface } from '../../server/ports/snapshot-archive.ts';
import { core } from './core-keys.ts';

export interface TestSigner {
  readonly publicKey: Buffer;
  readonly verifier: string;
  sign(text: string): Buffer;
}

export const makeSigner = (): TestSigner => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    publicKey: raw,
    verifier: verifierKey('dke/audit/test', raw),
    sign: (text) => sign(null, Buffer.from(text), privateKey),
  };
};

export const makeRecoveryKey = (given?: KeyRef) => {
  const key = given ?? core.generateHpkeKey();
  const publicKey = core.hpkePublicKey(key);
  return { key, publicKey, id: recoveryKeyId(publicKey) };
};

/** The snapshot's own key, as who has a recovery key opens it. */
export const openSnapshotKey = (
  preface: SnapshotPreface,
  { key, id }: { readonly key: KeyRef; readonly id: string },
): KeyRef => {
  const sealed = parseBase64(preface.recipients.find(({ recoveryKeyId: own }) => own === id)?.sealedKey ?? '');
  const { info, aad } = sealingContext(preface.snapshotId, preface.tenantId, id);
  return core.hpkeOpenKey(key, info, aad, sealed ?? Buffer.alloc(0), 'generic');
};

export const makeArchive = () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-snapshots-'));
  const directory = join(folder, 'snapshots');
  const archive = openArchive(core, directory);
  archive.prepare();
  return {
    archive,
    pathOf: (id: string) => join(directory, `${id}.dkesnap`),
    newId: () => newId(Date.now()),
    end: () => rmSync(folder, { recursive: true }),
  };
};
