// The file of a recovery key (addon/FORMAT.md, section 6): its public half unencrypted, its private
// half as a key record under a key that a passphrase gives (scrypt). It is made and opened in the
// addon: here are references, never bytes of the private half.

import { createHash } from 'node:crypto';
import { type Core, CoreError, type KekRef, type KeyRef } from '../../../addon/core.ts';
import { formatRecoveryKey, recoveryKeyId } from '../../base/recovery-key.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readSecretFile, reserveSecretFile } from '../terminal/secret-files.ts';

type FileCore = Pick<
  Core,
  'generateHpkeKey' | 'hpkePublicKey' | 'scryptKek' | 'sealRecord' | 'openRecord' | 'random' | 'release'
>;

const magic = Buffer.from('DKE-RECV');
const format = 1;
const headLength = 80;
/** N = 2^17, r = 8, p = 1: 128 MiB. */
const strong = { cost: 17, r: 8, p: 1 } as const;
/** Without a passphrase the work protects nothing. */
const weak = { cost: 1, r: 1, p: 1 } as const;

const contextOf = (head: Buffer) => ({
  tenant: Buffer.alloc(16),
  object: createHash('sha256').update(head.subarray(48)).digest().subarray(0, 16),
  version: 1,
  epoch: 1,
  class: 'recovery-key',
  attributes: head,
});

export interface RecoveryKeyFile {
  readonly id: string;
  /** `dke-recovery-key+...`. */
  readonly publicKey: string;
  readonly passphrase: boolean;
}

/** Makes a key in a new file, mode 600. The caller wipes the passphrase. */
export const createRecoveryKeyFile = (core: FileCore, path: string, passphrase: Buffer | null): RecoveryKeyFile => {
  const file = reserveSecretFile(path, false);
  try {
    const key = core.generateHpkeKey();
    const publicKey = core.hpkePublicKey(key);
    const { cost, r, p } = passphrase === null ? weak : strong;
    const head = Buffer.alloc(headLength);
    magic.copy(head);
    head.writeUInt32BE(format, 8);
    head.set([cost, r, p, passphrase === null ? 0 : 1], 12);
    core.random(head.subarray(16, 48));
    publicKey.copy(head, 48);
    const kek = core.scryptKek(passphrase ?? Buffer.alloc(0), head.subarray(16, 48), cost, r, p);
    try {
      file.write(Buffer.concat([head, core.sealRecord(kek, contextOf(head), key)]));
    } finally {
      core.release(kek);
      core.release(key);
    }
    return { id: recoveryKeyId(publicKey), publicKey: formatRecoveryKey(publicKey), passphrase: passphrase !== null };
  } catch (error) {
    file.discard();
    throw error;
  }
};

const readHead = (path: string, bytes: Buffer): Buffer => {
  if (bytes.length <= headLength || !bytes.subarray(0, 8).equals(magic))
    throw new CommandError('config', `${path} is not a recovery key`, { hint: 'run dke recovery-key create' });
  if (bytes.readUInt32BE(8) !== format)
    throw new CommandError('config', `${path} has a format that this version does not know`, {
      hint: 'use the version that created it, or a newer one',
    });
  return Buffer.from(bytes.subarray(0, headLength));
};

/** The unencrypted part of the file. */
export const describeRecoveryKeyFile = (path: string): RecoveryKeyFile => {
  const bytes = readSecretFile(path);
  try {
    const head = readHead(path, bytes);
    const publicKey = head.subarray(48);
    return { id: recoveryKeyId(publicKey), publicKey: formatRecoveryKey(publicKey), passphrase: head[15] === 1 };
  } finally {
    bytes.fill(0);
  }
};

/**
 * The caller releases the key. `ask` is called when the file wants a passphrase; its answer is
 * wiped.
 */
export const openRecoveryKeyFile = async (
  core: FileCore,
  path: string,
  ask: () => Promise<Buffer>,
): Promise<{ readonly id: string; readonly key: KeyRef }> => {
  const bytes = readSecretFile(path);
  try {
    const head = readHead(path, bytes);
    const [cost = 0, r = 0, p = 0, wrapped = 0] = head.subarray(12, 16);
    const passphrase = wrapped === 0 ? Buffer.alloc(0) : await ask();
    let kek: KekRef;
    try {
      kek = core.scryptKek(passphrase, head.subarray(16, 48), cost, r, p);
    } finally {
      passphrase.fill(0);
    }
    try {
      const key = core.openRecord(kek, contextOf(head), bytes.subarray(headLength));
      return { id: recoveryKeyId(head.subarray(48)), key };
    } finally {
      core.release(kek);
    }
  } catch (error) {
    if (error instanceof CoreError && ['authentication-failed', 'format', 'bad-argument'].includes(error.code))
      throw new CommandError('denied', `${path} cannot be opened: the passphrase is wrong, or the file was changed`, {
        hint: 'try again, or use another copy of the file',
      });
    throw error;
  } finally {
    bytes.fill(0);
  }
};
