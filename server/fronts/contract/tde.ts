// The TDE API: what the agent on a database host calls. Keys, labels, objects, bytes; no Cryptoki names.
//
// Base: https://HOST/tde/v1/<access_guid>/<app_id>   (this is `server_url` in pkcs11.toml)
// Every request bears `Authorization: Bearer <access_guid>`, `X-Request-Id` (the agent's call id; the audit record bears it
// too) and `X-Dke-Instance` (see `InstanceHeader`). The access_guid in the path and the bearer must be the same.
//
// Bodies are envelopes (media type `envelopeType`): u32 big-endian length of a JSON head, the JSON head (UTF-8), then raw
// bytes to the end. Data and key bytes travel in the raw part only, so that they never become a JavaScript string.
// Errors are RFC 9457 problem documents with `code` (ServiceErrorCode) and `requestId`.

import type { DigestName } from '../../base/digests.ts';

export const envelopeType = 'application/vnd.dke.envelope';
/** Largest body either side accepts, in bytes. */
export const maxEnvelope = 1 << 20;

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

export type ObjectClass = 'secret-key' | 'public-key' | 'private-key' | 'certificate' | 'data';
export type KeyAlgorithm = 'aes' | 'generic' | 'rsa' | 'ec' | 'ed25519';
export type KeyUsage = 'encrypt' | 'decrypt' | 'wrap' | 'unwrap' | 'sign' | 'verify' | 'derive';

/** A token object as the service knows it. `attributes` is the agent's own encoding, kept verbatim and bound to the record. */
export interface TokenObject {
  /** Stable, positive, below 2^31; never reused. */
  readonly handle: number;
  /** The service's id: for keys the same id as in /api/keys. */
  readonly id: string;
  readonly class: ObjectClass;
  /** Base64 of the label's bytes. */
  readonly label: string;
  readonly algorithm: KeyAlgorithm | null;
  readonly bits: number | null;
  readonly usages: readonly KeyUsage[];
  readonly sensitive: boolean;
  readonly extractable: boolean;
  /** Secret and private keys: true when the service made the key, or derived it from such a one, and it was sensitive ever since. */
  readonly alwaysSensitive: boolean;
  /** The same for extractable: true when it never was. */
  readonly neverExtractable: boolean;
  readonly modifiable: boolean;
  readonly destroyable: boolean;
  /** True when the service made the key itself, false when it was imported. */
  readonly local: boolean;
  /** Visible only after login. */
  readonly private: boolean;
  /** Base64: first 3 bytes, as PKCS#11 computes it; null for data objects. */
  readonly checkValue: string | null;
  /** Base64 of the SubjectPublicKeyInfo (RFC 5280) of a public key, and of a private key's public half; null otherwise. */
  readonly publicKey: string | null;
  /** Base64 of the agent's encoding of every other attribute. */
  readonly attributes: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly state: 'active' | 'disabled' | 'soft-deleted';
  /** False for an object of another application of the same group: it may be used, not changed or destroyed. */
  readonly owned: boolean;
  /** What `checkUse` would admit now: in answers to a search by label that found few. Whoever finds a key mostly goes on to use it. */
  readonly admits?: readonly KeyUsage[];
}

export interface ServiceInfo {
  readonly applicationId: string;
  readonly applicationName: string;
  readonly groupId: string;
  readonly tenantId: string;
  readonly serverVersion: string;
  /** Changes with every change of objects visible to this application. */
  readonly epoch: number;
}

export type CreateObject = Pick<
  TokenObject,
  | 'class'
  | 'label'
  | 'algorithm'
  | 'bits'
  | 'usages'
  | 'sensitive'
  | 'extractable'
  | 'modifiable'
  | 'destroyable'
  | 'private'
  | 'attributes'
>;

/** A cipher of AES. Byte values are Base64, lengths are in bytes. `dataLength` is the message's, without its tag. */
export type CipherHead =
  | { readonly mode: 'ecb' }
  | { readonly mode: 'cbc'; readonly iv: string }
  | { readonly mode: 'cbc-pad'; readonly iv: string }
  | { readonly mode: 'ctr'; readonly iv: string; readonly counterBits: number }
  | { readonly mode: 'gcm'; readonly iv: string; readonly aad: string; readonly tagLength: number }
  | {
      readonly mode: 'ccm';
      readonly iv: string;
      readonly aad: string;
      readonly tagLength: number;
      readonly dataLength: number;
    };

/** RSA-OAEP (RFC 8017). `label` is Base64. */
export interface OaepHead {
  readonly mode: 'oaep';
  readonly digest: DigestName;
  readonly mgfDigest: DigestName;
  readonly label: string;
}

/** Fewest bytes of a MAC that are verified. */
export const leastVerifiedMac = 4;

export type MacHead = { readonly algorithm: 'hmac'; readonly digest: DigestName } | { readonly algorithm: 'cmac' };

/**
 * Signatures by a private key. The raw bytes are what is signed as it stands: for `rsa-pkcs1` the DigestInfo (or whatever
 * is to be padded), for `rsa-pss` and `ecdsa` the digest, for `ed25519` the message. The answer is the
 * signature: of `ecdsa` both numbers at the curve's length, r first.
 */
export type SignatureHead =
  | { readonly algorithm: 'rsa-pkcs1' }
  | {
      readonly algorithm: 'rsa-pss';
      readonly digest: DigestName;
      readonly mgfDigest: DigestName;
      readonly saltLength: number;
    }
  | { readonly algorithm: 'ecdsa' }
  | { readonly algorithm: 'ed25519' };

/** How a key is wrapped: AES key wrap (RFC 3394; `padded`: RFC 5649), under a cipher, or with OAEP. A private key travels as its PKCS#8. */
export type WrapHead =
  | { readonly way: 'key-wrap'; readonly padded: boolean }
  | { readonly way: 'cipher'; readonly cipher: CipherHead }
  | { readonly way: 'oaep'; readonly oaep: OaepHead };

/**
 * Byte values are Base64. `point` is uncompressed; `kdf` is that of X9.63. HKDF: RFC 5869; `saltKey` is the handle of a secret key
 * of the token whose value is the salt, and that may derive. `encryption`: the key is the front of what the raw request bytes
 * encrypt to, in ECB or CBC, under an AES key that is not sensitive.
 */
export type DeriveHead =
  | { readonly way: 'ecdh'; readonly point: string; readonly kdf: DigestName | null; readonly shared: string }
  | {
      readonly way: 'hkdf';
      readonly digest: DigestName;
      readonly steps: 'both' | 'extract' | 'expand';
      readonly salt: string;
      readonly saltKey?: number | undefined;
      readonly info: string;
    }
  | { readonly way: 'encryption'; readonly cipher: Extract<CipherHead, { readonly mode: 'ecb' | 'cbc' }> };

/**
 * Where a key goes that was unwrapped or derived: onto the token, or to the agent that asks, sealed to `recipient`, Base64 of
 * the agent's ephemeral X25519 public key (RFC 9180, base mode; see `sealedKeyInfo`). `object.bits` may be null where the
 * wrapped key tells it.
 */
export type Destination =
  | { readonly on: 'token'; readonly object: CreateObject }
  | {
      readonly on: 'session';
      readonly recipient: string;
      readonly class: 'secret-key' | 'private-key';
      readonly algorithm: KeyAlgorithm;
      readonly bits: number | null;
      readonly sensitive: boolean;
      readonly extractable: boolean;
    };

/** HPKE's `info` for a sealed key; its `aad` is the handle of the key that unwrapped or derived it, as u32. */
export const sealedKeyInfo = 'DKE session key 1';

/** What is wrapped: an object of the token, or a value in the raw bytes (a secret's, or PKCS#8), which is the agent's session key. */
export type WrappedKey =
  | { readonly from: 'token'; readonly handle: number }
  | { readonly from: 'session'; readonly class: 'secret-key' | 'private-key'; readonly sensitive: boolean };

export interface FindHead {
  readonly label?: string;
  readonly class?: ObjectClass;
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
   * Creates a pair inside the service. `bits`: RSA 2048, 3072 or 4096 (any multiple of 8 between), EC 256, 384 or 521 (NIST P),
   * Ed25519 256. Without `publicKey` the agent keeps the public half itself, from `privateKey.publicKey`. Both or neither.
   */
  generateKeyPair: {
    head: { readonly privateKey: CreateObject; readonly publicKey: CreateObject | null };
    answer: { readonly privateKey: TokenObject; readonly publicKey: TokenObject | null };
  };
  /** Raw request bytes: the value of a secret key or data object, SubjectPublicKeyInfo of a public key, PKCS#8 of a private one. */
  createObject: { head: CreateObject; answer: TokenObject };
  findObjects: { head: FindHead; answer: { readonly objects: readonly TokenObject[]; readonly more: boolean } };
  getObject: { head: Record<string, never>; answer: TokenObject };
  /**
   * Raw answer bytes: the value of a data object or certificate, SubjectPublicKeyInfo of a public key; only if extractable and not
   * sensitive the value of a secret key and the PKCS#8 of a private one.
   */
  readValue: { head: Record<string, never>; answer: Record<string, never> };
  /**
   * A key becomes sensitive, and stops being extractable; there is no way back. What replaces a whole (`attributes`, `usages`) was
   * computed from what the caller saw: with `seen`, an object that is otherwise by now is left alone, and the code is `conflict`.
   */
  updateObject: {
    head: {
      readonly label?: string;
      readonly attributes?: string;
      readonly usages?: readonly KeyUsage[];
      readonly sensitive?: true;
      readonly extractable?: false;
      readonly seen?: { readonly attributes: string; readonly usages: readonly KeyUsage[] };
    };
    answer: TokenObject;
  };
  /** Destroys, for good. */
  destroyObject: { head: Record<string, never>; answer: Record<string, never> };
  /** Checks that the key may be used so, now: cheap. */
  checkUse: { head: { readonly usage: KeyUsage }; answer: Record<string, never> };
  encrypt: { head: CipherHead; answer: Record<string, never> };
  decrypt: { head: CipherHead | OaepHead; answer: Record<string, never> };
  sign: { head: MacHead | SignatureHead; answer: Record<string, never> };
  /**
   * Raw bytes: u32 length of the signature, signature, data. A wrong signature is the code invalid-ciphertext. MACs only: a
   * public key's work is the agent's own. With `length` the signature is that many bytes of the MAC, its first ones.
   */
  verify: { head: MacHead & { readonly length?: number | undefined }; answer: Record<string, never> };
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
 * application). Sent again under the same key within the hour, to any node, such a request makes nothing twice: the answer is what the
 * first one made. The same key with another head is `conflict`. What is destroyed twice is `key-destroyed` the second time.
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
  checkUse: { method: 'POST', path: '/objects/:handle/check-use' },
  encrypt: { method: 'POST', path: '/objects/:handle/encrypt' },
  decrypt: { method: 'POST', path: '/objects/:handle/decrypt' },
  sign: { method: 'POST', path: '/objects/:handle/sign' },
  verify: { method: 'POST', path: '/objects/:handle/verify' },
  wrap: { method: 'POST', path: '/objects/:handle/wrap' },
  unwrap: { method: 'POST', path: '/objects/:handle/unwrap' },
  derive: { method: 'POST', path: '/objects/:handle/derive' },
} as const satisfies Record<keyof TdeRoutes, { method: 'POST'; path: `/${string}` }>;

/** Packs a head and raw bytes into one envelope. */
export const packEnvelope = (head: object, raw: Uint8Array = new Uint8Array(0)): Buffer => {
  const json = Buffer.from(JSON.stringify(head), 'utf8');
  const out = Buffer.allocUnsafeSlow(4 + json.length + raw.length);
  out.writeUInt32BE(json.length, 0);
  json.copy(out, 4);
  out.set(raw, 4 + json.length);
  return out;
};

/** Splits an envelope; `raw` is a view on the same memory. Throws RangeError on a broken layout and SyntaxError on bad JSON. */
export const unpackEnvelope = (body: Buffer): { readonly head: unknown; readonly raw: Buffer } => {
  if (body.length < 4) throw new RangeError('envelope too short');
  const length = body.readUInt32BE(0);
  if (length > body.length - 4) throw new RangeError('envelope head longer than the body');
  return { head: JSON.parse(body.toString('utf8', 4, 4 + length)), raw: body.subarray(4 + length) };
};
