// The TDE API: what the agent on a database host calls. Keys, labels, objects, bytes; no Cryptoki
// names.
//
// Base: https://HOST/tde/v1/<access_guid>/<app_id>   (this is `server_url` in pkcs11.toml)
// Every request has `Authorization: Bearer <access_guid>`, `X-Request-Id` (the agent's call id; the
// audit record has it too) and `X-Dke-Instance` (see `InstanceHeader`). The access_guid in the path
// and the bearer must be the same.
//
// Bodies are envelopes (media type `envelopeType`): u32 big-endian length of a JSON head, the JSON
// head (UTF-8), then raw bytes to the end. Data and key bytes travel in the raw part only, so that
// they never become a JavaScript string. Errors are RFC 9457 problem documents with `code`
// (ServiceErrorCode) and `requestId`. Answers to changes name the nodes that have not confirmed
// them (pending-nodes.ts). Mechanisms have the names and members of the core; tde-mechanisms.ts
// declares each once, and tde-codec.ts turns them into JSON and back.
//
// The routes are declared once, in a table: the path below the base, the head of its request and
// the head of its answer; comments say what the raw bytes are. All are POST, and `:handle` is the
// object's handle in decimal. Types, encoding and checks of agent and service follow.

import type { Label } from '../../addon/labels.ts';
import { mostHeadLevels, parseShallow } from '../base/json-members.ts';
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

export { type PendingNodes, readPendingNodes } from './pending-nodes.ts';
export {
  type HeldAnswer,
  type HeldObject,
  mostHeld,
  mostValues,
  packHandles,
  packHeld,
  unpackHeldAnswers,
  unpackValues,
  type ValueOf,
} from './tde-held.ts';
export { leastVerifiedMac, maxEnvelope } from './tde-mechanisms.ts';
export type {
  CreateObject,
  Destination,
  KeyAlgorithm,
  KeyRules,
  KeyUsage,
  ObjectClass,
  Prescription,
  TokenObject,
} from './tde-objects.ts';
export { longestLabel } from './tde-objects.ts';

/** An Idempotency-Key, and an X-Request-Id. */
export const requestKey = /^[A-Za-z0-9._:-]{1,128}$/;
/** Most bytes of a sealed state. */
const maxState = 512;

const nothing = object({});
const done = answer({});
const line = text(1024, /^/);

/**
 * A part of a message that is longer than one request. Nothing of the message stays with the
 * service: what the next part needs is in `state` (Base64), sealed under a key of the service,
 * which the answer gives and the next request brings back. It is empty in the first request, and in
 * the answer to the last one. Requests go to any node, and one that is sent again has the same
 * answer. After an erasure run the code is `conflict` with the reason `message-ended`: the message
 * begins again.
 */
const part = { state: base64Text(maxState), last: flag };
const nextPart = answer({ state: base64Text(maxState) });

const serviceInfo = answer({
  applicationId: line,
  applicationName: line,
  /** The label of the application's token. An older service has none: it is the name. */
  tokenLabel: optional(line),
  groupId: line,
  tenantId: line,
  serverVersion: line,
  /**
   * The compatibility switches of the application that are on (base/compatibility-switches.ts). An
   * older service has none.
   */
  compatibility: optional(list(line, 64)),
  /** Changes with every change of objects visible to this application. */
  epoch: integer(0, Number.MAX_SAFE_INTEGER),
  /**
   * What keys are sealed to on their way to the service (see `keyForServiceInfo`): Base64 of an
   * X25519 public key.
   */
  recipient: answer({ epoch: integer(0, 0xffffffff), publicKey: base64Text(32) }),
});

export const tdeRoutes = {
  info: { path: '/info', head: nothing, answer: serviceInfo },
  /** Creates a key inside the service. */
  generateKey: { path: '/keys', head: createObject, answer: tokenObject },
  /**
   * Creates a pair inside the service. `bits`: RSA 2048, 3072 or 4096 (any multiple of 8 between),
   * `ec` 224, 256, 384 or 521, `brainpool` 256, 384 or 512, `secp256k1`, `ed25519` and `x25519`
   * 256, `ed448` and `x448` 448. Without `publicKey` the agent keeps the public half itself, from
   * `privateKey.publicKey`. Both or neither.
   */
  generateKeyPair: {
    path: '/key-pairs',
    head: object({ privateKey: createObject, publicKey: nullable(createObject) }),
    answer: answer({ privateKey: tokenObject, publicKey: nullable(tokenObject) }),
  },
  /**
   * Raw request bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public
   * key; a secret or private key sealed.
   */
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
   * Raw answer bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public
   * key; only if extractable and not sensitive the value of a secret key and the PKCS#8 of a
   * private one. With `recipient`, the agent's (see `destination`), a key comes sealed: for all but
   * showing it to its owner.
   */
  readValue: { path: '/objects/:handle/value', head: object({ recipient: optional(recipient) }), answer: done },
  /**
   * `replacesValue`: the raw request bytes are the new value of a data object. A key becomes
   * sensitive, and stops being extractable; this cannot be undone. What replaces a whole
   * (`attributes`, `usages`) was computed from what the caller saw: with `seen`, an object that is
   * otherwise by now is left alone, and the code is `conflict`.
   */
  updateObject: {
    path: '/objects/:handle/update',
    head: object({
      label: optional(label),
      attributes: optional(attributes),
      usages: optional(usages),
      sensitive: optional(oneOf([true])),
      extractable: optional(oneOf([false])),
      wrapWithTrusted: optional(oneOf([true])),
      replacesValue: optional(oneOf([true])),
      seen: optional(object({ attributes, usages })),
    }),
    answer: tokenObject,
  },
  /** Destroys permanently. */
  destroyObject: { path: '/objects/:handle/destroy', head: nothing, answer: done },
  /**
   * Withdraws the request that has, or had, this Idempotency-Key: the agent does not know its
   * outcome and has told its caller that it failed. If it was not carried out, it never will be.
   * What it has created is destroyed, unless it was used since. Repeating a withdrawal is safe, and
   * it may come before the request. `kept`: it changed an object, or what it created was used
   * since.
   */
  withdraw: {
    path: '/withdrawals',
    head: object({ key: text(128, requestKey) }),
    answer: answer({ outcome: word(['not-carried-out', 'undone', 'kept']) }),
  },
  /** Checks that the key may be used so, now: cheap. */
  checkUse: { path: '/objects/:handle/check-use', head: object({ usage }), answer: done },
  /**
   * Whether what the agent holds of many objects is still so. Raw bytes of request and answer:
   * entries of tde-held.ts. An older service has no such route; then each object is asked for.
   */
  refresh: { path: '/objects/refresh', head: nothing, answer: done },
  /**
   * Raw request bytes: handles of data objects; raw answer bytes: their values (tde-held.ts),
   * without those that cannot be read.
   */
  readValues: { path: '/objects/values', head: nothing, answer: done },
  encrypt: { path: '/objects/:handle/encrypt', head: cipher, answer: done },
  decrypt: { path: '/objects/:handle/decrypt', head: decryption, answer: done },
  /**
   * A part of a message under GCM or CCM. Raw bytes: data in, data out; the tag is the end of the
   * last part, in both directions. `aad` is empty but in the first part. `check` is a decryption
   * that gives nothing out: a message is checked as a whole before it is decrypted.
   */
  cipherPart: {
    path: '/objects/:handle/cipher-part',
    head: object({ ...part, use: oneOf(['encrypt', 'decrypt', 'check']), cipher: partCipher }),
    answer: nextPart,
  },
  sign: { path: '/objects/:handle/sign', head: signing, answer: done },
  /**
   * Raw bytes: u32 length of the signature, signature, data. A wrong signature is the code
   * invalid-ciphertext. MACs only: a public key's work is the agent's own. With `length` the
   * signature is that many bytes of the MAC, its first ones.
   */
  verify: { path: '/objects/:handle/verify', head: verifiedMac, answer: done },
  /**
   * A part of a message for a MAC. Raw answer bytes of the last part: the MAC to sign. To verify,
   * the raw bytes of the last part begin with the signature, as those of `verify`.
   */
  macPart: {
    path: '/objects/:handle/mac-part',
    head: object({ ...part, use: oneOf(['sign', 'verify']), mac, length: macLength }),
    answer: nextPart,
  },
  /**
   * The object wraps another key: AES, or an RSA public key. Raw answer bytes: the wrapped key.
   * Code `forbidden` where the key is not extractable or the wrapping key is none that may wrap a
   * sensitive one: one that the service made, that was never extractable and does not decrypt (of
   * RSA: whose private half is such a key in the group).
   */
  wrap: {
    path: '/objects/:handle/wrap',
    head: object({ mechanism: wrapping, key: wrappedKey }),
    answer: done,
  },
  /**
   * Raw request bytes: the wrapped key; raw answer bytes: the sealed key when it goes to the agent.
   * `invalid-ciphertext`: it does not open.
   */
  unwrap: {
    path: '/objects/:handle/unwrap',
    head: object({ mechanism: wrapping, into: destination }),
    answer: answer({ object: nullable(tokenObject) }),
  },
  /**
   * Raw request bytes: see `derivation`; raw answer bytes: the sealed key when it goes to the
   * agent.
   */
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

export const envelopeType = 'application/vnd.dke.envelope';

/**
 * A header of every answer: a number that changes with every change of keys and objects, as it was
 * when the request came: what the answer tells is at least as new. What a client remembers of an
 * object from answers with another number may be outdated.
 */
export const epochHeader = 'X-Dke-Epoch';

/**
 * Base64url JSON in X-Dke-Instance: who calls, for the instance list, the blast radius and the
 * audit log.
 */
export interface InstanceHeader {
  readonly host: string;
  readonly pid: number;
  readonly process: string;
  readonly library: string;
  readonly agent: string;
  readonly osUser: string;
}

/** The header as it travels: Base64 (URL-safe) of the JSON. */
export const instanceText = (instance: InstanceHeader): string =>
  Buffer.from(JSON.stringify(instance)).toString('base64url');

/**
 * HPKE's `info` for a key that the service seals to the agent; its `aad` is the handle of the
 * object that it comes of, as u32.
 */
export const sealedKeyInfo: Label = 'DKE session key 1';

/**
 * A secret or private key on its way to the service: the raw bytes are the recipient
 * (`ServiceInfo`: `epoch`, u32, and public key, 32 bytes), and a secret key's value or a private
 * key's PKCS#8, sealed to it (RFC 9180, base mode) with this `info`, and with `boundTo` as the
 * `aad`. The service has a new recipient after each erasure run; the code for an old one is
 * `conflict` with the reason `recipient-changed`, nothing was done, and the agent repeats the
 * request with the key sealed to the new one.
 */
export const keyForServiceInfo: Label = 'DKE key for the service 1';
export const recipientChanged = 'recipient-changed';

const publicKeyBytes = 32;

export const packSealed = (
  { epoch, publicKey }: { readonly epoch: number; readonly publicKey: Uint8Array },
  sealed: Uint8Array,
): Buffer<ArrayBuffer> => {
  const raw = Buffer.allocUnsafeSlow(4 + publicKeyBytes + sealed.length);
  raw.writeUInt32BE(epoch, 0);
  raw.set(publicKey, 4);
  raw.set(sealed, 4 + publicKeyBytes);
  return raw;
};

/** Splits it into views. Throws RangeError when it is too short. */
export const unpackSealed = (raw: Buffer) => {
  if (raw.length < 4 + publicKeyBytes) throw new RangeError('sealed key too short');
  const publicKey = raw.subarray(4, 4 + publicKeyBytes);
  return { recipient: { epoch: raw.readUInt32BE(0), publicKey }, sealed: raw.subarray(4 + publicKeyBytes) };
};

/**
 * What a sealed key is for, and all that it is for: the application, the route, the object in the
 * path (0 for none), the Idempotency-Key (empty where the route has none) and the head, byte for
 * byte.
 */
export const boundTo = (
  applicationId: string,
  route: TdeRoute,
  handle: number,
  once: string,
  head: Uint8Array,
): Buffer => Buffer.concat([Buffer.from(`${applicationId}\n${route}\n${handle}\n${once}\n`), head]);

/**
 * Requests that make or change token objects have `Idempotency-Key` (1 to 128 letters, digits and
 * `._:-`, never used before by the application). Sent again under the same key within seven days,
 * to any node, such a request is not carried out twice: the answer is what the first one made. The
 * same key with another head is `conflict`, and so is a request that was withdrawn, with the reason
 * `withdrawn`. What is destroyed twice is `key-destroyed` the second time.
 */
export const onceHeader = 'Idempotency-Key';
export const onceRoutes: ReadonlySet<TdeRoute> = new Set([
  'generateKey',
  'generateKeyPair',
  'createObject',
  'updateObject',
  'unwrap',
  'derive',
]);

/** A head as it travels. */
export const headBytes = (head: object): Buffer => Buffer.from(JSON.stringify(head), 'utf8');

/** Packs a head and raw bytes into one envelope. */
export const packEnvelope = (head: object, raw: Uint8Array = new Uint8Array(0)): Buffer => {
  const json = headBytes(head);
  const out = Buffer.allocUnsafeSlow(4 + json.length + raw.length);
  out.writeUInt32BE(json.length, 0);
  json.copy(out, 4);
  out.set(raw, 4 + json.length);
  return out;
};

/**
 * Splits an envelope; `json` (the head as it came) and `raw` are views on the same memory. Throws
 * RangeError on a broken layout and SyntaxError on bad JSON.
 */
export const unpackEnvelope = (
  body: Buffer,
): { readonly head: unknown; readonly json: Buffer; readonly raw: Buffer } => {
  const { json, raw } = splitEnvelope(body);
  return { head: parseShallow(json, mostHeadLevels), json, raw };
};

/** Splits an envelope before its head is read. Throws RangeError on a broken layout. */
export const splitEnvelope = (body: Buffer): { readonly json: Buffer; readonly raw: Buffer } => {
  if (body.length < 4) throw new RangeError('envelope too short');
  const length = body.readUInt32BE(0);
  if (length > body.length - 4) throw new RangeError('envelope head longer than the body');
  return { json: body.subarray(4, 4 + length), raw: body.subarray(4 + length) };
};
