// The IV of what is encrypted under AES-GCM or AES-CCM: the caller's, or one that is generated
// around its fixed bits (3.0, mechanisms 2.12: CK_GCM_MESSAGE_PARAMS). None is used twice by one
// key (SP 800-38D, section 8; SP 800-38C, 5.3). A session key lives in this application alone, so
// what it has used is known; a token key is used by other processes too, and after this one. Its
// generated IVs are therefore random, over 96 bits (8.2.2 there), and a counter, which would
// restart in each process, is refused.
import { type CipherParameters, core, type Direction, type IvUser } from '../../../addon/core.ts';
import { CKG_IV } from '../../schema/constants.ts';
import type { MessageParameter } from '../../schema/types.ts';
import type { ObjectView, SharedKey } from '../objects/object-view.ts';
import { identityHere, identityThere, type KeyIdentities } from '../objects/used-ivs.ts';
import { ivRepeated, ivsExhausted, operationMissing, parameterInvalid } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';

/** What a key goes by: in the addon, with the service, or in both places. */
const identitiesOf = ({ roles }: Application, view: ObjectView, key: SharedKey | null): KeyIdentities => {
  if (key === null) return [identityThere(view.attributes)];
  key.identity ??= identityHere(key.ref);
  const here = key.identity;
  return roles.isAbroad(view.attributes) ? [here, identityThere(view.attributes)] : [here];
};

/** The IV of an operation that uses it up. */
export interface FreshIv {
  /**
   * Marks it as used, when the first byte is encrypted. Throws CKR_MECHANISM_PARAM_INVALID if it
   * was before.
   */
  take(): void;
  /**
   * `take` for C_Encrypt of so many bytes. Throws CKR_OPERATION_NOT_INITIALIZED if the caller only
   * cancels by it.
   */
  takeForWhole(length: number): void;
  readonly user: IvUser;
}

/**
 * The caller's IV for an operation that is about to start; null when a repeat does no harm, or is
 * permitted. Throws CKR_MECHANISM_PARAM_INVALID if the key has used it. `key` is null for a key of
 * the service.
 */
export const freshIv = (
  application: Application,
  view: ObjectView,
  key: SharedKey | null,
  direction: Direction,
  parameters: CipherParameters,
): Later<FreshIv | null> => {
  if (direction !== 'encrypt' || (parameters.algorithm !== 'aes-gcm' && parameters.algorithm !== 'aes-ccm'))
    return null;
  const { usedIvs } = application;
  const { iv } = parameters;
  const identities = identitiesOf(application, view, key);
  if (usedIvs.has(identities, iv)) return application.permit(['repeated-ivs'], ivRepeated).then(() => null);
  const [identity, otherIdentity] = identities;
  const take = (): void => {
    // Two operations may have started with one IV before either has used it.
    if (!usedIvs.claim(identities, iv) && !application.hasUsed('repeated-ivs')) throw ivRepeated();
  };
  const emptyCancels = application.isJava && parameters.algorithm === 'aes-gcm' && !parameters.aad?.length;
  return {
    take,
    // SunPKCS11 before Java 21 begins under GCM before it knows the additional data, cancels that
    // by C_Encrypt of nothing, and begins again with the same IV. A tag of nothing next to nothing
    // is E_K(J0), which with a second message of that IV lets others forge, so a Java process gets
    // none. SunPKCS11 takes this code for the cancellation that it asked for.
    takeForWhole: (length) => {
      if (emptyCancels && length === 0) throw operationMissing();
      take();
    },
    user: { owner: usedIvs.owner, identity, otherIdentity },
  };
};

const fewestBits = { session: 32, token: 96 } as const;

export class InitialValues {
  readonly #application: Application;
  readonly #identities: KeyIdentities;
  readonly #where: 'session' | 'token';
  /** The next number of each counter, by the bits around it. */
  readonly #counters = new Map<string, bigint>();

  /** `key` is null for a key of the service. */
  constructor(application: Application, view: ObjectView, key: SharedKey | null) {
    this.#application = application;
    this.#identities = identitiesOf(application, view, key);
    this.#where = key === null ? 'token' : 'session';
  }

  #claim(iv: Uint8Array): boolean {
    return this.#application.usedIvs.claim(this.#identities, iv);
  }

  /** The IV for a new message, which is used up with this. */
  next({ iv, ivFixedBits, ivGenerator }: MessageParameter): Uint8Array {
    if (ivGenerator === CKG_IV.NO_GENERATE) {
      if (!this.#claim(iv)) throw ivRepeated();
      return iv;
    }
    const freeBits = iv.length * 8 - ivFixedBits;
    if (ivFixedBits < 0 || freeBits < fewestBits[this.#where]) throw parameterInvalid();
    switch (ivGenerator) {
      case CKG_IV.GENERATE:
      case CKG_IV.GENERATE_RANDOM:
        return this.#random(iv, freeBits);
      case CKG_IV.GENERATE_COUNTER:
      case CKG_IV.GENERATE_COUNTER_XOR:
        if (this.#where === 'token') throw parameterInvalid();
        return this.#count(iv, freeBits, ivGenerator === CKG_IV.GENERATE_COUNTER_XOR);
      default:
        throw parameterInvalid();
    }
  }

  #random(given: Uint8Array, freeBits: number): Uint8Array {
    for (;;) {
      const free = Buffer.alloc(given.length);
      core.random(free);
      const iv = withFree(given, freeBits, toNumber(free));
      if (this.#claim(iv)) return iv;
    }
  }

  /** A number that was used already, in an earlier operation with this key, is stepped over. */
  #count(given: Uint8Array, freeBits: number, exclusiveOr: boolean): Uint8Array {
    const base = exclusiveOr ? toNumber(given) & ones(freeBits) : 0n;
    const around = `${freeBits} ${Buffer.from(withFree(given, freeBits, base)).toString('hex')}`;
    for (let counter = this.#counters.get(around) ?? 0n; counter <= ones(freeBits); counter++) {
      const iv = withFree(given, freeBits, base ^ counter);
      if (!this.#claim(iv)) continue;
      this.#counters.set(around, counter + 1n);
      return iv;
    }
    throw ivsExhausted();
  }
}

const ones = (bits: number): bigint => (1n << BigInt(bits)) - 1n;
const toNumber = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/** An IV whose last bits are replaced by those of a number. */
const withFree = (given: Uint8Array, freeBits: number, free: bigint): Uint8Array => {
  const mask = ones(freeBits);
  const whole = (toNumber(given) & ~mask) | (free & mask);
  return Buffer.from(whole.toString(16).padStart(2 * given.length, '0'), 'hex');
};
