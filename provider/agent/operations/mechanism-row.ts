// What the agent has to know of a mechanism: the types of a row of mechanisms.ts, and of the
// parameters that the core takes.
import type {
  CipherParameters,
  DeriveParameters,
  Digest,
  KeyDescription,
  MacParameters,
  RsaEncryptionParameters,
  Sp800108Parameters,
  WrapParameters,
} from '../../../addon/core.ts';
import type { CompatibilitySwitch } from '../../../server/base/compatibility-switches.ts';
import type { Heads } from '../../../server/contract/tde.ts';
import { CKK } from '../../schema/constants.ts';
import type { MechanismParameter } from '../../schema/types.ts';

export interface CipherRow {
  /** Turns Cryptoki's parameter into the core's. Throws CKR_MECHANISM_PARAM_INVALID. */
  readonly parameters: (parameter: MechanismParameter | null) => CipherParameters;
  /** Bytes that whole input must be a multiple of, in this direction. */
  readonly encryptUnit: number;
  readonly decryptUnit: number;
}

export interface MacRow {
  readonly parameters: MacParameters;
  /** Length of the whole MAC. */
  readonly length: number;
  /** Whether the caller says how much of it it wants (CK_MAC_GENERAL_PARAMS). */
  readonly general: boolean;
}

/** A signature of what is hashed already. */
export type PrehashedSignature = Exclude<Heads['sign'], MacParameters>;

export interface SignatureRow {
  /**
   * What the mechanism makes of the data before it is signed; null: the data is signed as it is.
   */
  readonly digest: Digest | null;
  /**
   * Without a digest data comes in one piece, unless its parts are collected here and signed at the
   * end.
   */
  readonly collects?: true;
  /** Bytes that stand before the digest in what is signed (the DigestInfo of PKCS#1). */
  readonly prefix: Uint8Array;
  /**
   * Turns Cryptoki's parameter into the core's, for input that is hashed already, and for this key.
   * Throws CKR_MECHANISM_PARAM_INVALID.
   */
  readonly parameters: (parameter: MechanismParameter | null, key: KeyDescription) => PrehashedSignature;
}

export type WrapRow = (parameter: MechanismParameter | null) => WrapParameters;

/**
 * What a key is derived with, before it is known how many bytes it has: what the PRF of SP 800-108
 * takes depends on that.
 */
export type Derivation =
  | Exclude<DeriveParameters, { readonly way: 'sp800-108' }>
  | {
      readonly way: 'sp800-108';
      readonly prf: MacParameters;
      readonly partsFor: (bytes: number) => Sp800108Parameters;
    };
export type DeriveRow = (parameter: MechanismParameter | null) => Derivation;

export interface MechanismRow {
  readonly type: number;
  /**
   * In the unit that the standard uses for this mechanism: bytes for AES and HMAC, bits for generic
   * secrets.
   */
  readonly minKeySize: number;
  readonly maxKeySize: number;
  readonly flags: number;
  /** Further flags, for applications with a compatibility switch. */
  readonly switched?: { readonly flags: number; readonly by: CompatibilitySwitch };
  readonly keyTypes: readonly number[];
  readonly cipher?: CipherRow;
  readonly mac?: MacRow;
  readonly digest?: { readonly name: Digest; readonly length: number };
  readonly signature?: SignatureRow;
  readonly rsaEncryption?: (parameter: MechanismParameter | null) => RsaEncryptionParameters;
  readonly wrap?: WrapRow;
  readonly derive?: DeriveRow;
  /** What it derives is an object of data, not a key. */
  readonly derivesData?: true;
  /** The type of key that it makes. */
  readonly generates?: number;
  /** The type of the pair of keys that it makes. */
  readonly generatesPair?: number;
}

const pairTypes: ReadonlySet<number> = new Set([CKK.RSA, CKK.EC, CKK.EC_EDWARDS, CKK.EC_MONTGOMERY]);

/**
 * Whether a mechanism works with the halves of a pair: one for public operations, one for the
 * owner's.
 */
export const isAsymmetric = ({ keyTypes }: MechanismRow): boolean => keyTypes.some((type) => pairTypes.has(type));
