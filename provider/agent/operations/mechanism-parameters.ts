// Cryptoki's parameters as the core's. Each function refuses with CKR_MECHANISM_PARAM_INVALID what
// the core does not do.
import type { CipherParameters, KeyDescription, OaepParameters } from '../../../addon/core.ts';
import { gcmTag } from '../../../server/base/key-rules.ts';
import { HKDF_SALT } from '../../schema/constants.ts';
import type { Mechanism, MechanismParameter } from '../../schema/types.ts';
import { parameterInvalid } from '../return-values.ts';
import { digestByKdf, digestByMask, digestByMechanism } from './digest-families.ts';
import type { DeriveRow, MacRow, PrehashedSignature } from './mechanism-row.ts';

export const none = (parameter: MechanismParameter | null): void => {
  if (parameter !== null && !(parameter.kind === 'bytes' && parameter.bytes.length === 0)) throw parameterInvalid();
};
export const iv16 = (parameter: MechanismParameter | null): Uint8Array => {
  if (parameter?.kind !== 'bytes' || parameter.bytes.length !== 16) throw parameterInvalid();
  return parameter.bytes;
};

export const ecbParameters: CipherParameters = { algorithm: 'aes-ecb' };
export const counter = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'ctr') throw parameterInvalid();
  const { counterBits, block } = parameter;
  if (block.length !== 16 || counterBits < 1 || counterBits > 128) throw parameterInvalid();
  return { algorithm: 'aes-ctr', iv: block, counterBits };
};
/** Bytes of an IV of GCM: the standard has 256, the cryptographic library half of that. */
export const mostGcmIv = 128;
/**
 * Bytes of a tag of so many bits. Throws CKR_MECHANISM_PARAM_INVALID for what GCM does not permit
 * here.
 */
export const gcmTagLength = (tagBits: number): number => {
  const length = tagBits / 8;
  if (!Number.isInteger(length) || length < gcmTag.least || length > gcmTag.most) throw parameterInvalid();
  return length;
};
export const galois = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'gcm') throw parameterInvalid();
  const { iv, aad, tagBits } = parameter;
  if (iv.length < 1 || iv.length > mostGcmIv) throw parameterInvalid();
  return { algorithm: 'aes-gcm', iv, aad, tagLength: gcmTagLength(tagBits) };
};

/**
 * The most that CCM's length field holds in addition to a nonce (SP 800-38C, A.1), and that the
 * core takes.
 */
const mostInCcm = (nonceLength: number): number => Math.min(256 ** (15 - nonceLength) - 1, 2 ** 31);
export const counterWithMac = (parameter: MechanismParameter | null): CipherParameters => {
  if (parameter?.kind !== 'ccm') throw parameterInvalid();
  const { nonce, aad, macLength, dataLength } = parameter;
  if (nonce.length < 7 || nonce.length > 13) throw parameterInvalid();
  if (macLength % 2 !== 0 || macLength < 4 || macLength > 16) throw parameterInvalid();
  if (dataLength < 0 || dataLength > mostInCcm(nonce.length)) throw parameterInvalid();
  return { algorithm: 'aes-ccm', iv: nonce, aad, tagLength: macLength, dataLength };
};

export const noBytes = new Uint8Array(0);

/**
 * Pure Ed25519 and Ed448 (RFC 8032, section 5), which is what no parameter means (3.1, section
 * 6.3.15). With CK_EDDSA_PARAMS the signature is Ed25519ctx, Ed25519ph or Ed448ph, which the core's
 * cryptographic library does not have, or Ed448, which it has without a context.
 */
export const pureEdwards = (parameter: MechanismParameter | null, { curve }: KeyDescription): PrehashedSignature => {
  if (curve !== 'ed448') {
    none(parameter);
    return { algorithm: 'ed25519' };
  }
  if (parameter?.kind !== 'eddsa') none(parameter);
  else if (parameter.prehash || parameter.context.length > 0) throw parameterInvalid();
  return { algorithm: 'ed448' };
};

export const oaep = (parameter: MechanismParameter | null): OaepParameters => {
  if (parameter?.kind !== 'oaep') throw parameterInvalid();
  const hash = digestByMechanism.get(parameter.hash);
  const mgfDigest = digestByMask.get(parameter.mgf);
  const { source, label } = parameter;
  if (hash === undefined || mgfDigest === undefined) throw parameterInvalid();
  // CKZ_DATA_SPECIFIED; older programs leave the source out when there is no label.
  if (source !== 1 && !(source === 0 && label.length === 0)) throw parameterInvalid();
  return { padding: 'oaep', digest: hash, mgfDigest, label };
};

export const ecdh: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'ecdh1') throw parameterInvalid();
  const kdf = digestByKdf.get(parameter.kdf);
  const { shared, publicData } = parameter;
  if (kdf === undefined || (kdf === null && shared.length > 0)) throw parameterInvalid();
  return { way: 'ecdh', point: publicData, kdf, shared };
};
const hkdfSalts: ReadonlySet<number> = new Set(Object.values(HKDF_SALT));
export const hkdf: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'hkdf') throw parameterInvalid();
  const { extract, expand, hash, saltType, info } = parameter;
  const digest = digestByMechanism.get(hash);
  if (digest === undefined || (!extract && !expand)) throw parameterInvalid();
  const steps = extract && expand ? 'both' : extract ? 'extract' : 'expand';
  // The salt is the extraction's, the info the expansion's: parameters that a step does not use are
  // ignored.
  const given = extract ? saltType : HKDF_SALT.NULL;
  if (!hkdfSalts.has(given)) throw parameterInvalid();
  const salt = given === HKDF_SALT.DATA ? parameter.salt : noBytes;
  const saltKey = given === HKDF_SALT.KEY ? parameter.saltKey : undefined;
  return { way: 'hkdf', digest, steps, salt, saltKey, info: expand ? info : noBytes };
};

/** The key is the front of what the data encrypts to. */
export const encryption: DeriveRow = (parameter) => {
  if (parameter?.kind !== 'data' && parameter?.kind !== 'ivdata') throw parameterInvalid();
  const { data } = parameter;
  if (data.length === 0 || data.length % 16 !== 0) throw parameterInvalid();
  if (parameter.kind === 'data') return { way: 'encryption', cipher: { algorithm: 'aes-ecb' }, data };
  if (parameter.iv.length !== 16) throw parameterInvalid();
  return { way: 'encryption', cipher: { algorithm: 'aes-cbc', iv: parameter.iv }, data };
};
/** Checks that a mechanism came without a parameter. */
export const noParameter = ({ parameter }: Mechanism): void => none(parameter);

/** The length of MAC that is asked for: all of it, or the caller's CK_MAC_GENERAL_PARAMS. */
export const macLength = (row: MacRow, { parameter }: Mechanism): number => {
  if (!row.general) {
    none(parameter);
    return row.length;
  }
  if (parameter?.kind !== 'ulong' || parameter.value < 1 || parameter.value > row.length) throw parameterInvalid();
  return parameter.value;
};
