// Keys that come of a key of the token: unwrapped (PKCS#11 C_UnwrapKey) or derived (C_DeriveKey).
// They stay on the token, or go to the agent that asked, sealed to its ephemeral key (HPKE, RFC
// 9180), and the audit log says so.

import { mayHaveLength } from '../../base/key-rules.ts';
import { ServiceError } from '../../base/service-error.ts';
import { type Described, misfitOf, type Prescription } from '../../domain/key-custody.ts';
import type { TokenMechanism } from '../../domain/token-mechanisms.ts';
import type { DeriveParameters, KeyRef, UnwrappedKind, WrapParameters } from '../../ports/crypto-core.ts';
import { about, recordEvent } from '../shared/record-event.ts';
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
import { requireRsaSize } from './require-switch.ts';
import type { KeyDestination, MadeKey, TdeOperations } from './tde-operations.ts';
import {
  type Commit,
  Denied,
  type Running,
  type TokenKeyUseRow,
  tokenKeyUse,
  type UsePorts,
  wrapMechanism,
} from './token-key-pipeline.ts';
import { instanceDetails, show } from './visibility.ts';

type MakePorts = UsePorts & CreatePorts;

interface Making<Mechanism> {
  readonly handle: number;
  readonly mechanism: Mechanism;
  readonly into: KeyDestination;
}
type Unwrapping = Making<WrapParameters> & { readonly wrapped: Uint8Array };

const wantedOf = (into: KeyDestination) => (into.on === 'token' ? into.object : into);

const kindOf = (into: KeyDestination): UnwrappedKind => {
  const wanted = wantedOf(into);
  if (wanted.class === 'private-key') return 'private';
  if (wanted.class !== 'secret-key') throw new ServiceError('validation', 'a secret or a private key is made');
  if (wanted.algorithm !== 'aes' && wanted.algorithm !== 'generic')
    throw new ServiceError('validation', 'a secret key is an aes or a generic key');
  return wanted.algorithm;
};

/**
 * Puts an open key where it is to go, and releases it. `past`: of a derived key, that of its base.
 */
const deliver = async (
  ports: MakePorts,
  { caller, input, admitted: [maker] }: Running<Making<{ readonly way: string }>>,
  origin: 'unwrapped' | 'derived',
  reference: KeyRef,
  commit: Commit,
  past?: Past,
): Promise<MadeKey> => {
  const { core } = ports;
  const { into, mechanism } = input;
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
    const sealed = core.hpkeSealKey(into.recipient, into.info, handleBytes(maker.object.handle), reference);
    await commit((tx) =>
      recordEvent(tx, 'key.sent', caller.actor, about('key', maker.object), {
        applicationId: caller.application.id,
        ...instanceDetails(caller),
        operation: origin,
        mechanism: mechanism.way,
        class: wanted.class,
        algorithm: pairAlgorithm(description) ?? wanted.algorithm,
        bits,
      }),
    );
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

/**
 * What the key that makes it prescribes. What leaves to a session has fewer members; its uses are
 * the agent's.
 */
const requireAsPrescribed = (prescription: Prescription | undefined, into: KeyDestination): void => {
  const { rules = null, ...wanted }: Described = wantedOf(into);
  const misfit = misfitOf(prescription, { ...wanted, rules, onToken: into.on === 'token' });
  if (misfit !== null) throw new Denied(0, 'prescription', 'forbidden', `the key makes no such key: ${misfit}`);
};

const requireHiddenLength = (into: KeyDestination): void => {
  const { bits, ...custody } = wantedOf(into);
  if (bits !== null && !mayHaveLength(Math.ceil(bits / 8), custody))
    throw new ServiceError('validation', 'a key that is sensitive or not extractable has at least 128 bits here');
};

/**
 * Whether an unwrap is slow: the numbers of an unwrapped private key are checked, and unwrapping
 * with a private key takes long.
 */
const isSlowUnwrap = ({ mechanism, into }: Unwrapping): boolean =>
  kindOf(into) === 'private' || mechanism.way === 'oaep';

const unwrapRow = (ports: MakePorts): TokenKeyUseRow<Unwrapping, KeyRef, MadeKey> => ({
  permits: (_caller, { into }) => {
    if (into.on === 'token') checkTexts(into.object);
    kindOf(into);
  },
  wants: ({ handle, mechanism }) => [{ handle, use: 'unwrap', by: wrapMechanism(mechanism) }],
  checks: ({ mechanism, into }, [{ object }]) => {
    requireAsPrescribed(object.rules?.unwraps, into);
    // CBC does not tell how long the key is: the caller does.
    if (mechanism.way === 'cipher' && mechanism.cipher.algorithm === 'aes-cbc') requireHiddenLength(into);
    if (!object.wrappedSensitive) return;
    // Whether a padding is right, asked often enough, decrypts (Bardou and others, 2012).
    if (mechanism.way === 'cipher') throw new ServiceError('key-usage', 'the key has wrapped sensitive keys');
    if (!wantedOf(into).sensitive)
      throw new ServiceError('validation', 'a key that has wrapped sensitive keys can only unwrap sensitive keys');
  },
  isSlow: isSlowUnwrap,
  work: ({ input: { mechanism, wrapped, into } }, [unwrapping], _prepared, isSlow) => {
    const { bits } = wantedOf(into);
    // A length that is not a whole number of bytes is not a key's: `deliver` refuses it.
    const bytes = bits === null || bits % 8 !== 0 || bits > mostGenericBits ? undefined : bits / 8;
    const open = isSlow ? ports.core.unwrapKeyLater : ports.core.unwrapKey;
    return opening(() => open(unwrapping.reference, mechanism, wrapped, kindOf(into), bytes));
  },
  record: (running, reference, commit) => deliver(ports, running, 'unwrapped', reference, commit),
});

export const unwrapTokenKey = (ports: MakePorts): TdeOperations['unwrap'] => {
  const unwrap = tokenKeyUse(ports, unwrapRow(ports));
  return (caller, handle, mechanism, wrapped, into) => unwrap(caller, { handle, mechanism, wrapped, into });
};

const derivationMechanism = (parameters: DeriveParameters): TokenMechanism => {
  switch (parameters.way) {
    case 'sp800-108':
      return parameters.parts.previousAt === undefined ? 'sp800-108-counter' : 'sp800-108-feedback';
    case 'encryption':
      return parameters.cipher.algorithm === 'aes-ecb' ? 'aes-ecb-data' : 'aes-cbc-data';
    default:
      return parameters.way;
  }
};

/** What is derived: a secret key of so many bytes. */
const derivedOf = (into: KeyDestination): { readonly kind: 'aes' | 'generic'; readonly bytes: number } => {
  const kind = kindOf(into);
  const { bits } = wantedOf(into);
  if (kind !== 'aes' && kind !== 'generic') throw new ServiceError('validation', 'what is derived is a secret key');
  if (bits === null || bits % 8 !== 0 || bits > mostGenericBits)
    throw new ServiceError('validation', `bits is missing, not whole bytes, or more than ${mostGenericBits}`);
  if (kind === 'aes' && !isAesLength(bits)) throw new ServiceError('validation', aesLengths);
  requireHiddenLength(into);
  return { kind, bytes: bits / 8 };
};

const deriveRow = (ports: MakePorts): TokenKeyUseRow<Making<DeriveParameters>, KeyRef, MadeKey> => ({
  permits: (_caller, { into }) => {
    if (into.on === 'token') checkTexts(into.object);
    derivedOf(into);
  },
  wants: ({ handle, mechanism }) => {
    const base = { handle, use: 'derive', by: derivationMechanism(mechanism) } as const;
    if (mechanism.way !== 'hkdf' || mechanism.saltKey === undefined) return [base];
    return [base, { ...base, handle: mechanism.saltKey }];
  },
  checks: ({ mechanism, into }, [{ object }]) => {
    requireAsPrescribed(object.rules?.derives, into);
    // A chosen value encrypted as a key that may be read: the base key would encrypt for callers
    // who may only derive.
    if (mechanism.way === 'encryption' && object.sensitive)
      throw new ServiceError('key-usage', 'a sensitive key derives no key by encryption');
    // CMAC is of AES keys, and they have no HMAC.
    if (mechanism.way === 'sp800-108' && (object.algorithm === 'aes') !== (mechanism.prf.algorithm === 'aes-cmac'))
      throw new ServiceError('key-usage', 'the key is of another type than the function takes');
  },
  work: ({ input: { mechanism, into } }, [base, salt]) => {
    const { kind, bytes } = derivedOf(into);
    return ports.core.derive(base.reference, mechanism, salt?.reference ?? null, kind, bytes);
  },
  record: (running, reference, commit) =>
    deliver(ports, running, 'derived', reference, commit, running.admitted[0].object),
});

export const deriveTokenKey = (ports: MakePorts): TdeOperations['derive'] => {
  const derive = tokenKeyUse(ports, deriveRow(ports));
  return (caller, handle, mechanism, into) => derive(caller, { handle, mechanism, into });
};
