// Keys that come of a key of the token: unwrapped (PKCS#11 C_UnwrapKey) or derived (C_DeriveKey). They stay on the token, or go to the
// agent that asked, sealed to its ephemeral key (HPKE, RFC 9180), and the audit log says so.

import { ServiceError } from '../../base/errors.ts';
import type { KeyRef, UnwrappedKind } from '../../ports/crypto-core.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { requireRsaSize } from './compatibility.ts';
import {
  aesLengths,
  type CreatePorts,
  checkTexts,
  isAesLength,
  isOfFamily,
  mostGenericBits,
  type Past,
  pairAlgorithm,
  storeKey,
} from './create-token-object.ts';
import type { KeyDestination, MadeKey, TdeCaller, TdeOperations } from './interface.ts';
import { inTurn } from './slow-work.ts';
import { requireStillUsable, type UsePorts, type Wanted, withTokenKey, withTokenKeys } from './use-token-key.ts';
import { instanceDetails, show } from './visibility.ts';

type MakePorts = UsePorts & CreatePorts;

const wantedOf = (into: KeyDestination) => (into.on === 'token' ? into.object : into);

const kindOf = (into: KeyDestination): UnwrappedKind => {
  const wanted = wantedOf(into);
  if (wanted.class === 'private-key') return 'private';
  if (wanted.class !== 'secret-key') throw new ServiceError('validation', 'a secret or a private key is made');
  if (wanted.algorithm !== 'aes' && wanted.algorithm !== 'generic')
    throw new ServiceError('validation', 'a secret key is an aes or a generic key');
  return wanted.algorithm;
};

/** Puts an open key where it is to go, and releases it. `maker` is the key that it comes of, `past` that of a derived key. */
const deliver = async (
  ports: MakePorts,
  caller: TdeCaller,
  maker: { readonly handle: number; readonly id: string; readonly tenantId: string },
  origin: 'unwrapped' | 'derived',
  mechanism: string,
  into: KeyDestination,
  reference: KeyRef,
  past?: Past,
): Promise<MadeKey> => {
  const { core, store } = ports;
  try {
    const description = core.describe(reference);
    const { bits } = description;
    const wanted = wantedOf(into);
    if (wanted.class === 'private-key' && !isOfFamily(description, wanted.algorithm))
      throw new ServiceError('invalid-ciphertext', 'the key is of another algorithm');
    requireRsaSize(caller, description, 'invalid-ciphertext');
    if (wanted.bits !== null && wanted.bits !== bits)
      throw new ServiceError('validation', 'the key is not as long as it was said to be');
    if (into.on === 'token') {
      const object = await storeKey(ports, caller, into.object, reference, origin, past);
      return { object: show(caller, object), sealed: null };
    }
    const sealed = core.hpkeSealKey(into.recipient, into.info, handleBytes(maker.handle), reference);
    await store.write(async (tx) => {
      await requireStillUsable(tx, maker.tenantId, maker.id);
      await recordEvent(tx, 'key.sent', caller.actor, about('key', maker), {
        applicationId: caller.application.id,
        ...instanceDetails(caller),
        operation: origin,
        mechanism,
        class: wanted.class,
        algorithm: pairAlgorithm(description) ?? wanted.algorithm,
        bits,
      });
    });
    return { object: null, sealed };
  } finally {
    core.release(reference);
  }
};

/** What is bound to a key on its way out: the object that it comes of. */
export const handleBytes = (handle: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(handle);
  return bytes;
};

/** Whatever is wrong with a wrapped key has one name. */
const opening = async <T>(work: () => T | Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ServiceError && (error.code === 'validation' || error.code === 'unsupported'))
      throw new ServiceError('invalid-ciphertext', 'the wrapped key does not open', { cause: error });
    throw error;
  }
};

export const unwrapTokenKey =
  (ports: MakePorts): TdeOperations['unwrap'] =>
  async (caller, handle, mechanism, wrapped, into) => {
    if (into.on === 'token') checkTexts(into.object);
    const kind = kindOf(into);
    const { bits } = wantedOf(into);
    // A length that is not a whole number of bytes is not a key's: `deliver` refuses it.
    const bytes = bits === null || bits % 8 !== 0 || bits > mostGenericBits ? undefined : bits / 8;
    const unwrap = () =>
      withTokenKey(ports, caller, { handle, use: 'unwrap' }, async (unwrapping, { object }) => {
        if (object.algorithm !== (mechanism.way === 'oaep' ? 'rsa' : 'aes'))
          throw new ServiceError('key-usage', 'the key is of another type than the mechanism');
        if (object.wrappedSensitive) {
          // Whether a padding is right, asked often enough, decrypts (Bardou and others, 2012).
          if (mechanism.way === 'cipher') throw new ServiceError('key-usage', 'the key has wrapped sensitive keys');
          if (!wantedOf(into).sensitive)
            throw new ServiceError(
              'validation',
              'a key that has wrapped sensitive keys can only unwrap sensitive keys',
            );
        }
        if (object.algorithm === 'rsa') requireRsaSize(caller, ports.core.describe(unwrapping), 'forbidden');
        // A job checks the numbers of a private key, and one opens what a private key unwraps.
        const open = kind === 'private' || mechanism.way === 'oaep' ? ports.core.unwrapKeyLater : ports.core.unwrapKey;
        const reference = await opening(() => open(unwrapping, mechanism, wrapped, kind, bytes));
        return { maker: object, reference };
      });
    const slow = kind === 'private' || mechanism.way === 'oaep';
    const { maker, reference } = await (slow ? inTurn('computation', caller, unwrap) : unwrap());
    return deliver(ports, caller, maker, 'unwrapped', mechanism.way, into, reference);
  };

export const deriveTokenKey =
  (ports: MakePorts): TdeOperations['derive'] =>
  async (caller, handle, mechanism, into) => {
    if (into.on === 'token') checkTexts(into.object);
    const kind = kindOf(into);
    const { bits } = wantedOf(into);
    if (kind !== 'aes' && kind !== 'generic') throw new ServiceError('validation', 'what is derived is a secret key');
    if (bits === null || bits % 8 !== 0 || bits > mostGenericBits)
      throw new ServiceError('validation', `bits is missing, not whole bytes, or more than ${mostGenericBits}`);
    if (kind === 'aes' && !isAesLength(bits)) throw new ServiceError('validation', aesLengths);
    const wanted: Wanted[] = [{ handle, use: 'derive' }];
    if (mechanism.way === 'hkdf' && mechanism.saltKey !== undefined)
      wanted.push({ handle: mechanism.saltKey, use: 'derive' });
    const { maker, reference } = await withTokenKeys(ports, caller, wanted, ([base, salt]) => {
      if (base === undefined) throw new ServiceError('internal', 'no key was opened');
      if (salt !== undefined && salt.loaded.object.class !== 'secret-key')
        throw new ServiceError('key-usage', 'the salt is not a secret key');
      // A chosen value encrypted as a key that may be read: the base key would encrypt for callers who may only derive.
      if (mechanism.way === 'encryption' && base.loaded.object.sensitive)
        throw new ServiceError('key-usage', 'a sensitive key derives no key by encryption');
      return {
        maker: base.loaded.object,
        reference: ports.core.derive(base.reference, mechanism, salt?.reference ?? null, kind, bits / 8),
      };
    });
    return deliver(ports, caller, maker, 'derived', mechanism.way, into, reference, maker);
  };
