// What a key of the token is used with, by the core's names: which keys each mechanism takes. A key
// has one algorithm, and a value is never used in two: an AES key computes no HMAC. The agent maps
// the standard's mechanisms to these names.

import { type DigestName, digestNames } from '../base/digests.ts';
import type { KeyAlgorithm, KeyUsage, ObjectClass } from './key.ts';

const aes = ['aes'] as const;
const generic = ['generic'] as const;
const rsa = ['rsa'] as const;
const curves = ['ec', 'secp256k1', 'brainpool'] as const;

type Hmac = `hmac-${DigestName}`;
const hmacs = Object.fromEntries(digestNames.map((digest) => [`hmac-${digest}`, generic])) as Record<
  Hmac,
  typeof generic
>;

/** The algorithms of the keys that each takes. */
const algorithms = {
  'aes-ecb': aes,
  'aes-cbc': aes,
  'aes-cbc-pad': aes,
  'aes-ctr': aes,
  'aes-gcm': aes,
  'aes-ccm': aes,
  'key-wrap': aes,
  'key-wrap-padded': aes,
  'aes-cmac': aes,
  ...hmacs,
  'rsa-oaep': rsa,
  'rsa-pkcs1-encryption': rsa,
  'rsa-pkcs1': rsa,
  'rsa-pss': rsa,
  ecdsa: curves,
  ed25519: ['ed25519'],
  ed448: ['ed448'],
  ecdh: [...curves, 'x25519', 'x448'],
  hkdf: generic,
  'sp800-108-counter': ['aes', 'generic'],
  'sp800-108-feedback': ['aes', 'generic'],
  'aes-ecb-data': aes,
  'aes-cbc-data': aes,
} as const satisfies Readonly<Record<string, readonly KeyAlgorithm[]>>;

export type TokenMechanism = keyof typeof algorithms;
export const tokenMechanisms = Object.keys(algorithms) as readonly TokenMechanism[];

/** Uses of the public half of a pair; all others take the private one. */
const publicUses: ReadonlySet<KeyUsage> = new Set(['encrypt', 'verify', 'wrap']);

/** Whether the mechanism takes this key for this use: its algorithm, and the half of its pair. */
export const takesKey = (
  mechanism: TokenMechanism,
  use: KeyUsage,
  key: { readonly class: ObjectClass; readonly algorithm: KeyAlgorithm | null },
): boolean => {
  const { algorithm } = key;
  if (algorithm === null || !(algorithms[mechanism] as readonly KeyAlgorithm[]).includes(algorithm)) return false;
  const isSecret = algorithm === 'aes' || algorithm === 'generic';
  return key.class === (isSecret ? 'secret-key' : publicUses.has(use) ? 'public-key' : 'private-key');
};
