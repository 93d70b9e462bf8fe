// The routes of the TDE API, each declared once: the path below the base, the head of its request and the head of its answer; comments
// say what the raw bytes are. All are POST, and `:handle` is the object's handle in decimal. Types, encoding and checks of agent and service follow from this
// table.

import {
  type AnyCodec,
  answer,
  base64Text,
  type Codec,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  text,
  type ValueOf,
  type WireOf,
  word,
} from './tde-codec.ts';
import {
  cipher,
  decryption,
  derivation,
  mac,
  macLength,
  partCipher,
  signing,
  verifiedMac,
  wrapping,
} from './tde-mechanisms.ts';
import {
  attributes,
  createObject,
  destination,
  label,
  objectClass,
  recipient,
  tokenObject,
  usage,
  usages,
  wrappedKey,
} from './tde-objects.ts';

/** An Idempotency-Key, and an X-Request-Id. */
export const requestKey = /^[A-Za-z0-9._:-]{1,128}$/;
/** Most bytes of a sealed state. */
const maxState = 512;

const nothing = object({});
const done = answer({});
const line = text(1024, /^/);

/**
 * A part of a message that is longer than one request. Nothing of the message stays with the service: what the next part needs is in `state`
 * (Base64), sealed under the key, which the answer gives and the next request brings back. It is empty in the first request, and in the answer
 * to the last one. Requests go to any node, and one that is sent again has the same answer.
 */
const part = { state: base64Text(maxState), last: flag };
const nextPart = answer({ state: base64Text(maxState) });

const serviceInfo = answer({
  applicationId: line,
  applicationName: line,
  groupId: line,
  tenantId: line,
  serverVersion: line,
  /** The compatibility switches of the application that are on (base/compatibility.ts). An older service has none. */
  compatibility: optional(list(line, 64)),
  /** Changes with every change of objects visible to this application. */
  epoch: integer(0, Number.MAX_SAFE_INTEGER),
  /** What keys are sealed to on their way to the service (see `keyForServiceInfo`): Base64 of an X25519 public key. */
  recipient: answer({ epoch: integer(0, 0xffffffff), publicKey: base64Text(32) }),
});

export const tdeRoutes = {
  info: { path: '/info', head: nothing, answer: serviceInfo },
  /** Creates a key inside the service. */
  generateKey: { path: '/keys', head: createObject, answer: tokenObject },
  /**
   * Creates a pair inside the service. `bits`: RSA 2048, 3072 or 4096 (any multiple of 8 between), `ec` 224, 256, 384 or 521,
   * `brainpool` 256, 384 or 512, `secp256k1`, `ed25519` and `x25519` 256, `ed448` and `x448` 448. Without `publicKey` the agent keeps the public half itself, from `privateKey.publicKey`. Both or neither.
   */
  generateKeyPair: {
    path: '/key-pairs',
    head: object({ privateKey: createObject, publicKey: nullable(createObject) }),
    answer: answer({ privateKey: tokenObject, publicKey: nullable(tokenObject) }),
  },
  /** Raw request bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public key; a secret or private key sealed. */
  createObject: { path: '/objects', head: createObject, answer: tokenObject },
  findObjects: {
    path: '/objects/find',
    head: object({
      label: optional(label),
      class: optional(objectClass),
      /** Handles greater than this one; 0 to begin. */
      after: integer(0, 0x7fffffff),
      limit: integer(1, 1000),
    }),
    answer: answer({ objects: list(tokenObject, 1000), more: flag }),
  },
  getObject: { path: '/objects/:handle/get', head: nothing, answer: tokenObject },
  /**
   * Raw answer bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public key; only if extractable and not
   * sensitive the value of a secret key and the PKCS#8 of a private one. With `recipient`, the agent's (see `destination`), a key comes
   * sealed: for all but showing it to its owner.
   */
  readValue: { path: '/objects/:handle/value', head: object({ recipient: optional(recipient) }), answer: done },
  /**
   * `replacesValue`: the raw request bytes are the new value of a data object. A key becomes sensitive, and stops being extractable;
   * this cannot be undone. What replaces a whole (`attributes`, `usages`) was
   * computed from what the caller saw: with `seen`, an object that is otherwise by now is left alone, and the code is `conflict`.
   */
  updateObject: {
    path: '/objects/:handle/update',
    head: object({
      label: optional(label),
      attributes: optional(attributes),
      usages: optional(usages),
      sensitive: optional(oneOf([true])),
      extractable: optional(oneOf([false])),
      replacesValue: optional(oneOf([true])),
      seen: optional(object({ attributes, usages })),
    }),
    answer: tokenObject,
  },
  /** Destroys permanently. */
  destroyObject: { path: '/objects/:handle/destroy', head: nothing, answer: done },
  /**
   * Withdraws the request that has, or had, this Idempotency-Key: the agent does not know its outcome and has told its caller that it
   * failed. If it was not carried out, it never will be. What it has created is destroyed, unless it was used since. Repeating a withdrawal
   * is safe, and it may come before the request. `kept`: it changed an object, or what it created was used since.
   */
  withdraw: {
    path: '/withdrawals',
    head: object({ key: text(128, requestKey) }),
    answer: answer({ outcome: word(['not-carried-out', 'undone', 'kept']) }),
  },
  /** Checks that the key may be used so, now: cheap. */
  checkUse: { path: '/objects/:handle/check-use', head: object({ usage }), answer: done },
  encrypt: { path: '/objects/:handle/encrypt', head: cipher, answer: done },
  decrypt: { path: '/objects/:handle/decrypt', head: decryption, answer: done },
  /**
   * A part of a message under GCM or CCM. Raw bytes: data in, data out; the tag is the end of the last part, in both directions. `aad` is empty but
   * in the first part. `check` is a decryption that gives nothing out: a message is checked as a whole before it is decrypted.
   */
  cipherPart: {
    path: '/objects/:handle/cipher-part',
    head: object({ ...part, use: oneOf(['encrypt', 'decrypt', 'check']), cipher: partCipher }),
    answer: nextPart,
  },
  sign: { path: '/objects/:handle/sign', head: signing, answer: done },
  /**
   * Raw bytes: u32 length of the signature, signature, data. A wrong signature is the code invalid-ciphertext. MACs only: a
   * public key's work is the agent's own. With `length` the signature is that many bytes of the MAC, its first ones.
   */
  verify: { path: '/objects/:handle/verify', head: verifiedMac, answer: done },
  /**
   * A part of a message for a MAC. Raw answer bytes of the last part: the MAC to sign. To verify, the raw bytes of the last part begin with the
   * signature, as those of `verify`.
   */
  macPart: {
    path: '/objects/:handle/mac-part',
    head: object({ ...part, use: oneOf(['sign', 'verify']), mac, length: macLength }),
    answer: nextPart,
  },
  /**
   * The object wraps another key: AES, or an RSA public key. Raw answer bytes: the wrapped key. Code `forbidden` where the key
   * is not extractable or the wrapping key is none that may wrap a sensitive one: one that the service made, that was never
   * extractable and does not decrypt (of RSA: whose private half is such a key in the group).
   */
  wrap: {
    path: '/objects/:handle/wrap',
    head: object({ mechanism: wrapping, key: wrappedKey }),
    answer: done,
  },
  /** Raw request bytes: the wrapped key; raw answer bytes: the sealed key when it goes to the agent. `invalid-ciphertext`: it does not open. */
  unwrap: {
    path: '/objects/:handle/unwrap',
    head: object({ mechanism: wrapping, into: destination }),
    answer: answer({ object: nullable(tokenObject) }),
  },
  /** Raw request bytes: see `derivation`; raw answer bytes: the sealed key when it goes to the agent. */
  derive: {
    path: '/objects/:handle/derive',
    head: object({ mechanism: derivation, into: destination }),
    answer: answer({ object: nullable(tokenObject) }),
  },
} as const satisfies Readonly<
  Record<string, { readonly path: `/${string}`; readonly head: AnyCodec; readonly answer: AnyCodec }>
>;

export type TdeRoute = keyof typeof tdeRoutes;
/** Heads as they travel. */
export type TdeRoutes = {
  readonly [R in TdeRoute]: {
    readonly head: WireOf<(typeof tdeRoutes)[R]['head']>;
    readonly answer: WireOf<(typeof tdeRoutes)[R]['answer']>;
  };
};
/** Heads of requests as the agent makes and the service reads them. */
export type Heads = { readonly [R in TdeRoute]: ValueOf<(typeof tdeRoutes)[R]['head']> };
/** Heads of answers as the service makes and the agent reads them. */
export type Answers = { readonly [R in TdeRoute]: ValueOf<(typeof tdeRoutes)[R]['answer']> };
export type FindHead = TdeRoutes['findObjects']['head'];
export type ServiceInfo = Answers['info'];
export type WithdrawalOutcome = Answers['withdraw']['outcome'];

type AnswerCodec<R extends TdeRoute> = Codec<Answers[R], TdeRoutes[R]['answer']>;

type HeadCodec<R extends TdeRoute> = Codec<Heads[R], TdeRoutes[R]['head']>;

export const encodeHead = <R extends TdeRoute>(route: R, value: Heads[R]): TdeRoutes[R]['head'] =>
  (tdeRoutes[route].head as unknown as HeadCodec<R>).encode(value);
/** Throws 'validation', as `decodeAnswer` does. */
export const decodeHead = <R extends TdeRoute>(route: R, head: unknown): Heads[R] =>
  (tdeRoutes[route].head as unknown as HeadCodec<R>).decode(head, '');
export const encodeAnswer = <R extends TdeRoute>(route: R, value: Answers[R]): TdeRoutes[R]['answer'] =>
  (tdeRoutes[route].answer as unknown as AnswerCodec<R>).encode(value);
export const decodeAnswer = <R extends TdeRoute>(route: R, head: unknown): Answers[R] =>
  (tdeRoutes[route].answer as unknown as AnswerCodec<R>).decode(head, '');
