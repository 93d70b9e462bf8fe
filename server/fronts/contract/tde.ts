// The TDE API: what the agent on a database host calls. Keys, labels, objects, bytes; no Cryptoki names.
//
// Base: https://HOST/tde/v1/<access_guid>/<app_id>   (this is `server_url` in pkcs11.toml)
// Every request bears `Authorization: Bearer <access_guid>`, `X-Request-Id` (the agent's call id; the audit record bears it
// too) and `X-Dke-Instance` (see `InstanceHeader`). The access_guid in the path and the bearer must be the same.
//
// Bodies are envelopes (media type `envelopeType`): u32 big-endian length of a JSON head, the JSON head (UTF-8), then raw
// bytes to the end. Data and key bytes travel in the raw part only, so that they never become a JavaScript string.
// Errors are RFC 9457 problem documents with `code` (ServiceErrorCode) and `requestId`.

export const envelopeType = 'application/vnd.dke.envelope';
/** Largest body either side accepts, in bytes. */
export const maxEnvelope = 1 << 20;

/** Base64url JSON in X-Dke-Instance: who calls, for the instance list, the blast radius and the audit log. */
export interface InstanceHeader {
  readonly host: string;
  readonly pid: number;
  readonly process: string;
  readonly library: string;
  readonly agent: string;
  readonly osUser: string;
}

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
  readonly modifiable: boolean;
  readonly destroyable: boolean;
  /** True when the service made the key itself, false when it was imported. */
  readonly local: boolean;
  /** Visible only after login. */
  readonly private: boolean;
  /** Base64: first 3 bytes, as PKCS#11 computes it; null for data objects. */
  readonly checkValue: string | null;
  /** Base64 of the agent's encoding of every other attribute. */
  readonly attributes: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly state: 'active' | 'disabled' | 'soft-deleted';
  /** False for an object of another application of the same group: it may be used, not changed or destroyed. */
  readonly owned: boolean;
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

export type CipherHead =
  | { readonly mode: 'ecb' }
  | { readonly mode: 'cbc'; readonly iv: string }
  | { readonly mode: 'cbc-pad'; readonly iv: string }
  | { readonly mode: 'ctr'; readonly iv: string; readonly counterBits: number }
  | { readonly mode: 'gcm'; readonly iv: string; readonly aad: string; readonly tagLength: number };

export type MacHead =
  | { readonly algorithm: 'hmac'; readonly digest: 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512' }
  | { readonly algorithm: 'cmac' };

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
  /** Raw request bytes: the value of a key or data object. */
  createObject: { head: CreateObject; answer: TokenObject };
  findObjects: { head: FindHead; answer: { readonly objects: readonly TokenObject[]; readonly more: boolean } };
  getObject: { head: Record<string, never>; answer: TokenObject };
  /** Raw answer bytes: the value of a data object, certificate or public key; of a secret key only if extractable and not sensitive. */
  readValue: { head: Record<string, never>; answer: Record<string, never> };
  updateObject: {
    head: { readonly label?: string; readonly attributes?: string; readonly usages?: readonly KeyUsage[] };
    answer: TokenObject;
  };
  /** Destroys, for good. */
  destroyObject: { head: Record<string, never>; answer: Record<string, never> };
  /** Checks that the key may be used so, now: cheap. */
  checkUse: { head: { readonly usage: KeyUsage }; answer: Record<string, never> };
  encrypt: { head: CipherHead; answer: Record<string, never> };
  decrypt: { head: CipherHead; answer: Record<string, never> };
  sign: { head: MacHead; answer: Record<string, never> };
  /** Raw bytes: u32 length of the signature, signature, data. A wrong signature is the code invalid-ciphertext. */
  verify: { head: MacHead; answer: Record<string, never> };
}

export const tdeRoutes = {
  info: { method: 'POST', path: '/info' },
  generateKey: { method: 'POST', path: '/keys' },
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
