// The data path of a TDE application: encrypt, decrypt, sign, verify with a token key, and the check that it may be used.
// A soft-deleted master key goes on from its sealed copy: its first use re-imports the vault copy (specification section 3).
// Refusals name the reason that the database's administrator needs. One request costs no store access when the key is in
// the directory's cache.

import { digestLengths } from '../../base/digests.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Key, KeyUsage } from '../../domain/key.ts';
import { refusalOfUse } from '../../domain/lifecycle.ts';
import type { CipherParameters, Direction, KeyRef } from '../../ports/crypto-core.ts';
import type { LoadedObject } from '../../ports/directory.ts';
import type { Ports } from '../../ports/ports.ts';
import type { TdeCaller, TdeOperations } from '../index.ts';
import { recordPlace } from '../key-records.ts';
import { findVisible, instanceDetails, recordDenial } from './visibility.ts';

export type UsePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'usage' | 'clock' | 'log'>;

const refusals = {
  'key-disabled': 'the key is disabled',
  'key-not-found': 'no such key',
  'key-destroyed': 'the key is destroyed',
} as const;

/** Puts the vault copy back from the sealed copy, once for each deletion. */
const reimportVaultCopy = async (
  { store, core, ring, directory, clock, log }: UsePorts,
  caller: TdeCaller,
  keyId: string,
): Promise<void> => {
  try {
    await store.write(async (tx) => {
      const key = await tx.keys.get(keyId);
      if (key === undefined || key.state !== 'soft-deleted' || key.reimportedAt !== null) return;
      const place = recordPlace(key, key.currentVersion, 'sealed-copy');
      const record = await tx.records.get(keyId, key.currentVersion, 'sealed-copy');
      if (record === undefined) return;
      const reference = ring.open({ ...record, ...place });
      try {
        await tx.records.put(ring.seal(recordPlace(key, key.currentVersion, 'vault-copy'), reference));
      } finally {
        core.release(reference);
      }
      const after: Key = { ...key, reimportedAt: clock.now() };
      await tx.keys.update(after);
      await tx.audit.append({
        kind: 'key.reimported',
        actor: caller.actor,
        tenantId: key.tenantId,
        subject: { kind: 'key', id: keyId },
        details: { name: key.name, applicationId: caller.application.id, ...instanceDetails(caller) },
      });
    });
    await directory.renew({ keys: [keyId] });
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') throw error;
    // The sealed copy is enough to go on: a store that cannot be written must not stop the database.
    log.error('a vault copy could not be re-imported; the next use tries again', { keyId, error });
  }
};

/** The object, checked for a use now. Throws what refuses it. */
export const admit = async (
  ports: UsePorts,
  caller: TdeCaller,
  handle: number,
  usage: KeyUsage,
): Promise<LoadedObject> => {
  const loaded = await findVisible(ports, caller, handle, usage);
  const { key, vault, object } = loaded;
  if (key === undefined) throw new ServiceError('key-usage', 'the object has no key that the service keeps');
  if (!object.usages.includes(usage)) throw new ServiceError('key-usage', `the key is not for ${usage}`);
  if (usage === 'decrypt' && object.wrappedSensitive) throw neverDecrypts();
  const refusal = refusalOfUse(key);
  if (refusal !== null) {
    await recordDenial(ports, caller, object, usage, refusal);
    throw new ServiceError(refusal, refusals[refusal]);
  }
  if (vault?.state !== 'enabled' || vault.integrity !== 'ok') {
    await recordDenial(ports, caller, object, usage, 'vault not enabled');
    throw new ServiceError('key-disabled', 'the vault of the key is not enabled');
  }
  if (key.state === 'soft-deleted' && key.reimportedAt === null) await reimportVaultCopy(ports, caller, key.id);
  return loaded;
};

/** Runs `use` with the key of an object, counts it, and answers what it answers. */
export const withTokenKey = async <T>(
  ports: UsePorts,
  caller: TdeCaller,
  handle: number,
  operation: KeyUsage,
  use: (reference: KeyRef, loaded: LoadedObject) => T,
): Promise<T> => {
  const { directory, usage } = ports;
  const { object } = await admit(ports, caller, handle, operation);
  try {
    const answer = await directory.withObjectKey(handle, (reference, loaded) => {
      // The state may have changed while the key was being opened.
      const refusal = loaded.key === undefined ? 'key-not-found' : refusalOfUse(loaded.key);
      if (refusal !== null) throw new ServiceError(refusal, refusals[refusal]);
      if (operation === 'decrypt' && loaded.object.wrappedSensitive) throw neverDecrypts();
      return use(reference, loaded);
    });
    if (answer === undefined) throw new ServiceError('key-destroyed', refusals['key-destroyed']);
    usage.used(caller.application, object.id, operation, true);
    return answer.value;
  } catch (error) {
    usage.used(caller.application, object.id, operation, false);
    throw error;
  }
};

const neverDecrypts = (): ServiceError =>
  new ServiceError('key-usage', 'a key that has wrapped sensitive keys does not decrypt');

export const tokenKeyUses = (
  ports: UsePorts,
): Pick<
  TdeOperations,
  'checkUse' | 'encrypt' | 'decrypt' | 'decryptOaep' | 'sign' | 'signWithPrivateKey' | 'verify'
> => {
  const { core } = ports;
  const withKey = <T>(
    caller: TdeCaller,
    handle: number,
    operation: KeyUsage,
    use: (reference: KeyRef, loaded: LoadedObject) => T,
  ): Promise<T> => withTokenKey(ports, caller, handle, operation, use);

  const cipher =
    (direction: Direction) => (caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array) =>
      withKey(caller, handle, direction, (reference, { object }) => {
        if (object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
        const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
        const length = core.cipher(reference, direction, parameters, input, out);
        return length === out.length ? out : out.subarray(0, length);
      });

  return {
    checkUse: async (caller, handle, asked) => {
      await admit(ports, caller, handle, asked);
    },
    encrypt: cipher('encrypt'),
    decrypt: cipher('decrypt'),
    decryptOaep: (caller, handle, parameters, input) =>
      withKey(caller, handle, 'decrypt', (reference, { object }) => {
        if (object.algorithm !== 'rsa') throw new ServiceError('key-usage', 'the key is not an RSA key');
        return core.oaepDecrypt(reference, parameters, input);
      }),
    signWithPrivateKey: (caller, handle, parameters, input) =>
      withKey(caller, handle, 'sign', (reference, { object }) => {
        if (object.class !== 'private-key') throw new ServiceError('key-usage', 'the key is not a private key');
        return core.sign(reference, parameters, input);
      }),
    sign: (caller, handle, parameters, input) =>
      withKey(caller, handle, 'sign', (reference) => {
        const out = Buffer.alloc(parameters.algorithm === 'hmac' ? digestLengths[parameters.digest] : 16);
        return out.subarray(0, core.mac(reference, parameters, input, out));
      }),
    verify: async (caller, handle, parameters, input, signature, length) => {
      const sound = await withKey(caller, handle, 'verify', (reference) => {
        const out = Buffer.alloc(parameters.algorithm === 'hmac' ? digestLengths[parameters.digest] : 16);
        const whole = core.mac(reference, parameters, input, out);
        const expected = out.subarray(0, Math.min(whole, length ?? whole));
        return signature.length === expected.length && core.timingSafeEqual(expected, signature);
      });
      if (!sound) throw new ServiceError('invalid-ciphertext', 'the signature is wrong');
    },
  };
};
