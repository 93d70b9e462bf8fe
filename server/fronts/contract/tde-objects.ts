// Token objects as they travel, each member declared once: the types of agent and service, the encoding and the checks follow.

import { base64Text, flag, integer, list, nullable, object, oneOf, union, type WireOf } from './tde-codec.ts';

/** With the number of bits, which key it is: `ec` is a curve of NIST, `brainpool` one of RFC 5639 (r1). */
export const keyAlgorithms = [
  'aes',
  'generic',
  'rsa',
  'ec',
  'secp256k1',
  'brainpool',
  'ed25519',
  'ed448',
  'x25519',
  'x448',
] as const;
export type KeyAlgorithm = (typeof keyAlgorithms)[number];

export const objectClass = oneOf(['secret-key', 'public-key', 'private-key', 'certificate', 'data']);
export const usage = oneOf(['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive']);
export const usages = list(usage, 7);
/** Base64 of the label's bytes. */
export const label = base64Text(1024);
/** Base64 of the agent's encoding of every other attribute, kept verbatim and bound to the record. */
export const attributes = base64Text(64 * 1024);
/** Stable, positive, below 2^31; never reused. */
export const handle = integer(1, 0x7fffffff);
/** Base64 of an X25519 public key. */
export const recipient = base64Text(32);
const algorithm = oneOf(keyAlgorithms);
const bits = nullable(integer(1, 65_536));
const secretClass = oneOf(['secret-key', 'private-key']);

/** What the agent says of an object that it creates. */
export const createObject = object({
  class: objectClass,
  label,
  algorithm: nullable(algorithm),
  bits,
  usages,
  sensitive: flag,
  extractable: flag,
  modifiable: flag,
  destroyable: flag,
  /** Visible only after login. */
  private: flag,
  attributes,
});

/**
 * Where a key goes that was unwrapped or derived: onto the token, or to the agent that asks, sealed to `recipient`, the agent's
 * ephemeral public key (RFC 9180, base mode; see `sealedKeyInfo`). `bits` may be null where the wrapped key tells it, and for
 * a wrapped private key `algorithm` may be another one of its family: curves that sign and agree (`ec`, `secp256k1`,
 * `brainpool`), that sign (`ed25519`, `ed448`), that agree (`x25519`, `x448`).
 */
export const destination = union('on', {
  token: { object: createObject },
  session: { recipient, class: secretClass, algorithm, bits, sensitive: flag, extractable: flag },
});

/** What is wrapped: an object of the token, or the agent's session key, sealed in the raw bytes. */
export const wrappedKey = union('from', { token: { handle }, session: { class: secretClass, sensitive: flag } });

export type ObjectClass = WireOf<typeof objectClass>;
export type KeyUsage = WireOf<typeof usage>;
export type CreateObject = WireOf<typeof createObject>;
export type Destination = WireOf<typeof destination>;
export type WrappedKey = WireOf<typeof wrappedKey>;
