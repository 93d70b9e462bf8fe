// Token objects as they travel, each member declared once: the types of agent and service, the
// encoding and the checks follow.

import { toRfc3339 } from '../base/time.ts';
import type { KeyState } from '../domain/lifecycle.ts';
import { tokenMechanisms } from '../domain/token-mechanisms.ts';
import {
  answer,
  base64Text,
  type Codec,
  flag,
  integer,
  list,
  misfit,
  nullable,
  object,
  oneOf,
  optional,
  text,
  union,
  type ValueOf,
  type WireOf,
  word,
} from './tde-codec.ts';

/**
 * With the number of bits, which key it is: `ec` is a curve of NIST, `brainpool` one of RFC 5639
 * (r1).
 */
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

const objectClasses = ['secret-key', 'public-key', 'private-key', 'certificate', 'data'] as const;
export const objectClass = oneOf(objectClasses);
export const keyUsages = ['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive'] as const;
export const usage = oneOf(keyUsages);
export const usages = list(usage, 7);
/** In bytes. */
export const longestLabel = 1024;
/** Base64 of the label's bytes. */
export const label = base64Text(longestLabel);
/**
 * Base64 of the agent's encoding of every other attribute, kept verbatim and bound to the record.
 */
export const attributes = base64Text(64 * 1024);
/** Stable, positive, below 2^31; never reused. */
export const handle = integer(1, 0x7fffffff);
/** Base64 of an X25519 public key. */
export const recipient = base64Text(32);
const algorithm = oneOf(keyAlgorithms);
const bits = nullable(integer(1, 65_536));
const secretClass = oneOf(['secret-key', 'private-key']);

const prescription = object({
  class: optional(objectClass),
  algorithms: optional(list(algorithm, keyAlgorithms.length)),
  bits: optional(integer(1, 65_536)),
  onToken: optional(flag),
  sensitive: optional(flag),
  extractable: optional(flag),
  modifiable: optional(flag),
  destroyable: optional(flag),
  private: optional(flag),
  wrapWithTrusted: optional(flag),
  usages: optional(usages),
  noUsages: optional(usages),
});
/**
 * What the maker of a key lays down for it, permanently. The service keeps these rules for every
 * caller (domain/key-custody.ts): `mechanisms` that it is used with, and what it wraps, unwraps and
 * derives.
 */
const rules = object({
  mechanisms: optional(list(oneOf(tokenMechanisms), tokenMechanisms.length)),
  wrapWithTrusted: optional(flag),
  wraps: optional(prescription),
  unwraps: optional(prescription),
  derives: optional(prescription),
});

/** What creator and service say in the same way. */
const described = {
  label,
  bits,
  sensitive: flag,
  extractable: flag,
  modifiable: flag,
  destroyable: flag,
  /** Visible only after login. */
  private: flag,
  attributes,
};

/** What the agent says of an object that it creates. */
export const createObject = object({
  ...described,
  class: objectClass,
  algorithm: nullable(algorithm),
  usages,
  rules: optional(rules),
});

const knownUsages = list(word(keyUsages), 64);
const moment: Codec<number, string> = {
  encode: toRfc3339,
  decode: (wire, path) => {
    const time = Date.parse(text(64, /^[0-9TZ:.+-]+$/).decode(wire, path));
    if (Number.isNaN(time)) throw misfit(path, 'must be a time (RFC 3339)');
    return time;
  },
};
const states = word(['active', 'disabled', 'soft-deleted']);
/**
 * The state of a key. A key that was destroyed a moment ago is 'soft-deleted' here: no search finds
 * it.
 */
const state: Codec<KeyState, WireOf<typeof states>> = {
  encode: (value) => (value === 'destroyed' ? 'soft-deleted' : value),
  decode: states.decode,
};

/** A token object as the service knows it. */
export const tokenObject = answer({
  ...described,
  class: word(objectClasses),
  algorithm: nullable(word(keyAlgorithms)),
  usages: knownUsages,
  handle,
  /** The service's id: for keys the same id as in /api/keys. */
  id: text(64, /^[A-Za-z0-9-]+$/),
  /**
   * Secret and private keys: true when the service made the key, or derived it from such a one, and
   * it was sensitive ever since.
   */
  alwaysSensitive: flag,
  /** What `alwaysSensitive` is for sensitive, for extractable: true when the key never was. */
  neverExtractable: flag,
  /** True when the service made the key itself, false when it was imported. */
  local: flag,
  /** Base64: first 3 bytes, as PKCS#11 computes it; null for data objects. */
  checkValue: nullable(base64Text(64)),
  /**
   * Base64 of the SubjectPublicKeyInfo (RFC 5280) of a public key, and of a private key's public
   * half; null otherwise.
   */
  publicKey: nullable(base64Text(64 * 1024)),
  /** RFC 3339. */
  createdAt: moment,
  state,
  /**
   * False for an object of another application of the same group: it may be used, not changed or
   * destroyed.
   */
  owned: flag,
  /**
   * Another one after each change of the object. Absent in answers to changes, and from an older
   * service.
   */
  version: optional(integer(0, 0xffffffffffff)),
  /**
   * What `checkUse` would admit now: in answers to a search by label that found few. A caller who
   * finds a key usually uses it next.
   */
  admits: optional(knownUsages),
});

/**
 * Where a key goes that was unwrapped or derived: onto the token, or to the agent that asks, sealed
 * to `recipient`, the agent's ephemeral public key (RFC 9180, base mode; see `sealedKeyInfo`).
 * `bits` may be null where the wrapped key tells it, and for a wrapped private key `algorithm` may
 * be another one of its family: curves that sign and agree (`ec`, `secp256k1`, `brainpool`), that
 * sign (`ed25519`, `ed448`), that agree (`x25519`, `x448`).
 */
export const destination = union('on', {
  token: { object: createObject },
  session: { recipient, class: secretClass, algorithm, bits, sensitive: flag, extractable: flag },
});

/** What is wrapped: an object of the token, or the agent's session key, sealed in the raw bytes. */
export const wrappedKey = union('from', { token: { handle }, session: { class: secretClass, sensitive: flag } });

export type ObjectClass = WireOf<typeof objectClass>;
export type KeyUsage = WireOf<typeof usage>;
export type KeyRules = ValueOf<typeof rules>;
export type Prescription = ValueOf<typeof prescription>;
export type CreateObject = WireOf<typeof createObject>;
export type TokenObject = ValueOf<typeof tokenObject>;
export type Destination = WireOf<typeof destination>;
