// The data path of a TDE application: encrypt, decrypt, sign, verify with a token key, and the check that it may be used.
// A soft-deleted master key goes on from its sealed copy: its first use re-imports the vault copy (specification section 3).
// Refusals name the reason that the database's administrator needs. One request costs no store access when the key is in
// the directory's cache.

import { digestLengths } from '../../base/digests.ts';
import { ServiceError, type ServiceErrorCode } from '../../base/errors.ts';
import type { Key, KeyUsage } from '../../domain/key.ts';
import { refusalOfUse } from '../../domain/lifecycle.ts';
import type { CipherParameters, Direction, KeyRef } from '../../ports/crypto-core.ts';
import type { LoadedObject, OpenedObject } from '../../ports/directory.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { TdeCaller, TdeOperations } from '../index.ts';
import { recordPlace } from '../key-records.ts';
import {
  findVisible,
  instanceDetails,
  isVisible,
  recordDenial,
  requireOwner,
  requireStillMember,
} from './visibility.ts';

export type UsePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'usage' | 'clock' | 'log'>;

/** What is done with a key: what it says that it is for, or that it leaves, in the clear or wrapped. */
export type TokenKeyUse = KeyUsage | 'export';

/** Puts the vault copy back from the sealed copy, once for each deletion. */
const reimportVaultCopy = async (
  { store, core, ring, directory, clock, log }: UsePorts,
  caller: TdeCaller,
  keyId: string,
): Promise<void> => {
  try {
    await store.write(async (tx) => {
      const key = await tx.keys.get(caller.application.tenantId, keyId);
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

interface Refusal {
  readonly code: ServiceErrorCode;
  readonly message: string;
  /** What the audit log calls it; null for what is the caller's mistake and no matter of policy. */
  readonly recorded: string | null;
}
const refuse = (code: ServiceErrorCode, message: string, recorded: string | null = null): Refusal => ({
  code,
  message,
  recorded,
});

const stateMessages = {
  'key-disabled': 'the key is disabled',
  'key-not-found': 'no such key',
  'key-destroyed': 'the key is destroyed',
} as const;

/** Why a key is not used so, now; null when it is. Whatever can change is looked at here, again in the step of the use. */
const refusalOf = ({ object, key, vault }: LoadedObject, use: TokenKeyUse): Refusal | null => {
  if (key === undefined) return refuse('key-usage', 'the object has no key that the service keeps');
  if (use === 'export') {
    if (!object.extractable) return refuse('forbidden', 'the key is not extractable', 'not extractable');
  } else if (!object.usages.includes(use)) {
    return refuse('key-usage', `the key is not for ${use}`);
  }
  if (use === 'decrypt' && object.wrappedSensitive)
    return refuse('key-usage', 'a key that has wrapped sensitive keys does not decrypt');
  const state = refusalOfUse(key);
  if (state !== null) return refuse(state, stateMessages[state], state);
  if (vault?.state !== 'enabled' || vault.integrity !== 'ok')
    return refuse('key-disabled', 'the vault of the key is not enabled', 'vault not enabled');
  return null;
};

/** A use of a key by its handle. */
export interface Wanted {
  readonly handle: number;
  readonly use: TokenKeyUse;
}

/** The object, checked for a use now. Throws what refuses it. Only its owner takes a key out. */
export const admit = async (ports: UsePorts, caller: TdeCaller, { handle, use }: Wanted): Promise<LoadedObject> => {
  const loaded = await findVisible(ports, caller, handle, use);
  const { key, object } = loaded;
  if (use === 'export') await requireOwner(ports, caller, loaded, use);
  const refusal = refusalOf(loaded, use);
  if (refusal !== null) {
    if (refusal.recorded !== null) await recordDenial(ports, caller, object, use, refusal.recorded);
    throw new ServiceError(refusal.code, refusal.message);
  }
  if (key?.state === 'soft-deleted' && key.reimportedAt === null) await reimportVaultCopy(ports, caller, key.id);
  return loaded;
};

/** The uses that would be admitted now. Nothing is recorded, and nothing done: where a use would, it is not among them. */
export const admittedUses = async (
  { directory }: Pick<UsePorts, 'directory'>,
  caller: TdeCaller,
  handle: number,
): Promise<readonly KeyUsage[]> => {
  const loaded = await directory.object(handle);
  if (loaded?.key === undefined || !isVisible(caller, loaded.object)) return [];
  const { object, key } = loaded;
  if (object.integrity !== 'ok' || key.integrity !== 'ok') return [];
  if (key.state === 'soft-deleted' && key.reimportedAt === null) return [];
  return object.usages.filter((use) => refusalOf(loaded, use) === null);
};

/** Runs `work` with the keys of these objects, each admitted for its use; counts the uses, and answers what it answers. */
export const withTokenKeys = async <T>(
  ports: UsePorts,
  caller: TdeCaller,
  wanted: readonly Wanted[],
  work: (opened: readonly OpenedObject[]) => T,
): Promise<T> => {
  const { directory, usage } = ports;
  const admitted: { readonly id: string; readonly use: TokenKeyUse }[] = [];
  for (const each of wanted) admitted.push({ id: (await admit(ports, caller, each)).object.id, use: each.use });
  const count = (succeeded: boolean): void => {
    for (const { id, use } of admitted) usage.used(caller.application, id, use, succeeded);
  };
  try {
    const answer = await directory.withObjectKeys(
      wanted.map(({ handle }) => handle),
      (opened) => {
        // The state may have changed since it was admitted.
        for (const [at, { loaded }] of opened.entries()) {
          requireStillMember(ports, caller, loaded);
          const refusal = refusalOf(loaded, wanted[at]?.use ?? 'export');
          if (refusal !== null) throw new ServiceError(refusal.code, refusal.message);
        }
        return work(opened);
      },
    );
    if (answer === undefined) throw new ServiceError('key-destroyed', stateMessages['key-destroyed']);
    count(true);
    return answer.value;
  } catch (error) {
    count(false);
    throw error;
  }
};

/** The same with one key. */
export const withTokenKey = <T>(
  ports: UsePorts,
  caller: TdeCaller,
  wanted: Wanted,
  work: (reference: KeyRef, loaded: LoadedObject) => T,
): Promise<T> =>
  withTokenKeys(ports, caller, [wanted], ([opened]) => {
    if (opened === undefined) throw new ServiceError('internal', 'no key was opened');
    return work(opened.reference, opened.loaded);
  });

/**
 * Looks in the transaction that records how key bytes leave whether the key may still be used: so no such record, and no such
 * bytes, come after the record of a destruction.
 */
export const requireStillUsable = async (tx: Repositories, tenantId: string, keyId: string): Promise<void> => {
  const key = await tx.keys.get(tenantId, keyId);
  const refusal = key === undefined ? 'key-not-found' : refusalOfUse(key);
  if (refusal !== null) throw new ServiceError(refusal, stateMessages[refusal]);
};

/** The same for a key that leaves itself: nor do they come after the record that ended that. */
export const requireStillExportable = async (
  tx: Repositories,
  tenantId: string,
  keyId: string,
  sensitive: boolean,
): Promise<void> => {
  await requireStillUsable(tx, tenantId, keyId);
  const object = await tx.objects.getById(keyId);
  if (object === undefined || !object.extractable || object.integrity !== 'ok')
    throw new ServiceError('forbidden', 'the key is not extractable');
  if (object.sensitive && !sensitive) throw new ServiceError('forbidden', 'the key became sensitive meanwhile');
};

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
    use: KeyUsage,
    work: (reference: KeyRef, loaded: LoadedObject) => T,
  ): Promise<T> => withTokenKey(ports, caller, { handle, use }, work);

  const cipher =
    (direction: Direction) => (caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array) =>
      withKey(caller, handle, direction, (reference, { object }) => {
        if (object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
        const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
        const length = core.cipher(reference, direction, parameters, input, out);
        return length === out.length ? out : out.subarray(0, length);
      });

  return {
    checkUse: async (caller, handle, use) => {
      await admit(ports, caller, { handle, use });
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
