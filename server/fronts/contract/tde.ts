// The TDE API: what the agent on a database host calls. Keys, labels, objects, bytes; no Cryptoki names.
//
// Base: https://HOST/tde/v1/<access_guid>/<app_id>   (this is `server_url` in pkcs11.toml)
// Every request bears `Authorization: Bearer <access_guid>`, `X-Request-Id` (the agent's call id; the audit record bears it
// too) and `X-Dke-Instance` (see `InstanceHeader`). The access_guid in the path and the bearer must be the same.
//
// Bodies are envelopes (media type `envelopeType`): u32 big-endian length of a JSON head, the JSON head (UTF-8), then raw
// bytes to the end. Data and key bytes travel in the raw part only, so that they never become a JavaScript string.
// Errors are RFC 9457 problem documents with `code` (ServiceErrorCode) and `requestId`. Answers to changes name the nodes that have not confirmed them
// (pending-nodes.ts). Mechanisms have the names and members of the core; tde-mechanisms.ts declares each once, and
// tde-codec.ts turns them into JSON and back.

import type {
  CipherHead,
  DecryptionHead,
  DeriveHead,
  MacHead,
  PartCipherHead,
  SigningHead,
  VerifyHead,
  WrapHead,
} from './tde-mechanisms.ts';
import type { CreateObject, Destination, KeyUsage, ObjectClass, WrappedKey } from './tde-objects.ts';

export { type PendingNodes, readPendingNodes } from './pending-nodes.ts';
export { type CipherHead, leastVerifiedMac, type MacHead, maxEnvelope } from './tde-mechanisms.ts';
export type { CreateObject, Destination, KeyAlgorithm, KeyUsage, ObjectClass, WrappedKey } from './tde-objects.ts';

export const envelopeType = 'application/vnd.dke.envelope';

/**
 * Of every answer: a number that changes with every change of keys and objects. What a client remembers of an object from answers
 * with another number may no longer hold.
 */
export const epochHeader = 'X-Dke-Epoch';

/** Base64url JSON in X-Dke-Instance: who calls, for the instance list, the blast radius and the audit log. */
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

/** A token object as the service knows it. */
export interface TokenObject extends CreateObject {
  readonly handle: number;
  /** The service's id: for keys the same id as in /api/keys. */
  readonly id: string;
  /** Secret and private keys: true when the service made the key, or derived it from such a one, and it was sensitive ever since. */
  readonly alwaysSensitive: boolean;
  /** The same for extractable: true when it never was. */
  readonly neverExtractable: boolean;
  /** True when the service made the key itself, false when it was imported. */
  readonly local: boolean;
  /** Base64: first 3 bytes, as PKCS#11 computes it; null for data objects. */
  readonly checkValue: string | null;
  /** Base64 of the SubjectPublicKeyInfo (RFC 5280) of a public key, and of a private key's public half; null otherwise. */
  readonly publicKey: string | null;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly state: 'active' | 'disabled' | 'soft-deleted';
  /** False for an object of another application of the same group: it may be used, not changed or destroyed. */
  readonly owned: boolean;
  /** What `checkUse` would admit now: in answers to a search by label that found few. A caller who finds a key usually uses it next. */
  readonly admits?: readonly KeyUsage[];
}

export interface ServiceInfo {
  readonly applicationId: string;
  readonly applicationName: string;
  readonly groupId: string;
  readonly tenantId: string;
  readonly serverVersion: string;
  /** The compatibility switches of the application that are on (base/compatibility.ts). An older service has none. */
  readonly compatibility?: readonly string[];
  /** Changes with every change of objects visible to this application. */
  readonly epoch: number;
  /** What keys are sealed to on their way to the service (see `keyForServiceInfo`). */
  readonly recipient: {
    readonly epoch: number;
    /** Base64 of an X25519 public key. */
    readonly publicKey: string;
  };
}

/**
 * HPKE's `info` for a key that the service seals to the agent; its `aad` is the handle of the object that it comes of, as u32.
 */
export const sealedKeyInfo = 'DKE session key 1';

/**
 * A secret or private key on its way to the service: the raw bytes are the recipient (`ServiceInfo`: `epoch`, u32, and public key, 32
 * bytes), and a secret key's value or a private key's PKCS#8, sealed to it (RFC 9180, base mode) with this `info`, and with `boundTo` as
 * the `aad`. The service has a new recipient after each erasure run; the code for an old one is `conflict` with the reason
 * `recipient-changed`, nothing was done, and the agent repeats the request with the key sealed to the new one.
 */
export const keyForServiceInfo = 'DKE key for the service 1';
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
 * What a sealed key is for, and all that it is for: the application, the route, the object in the path (0 for none), the
 * Idempotency-Key (empty where the route bears none) and the head, byte for byte.
 */
export const boundTo = (
  applicationId: string,
  route: keyof TdeRoutes,
  handle: number,
  once: string,
  head: Uint8Array,
): Buffer => Buffer.concat([Buffer.from(`${applicationId}\n${route}\n${handle}\n${once}\n`), head]);

/**
 * A part of a message that is longer than one request. Nothing of the message stays with the service: what the next part needs is in `state`
 * (Base64), sealed under the key, which the answer gives and the next request brings back. It is empty in the first request, and in the answer
 * to the last one. Requests go to any node, and one that is sent again has the same answer.
 */
export interface PartHead {
  readonly state: string;
  readonly last: boolean;
}

/** Most bytes of a sealed state. */
export const maxState = 512;

/** What is left of a withdrawn request. `kept`: it changed an object, or what it created was used since. */
export type WithdrawalOutcome = 'not-carried-out' | 'undone' | 'kept';

export interface FindHead {
  readonly label?: string | undefined;
  readonly class?: ObjectClass | undefined;
  /** Handles greater than this one; 0 to begin. */
  readonly after: number;
  readonly limit: number;
}

/**
 * The routes: method, path below the base, request head, whether raw bytes follow, answer head, whether raw bytes follow.
 * `:handle` is the object's numeric handle in decimal.
 */
export interface TdeRoutes {
  info: { head: Record<string, never>; answer: ServiceInfo };
  /** Creates a key inside the service. */
  generateKey: { head: CreateObject; answer: TokenObject };
  /**
   * Creates a pair inside the service. `bits`: RSA 2048, 3072 or 4096 (any multiple of 8 between), `ec` 224, 256, 384 or 521,
   * `brainpool` 256, 384 or 512, `secp256k1`, `ed25519` and `x25519` 256, `ed448` and `x448` 448. Without `publicKey` the agent keeps the public half itself, from `privateKey.publicKey`. Both or neither.
   */
  generateKeyPair: {
    head: { readonly privateKey: CreateObject; readonly publicKey: CreateObject | null };
    answer: { readonly privateKey: TokenObject; readonly publicKey: TokenObject | null };
  };
  /** Raw request bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public key; a secret or private key sealed. */
  createObject: { head: CreateObject; answer: TokenObject };
  findObjects: { head: FindHead; answer: { readonly objects: readonly TokenObject[]; readonly more: boolean } };
  getObject: { head: Record<string, never>; answer: TokenObject };
  /**
   * Raw answer bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public key; only if extractable and not
   * sensitive the value of a secret key and the PKCS#8 of a private one. With `recipient`, the agent's (see `Destination`), a key comes
   * sealed: for all but showing it to its owner.
   */
  readValue: { head: { readonly recipient?: string | undefined }; answer: Record<string, never> };
  /**
   * `replacesValue`: the raw request bytes are the new value of a data object. A key becomes sensitive, and stops being extractable;
   * this cannot be undone. What replaces a whole (`attributes`, `usages`) was
   * computed from what the caller saw: with `seen`, an object that is otherwise by now is left alone, and the code is `conflict`.
   */
  updateObject: {
    head: {
      readonly label?: string | undefined;
      readonly attributes?: string | undefined;
      readonly usages?: readonly KeyUsage[] | undefined;
      readonly sensitive?: true | undefined;
      readonly extractable?: false | undefined;
      readonly replacesValue?: true | undefined;
      readonly seen?: { readonly attributes: string; readonly usages: readonly KeyUsage[] } | undefined;
    };
    answer: TokenObject;
  };
  /** Destroys, for good. */
  destroyObject: { head: Record<string, never>; answer: Record<string, never> };
  /**
   * Withdraws the request that bears, or bore, this Idempotency-Key: the agent does not know its outcome and has told its caller that it
   * failed. If it was not carried out, it never will be. What it has created is destroyed, unless it was used since. Repeating a withdrawal
   * is safe, and it may come before the request.
   */
  withdraw: { head: { readonly key: string }; answer: { readonly outcome: WithdrawalOutcome } };
  /** Checks that the key may be used so, now: cheap. */
  checkUse: { head: { readonly usage: KeyUsage }; answer: Record<string, never> };
  encrypt: { head: CipherHead; answer: Record<string, never> };
  decrypt: { head: DecryptionHead; answer: Record<string, never> };
  /**
   * A part of a message under GCM or CCM. Raw bytes: data in, data out; the tag is the end of the last part, in both directions. `aad` is empty but
   * in the first part. `check` is a decryption that gives nothing out: a message is checked as a whole before it is decrypted.
   */
  cipherPart: {
    head: PartHead & {
      readonly use: 'encrypt' | 'decrypt' | 'check';
      readonly cipher: PartCipherHead;
    };
    answer: { readonly state: string };
  };
  sign: { head: SigningHead; answer: Record<string, never> };
  /**
   * Raw bytes: u32 length of the signature, signature, data. A wrong signature is the code invalid-ciphertext. MACs only: a
   * public key's work is the agent's own. With `length` the signature is that many bytes of the MAC, its first ones.
   */
  verify: { head: VerifyHead; answer: Record<string, never> };
  /**
   * A part of a message for a MAC. Raw answer bytes of the last part: the MAC to sign. To verify, the raw bytes of the last part begin with the
   * signature, as those of `verify`.
   */
  macPart: {
    head: PartHead & {
      readonly use: 'sign' | 'verify';
      readonly mac: MacHead;
      readonly length?: number | undefined;
    };
    answer: { readonly state: string };
  };
  /**
   * The object wraps another key: AES, or an RSA public key. Raw answer bytes: the wrapped key. Code `forbidden` where the key
   * is not extractable or the wrapping key is none that may wrap a sensitive one: one that the service made, that was never
   * extractable and does not decrypt (of RSA: whose private half is such a key in the group).
   */
  wrap: { head: { readonly mechanism: WrapHead; readonly key: WrappedKey }; answer: Record<string, never> };
  /** Raw request bytes: the wrapped key; raw answer bytes: the sealed key when it goes to the agent. `invalid-ciphertext`: it does not open. */
  unwrap: {
    head: { readonly mechanism: WrapHead; readonly into: Destination };
    answer: { readonly object: TokenObject | null };
  };
  /** Raw request bytes: see `DeriveHead`; raw answer bytes: the sealed key when it goes to the agent. */
  derive: {
    head: { readonly mechanism: DeriveHead; readonly into: Destination };
    answer: { readonly object: TokenObject | null };
  };
}

/**
 * Requests that make or change token objects bear `Idempotency-Key` (1 to 128 letters, digits and `._:-`, never used before by the
 * application). Sent again under the same key within seven days, to any node, such a request is not carried out twice: the answer is what
 * the first one made. The same key with another head is `conflict`, and so is a request that was withdrawn, with the reason `withdrawn`.
 * What is destroyed twice is `key-destroyed` the second time.
 */
export const onceHeader = 'Idempotency-Key';
export const onceRoutes: ReadonlySet<keyof TdeRoutes> = new Set([
  'generateKey',
  'generateKeyPair',
  'createObject',
  'updateObject',
  'unwrap',
  'derive',
]);

export const tdeRoutes = {
  info: { method: 'POST', path: '/info' },
  generateKey: { method: 'POST', path: '/keys' },
  generateKeyPair: { method: 'POST', path: '/key-pairs' },
  createObject: { method: 'POST', path: '/objects' },
  findObjects: { method: 'POST', path: '/objects/find' },
  getObject: { method: 'POST', path: '/objects/:handle/get' },
  readValue: { method: 'POST', path: '/objects/:handle/value' },
  updateObject: { method: 'POST', path: '/objects/:handle/update' },
  destroyObject: { method: 'POST', path: '/objects/:handle/destroy' },
  withdraw: { method: 'POST', path: '/withdrawals' },
  checkUse: { method: 'POST', path: '/objects/:handle/check-use' },
  encrypt: { method: 'POST', path: '/objects/:handle/encrypt' },
  decrypt: { method: 'POST', path: '/objects/:handle/decrypt' },
  cipherPart: { method: 'POST', path: '/objects/:handle/cipher-part' },
  sign: { method: 'POST', path: '/objects/:handle/sign' },
  verify: { method: 'POST', path: '/objects/:handle/verify' },
  macPart: { method: 'POST', path: '/objects/:handle/mac-part' },
  wrap: { method: 'POST', path: '/objects/:handle/wrap' },
  unwrap: { method: 'POST', path: '/objects/:handle/unwrap' },
  derive: { method: 'POST', path: '/objects/:handle/derive' },
} as const satisfies Record<keyof TdeRoutes, { method: 'POST'; path: `/${string}` }>;

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

/** Splits an envelope; `json` (the head as it came) and `raw` are views on the same memory. Throws RangeError on a broken layout and SyntaxError on bad JSON. */
export const unpackEnvelope = (
  body: Buffer,
): { readonly head: unknown; readonly json: Buffer; readonly raw: Buffer } => {
  const { json, raw } = splitEnvelope(body);
  return { head: JSON.parse(json.toString('utf8')), json, raw };
};

/** The same before the head is read. */
export const splitEnvelope = (body: Buffer): { readonly json: Buffer; readonly raw: Buffer } => {
  if (body.length < 4) throw new RangeError('envelope too short');
  const length = body.readUInt32BE(0);
  if (length > body.length - 4) throw new RangeError('envelope head longer than the body');
  return { json: body.subarray(4, 4 + length), raw: body.subarray(4 + length) };
};
