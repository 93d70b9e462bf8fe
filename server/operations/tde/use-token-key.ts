// The data path of a TDE application: encrypt, decrypt, sign, verify with a token key, and the check that it may be used.
// A soft-deleted master key continues from its sealed copy: its first use re-imports the vault copy (reimport-vault-copy.ts).
// Refusals name the reason that the database's administrator needs. One request costs no store access when the key is in
// the directory's cache.

import { digestLengths } from '../../base/digests.ts';
import { ServiceError, type ServiceErrorCode } from '../../base/errors.ts';
import type { KeyUsage } from '../../domain/key.ts';
import { refusalOfState, refusalOfTokenKey, type TokenKeyRefusal, type TokenKeyUse } from '../../domain/key-policy.ts';
import type { CipherParameters, Direction, KeyRef, MacParameters } from '../../ports/crypto-core.ts';
import type { LoadedObject, OpenedObject } from '../../ports/directory.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { requireRsaSize, requireSwitch } from './compatibility.ts';
import type { PartOfMessage, TdeCaller, TdeOperations } from './interface.ts';
import { createIvClaims } from './iv-claims.ts';
import { reimportVaultCopy } from './reimport-vault-copy.ts';
import { inTurn, isSlowPrivateKey } from './slow-work.ts';
import { findVisible, isVisible, recordDenial, requireOwner, requireStillMember } from './visibility.ts';

export type UsePorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'usage' | 'clock' | 'log'>;

interface Refusal {
  readonly code: ServiceErrorCode;
  readonly hint?: string;
  readonly message: string | ((use: TokenKeyUse) => string);
  /** What the audit log calls it. Absent: a mistake of the caller, not a matter of policy. */
  readonly recorded?: string;
}

const refusals = {
  'no-key': { code: 'key-usage', message: 'the object has no key that the service keeps' },
  'not-extractable': { code: 'forbidden', message: 'the key is not extractable', recorded: 'not extractable' },
  usage: { code: 'key-usage', message: (use) => `the key is not for ${use}` },
  'wraps-sensitive-keys': { code: 'key-usage', message: 'a key that has wrapped sensitive keys does not decrypt' },
  unreadable: {
    code: 'key-usage',
    message: 'this master key does not decrypt, so it encrypts nothing',
    hint: 'run dke tde key allow-decryption; or set a new master key in the database',
    recorded: 'does not decrypt',
  },
  'key-disabled': { code: 'key-disabled', message: 'the key is disabled', recorded: 'key-disabled' },
  'key-not-found': { code: 'key-not-found', message: 'no such key', recorded: 'key-not-found' },
  'key-destroyed': { code: 'key-destroyed', message: 'the key is destroyed', recorded: 'key-destroyed' },
  vault: { code: 'key-disabled', message: 'the vault of the key is not enabled', recorded: 'vault not enabled' },
} satisfies Record<TokenKeyRefusal, Refusal>;

const refused = (refusal: TokenKeyRefusal, use: TokenKeyUse): ServiceError => {
  const { code, message, hint }: Refusal = refusals[refusal];
  return new ServiceError(
    code,
    typeof message === 'string' ? message : message(use),
    hint === undefined ? {} : { hint },
  );
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
  const refusal = refusalOfTokenKey(loaded, use);
  if (refusal !== null) {
    const { recorded }: Refusal = refusals[refusal];
    if (recorded !== undefined) await recordDenial(ports, caller, object, use, recorded);
    throw refused(refusal, use);
  }
  if (key?.state === 'soft-deleted' && key.reimportedAt === null) await reimportVaultCopy(ports, caller, key.id);
  return loaded;
};

/** The uses of a visible object that would be admitted now. Nothing is recorded, and nothing done: where a use would, it is not among them. */
export const usesAdmitted = (loaded: LoadedObject): readonly KeyUsage[] => {
  const { object, key } = loaded;
  if (key === undefined) return [];
  if (object.integrity !== 'ok' || key.integrity !== 'ok') return [];
  if (key.state === 'soft-deleted' && key.reimportedAt === null) return [];
  return object.usages.filter((use) => refusalOfTokenKey(loaded, use) === null);
};

export const admittedUses = async (
  { directory }: Pick<UsePorts, 'directory'>,
  caller: TdeCaller,
  handle: number,
): Promise<readonly KeyUsage[]> => {
  const loaded = await directory.object(handle);
  return loaded === undefined || !isVisible(caller, loaded.object) ? [] : usesAdmitted(loaded);
};

/**
 * Runs `work` with the keys of these objects, each admitted for its use; counts the uses, and answers what it answers. The keys are there until
 * `work` returns: what it promises continues without them.
 */
export const withTokenKeys = async <T>(
  ports: UsePorts,
  caller: TdeCaller,
  wanted: readonly Wanted[],
  work: (opened: readonly OpenedObject[]) => T | Promise<T>,
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
          const use = wanted[at]?.use ?? 'export';
          const refusal = refusalOfTokenKey(loaded, use);
          if (refusal !== null) throw refused(refusal, use);
        }
        return work(opened);
      },
    );
    if (answer === undefined) throw new ServiceError('key-destroyed', refusals['key-destroyed'].message);
    const value = await answer.value;
    count(true);
    return value;
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
  work: (reference: KeyRef, loaded: LoadedObject) => T | Promise<T>,
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
  const refusal = key === undefined ? 'key-not-found' : refusalOfState(key);
  if (refusal !== null) throw new ServiceError(refusal, refusals[refusal].message);
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
  if (object.sensitive && !sensitive) throw new ServiceError('forbidden', 'the key became sensitive in the meantime');
};

/** The same with a private key, whose size says whether it takes a turn. */
const withPrivateKey = async <T>(
  ports: UsePorts,
  caller: TdeCaller,
  handle: number,
  use: KeyUsage,
  work: (reference: KeyRef, loaded: LoadedObject, slow: boolean) => T | Promise<T>,
): Promise<T> => {
  const loaded = await ports.directory.object(handle);
  const slow = loaded !== undefined && isSlowPrivateKey(loaded.object);
  const run = () =>
    withTokenKey(ports, caller, { handle, use }, (reference, now) => {
      requireRsaSize(caller, ports.core.describe(reference), 'forbidden');
      return work(reference, now, slow);
    });
  return slow ? inTurn('computation', caller, run) : run();
};

const wrongSignature = (): ServiceError => new ServiceError('invalid-ciphertext', 'the signature is wrong');

export const tokenKeyUses = (
  ports: UsePorts,
): Pick<
  TdeOperations,
  | 'checkUse'
  | 'encrypt'
  | 'decrypt'
  | 'cipherPart'
  | 'decryptWithPrivateKey'
  | 'sign'
  | 'signPart'
  | 'signWithPrivateKey'
  | 'verify'
  | 'verifyPart'
> => {
  const { core } = ports;
  const withKey = <T>(
    caller: TdeCaller,
    handle: number,
    use: KeyUsage,
    work: (reference: KeyRef, loaded: LoadedObject) => T | Promise<T>,
  ): Promise<T> => withTokenKey(ports, caller, { handle, use }, work);

  const { claimIv, claimPart } = createIvClaims(core);
  const contextOf = (caller: TdeCaller, { id }: { readonly id: string }): Buffer =>
    Buffer.from(`${caller.application.id}\n${id}`);

  const cipher =
    (direction: Direction) => (caller: TdeCaller, handle: number, parameters: CipherParameters, input: Uint8Array) =>
      withKey(caller, handle, direction, (reference, { object }) => {
        if (object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
        const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
        const length = core.cipher(reference, direction, parameters, input, out);
        // Nothing leaves when it is refused; what was refused before used up nothing.
        if (direction === 'encrypt' && !caller.application.compatibility.includes('repeated-ivs'))
          claimIv(object, parameters, input);
        return length === out.length ? out : out.subarray(0, length);
      });

  const macPart = (
    caller: TdeCaller,
    handle: number,
    use: 'sign' | 'verify',
    parameters: MacParameters,
    part: PartOfMessage,
  ): Promise<Buffer> =>
    withKey(caller, handle, use, (reference, { object }) =>
      core.macPart(reference, parameters, { ...part, context: contextOf(caller, object) }),
    );

  return {
    checkUse: async (caller, handle, use) => {
      await admit(ports, caller, { handle, use });
    },
    encrypt: cipher('encrypt'),
    decrypt: cipher('decrypt'),
    cipherPart: (caller, handle, use, parameters, part) =>
      withKey(caller, handle, use === 'encrypt' ? 'encrypt' : 'decrypt', (reference, { object }) => {
        if (object.algorithm !== 'aes') throw new ServiceError('key-usage', 'the key is not an AES key');
        const { input, last } = part;
        const tag = use === 'encrypt' ? parameters.tagLength : -parameters.tagLength;
        const length = Math.max(0, use === 'check' ? 0 : input.length + (last ? tag : 0));
        const output = Buffer.alloc(length);
        const state = core.cipherPart(
          reference,
          use,
          parameters,
          { ...part, context: contextOf(caller, object) },
          output,
        );
        if (use === 'encrypt' && !caller.application.compatibility.includes('repeated-ivs'))
          claimPart(object, parameters, part);
        return { state, output };
      }),
    decryptWithPrivateKey: async (caller, handle, parameters, input) => {
      if (parameters.padding === 'pkcs1') requireSwitch(caller, ['rsa-pkcs1-encryption']);
      return withPrivateKey(ports, caller, handle, 'decrypt', (reference, { object }, slow) => {
        if (object.algorithm !== 'rsa') throw new ServiceError('key-usage', 'the key is not an RSA key');
        return slow
          ? core.rsaDecryptLater(reference, parameters, input)
          : core.rsaDecrypt(reference, parameters, input);
      });
    },
    signWithPrivateKey: async (caller, handle, parameters, input) => {
      // Of the other signatures the service sees the finished digest only; the agent refuses those of SHA-1.
      if (parameters.algorithm === 'rsa-pss' && parameters.digest === 'sha1')
        requireSwitch(caller, ['sha1-signatures']);
      return withPrivateKey(ports, caller, handle, 'sign', (reference, { object }, slow) => {
        if (object.class !== 'private-key') throw new ServiceError('key-usage', 'the key is not a private key');
        return slow ? core.signLater(reference, parameters, input) : core.sign(reference, parameters, input);
      });
    },
    sign: (caller, handle, parameters, input) =>
      withKey(caller, handle, 'sign', (reference) => {
        const out = Buffer.alloc(parameters.algorithm === 'hmac' ? digestLengths[parameters.digest] : 16);
        return out.subarray(0, core.mac(reference, parameters, input, out));
      }),
    signPart: (caller, handle, parameters, part) => macPart(caller, handle, 'sign', parameters, part),
    verifyPart: async (caller, handle, parameters, part, signature, length) => {
      const answer = await macPart(caller, handle, 'verify', parameters, part);
      if (!part.last) return answer;
      const expected = answer.subarray(0, Math.min(answer.length, length ?? answer.length));
      const isRight = signature?.length === expected.length && core.timingSafeEqual(expected, signature);
      core.wipe(answer);
      if (!isRight) throw wrongSignature();
      return Buffer.alloc(0);
    },
    verify: async (caller, handle, parameters, input, signature, length) => {
      const sound = await withKey(caller, handle, 'verify', (reference) => {
        const out = Buffer.alloc(parameters.algorithm === 'hmac' ? digestLengths[parameters.digest] : 16);
        const whole = core.mac(reference, parameters, input, out);
        const expected = out.subarray(0, Math.min(whole, length ?? whole));
        return signature.length === expected.length && core.timingSafeEqual(expected, signature);
      });
      if (!sound) throw wrongSignature();
    },
  };
};
