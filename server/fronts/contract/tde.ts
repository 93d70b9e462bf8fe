// The TDE API: what the agent on a database host calls. Keys, labels, objects, bytes; no Cryptoki names.
//
// Base: https://HOST/tde/v1/<access_guid>/<app_id>   (this is `server_url` in pkcs11.toml)
// Every request has `Authorization: Bearer <access_guid>`, `X-Request-Id` (the agent's call id; the audit record has it
// too) and `X-Dke-Instance` (see `InstanceHeader`). The access_guid in the path and the bearer must be the same.
//
// Bodies are envelopes (media type `envelopeType`): u32 big-endian length of a JSON head, the JSON head (UTF-8), then raw
// bytes to the end. Data and key bytes travel in the raw part only, so that they never become a JavaScript string.
// Errors are RFC 9457 problem documents with `code` (ServiceErrorCode) and `requestId`. Answers to changes name the nodes that have not confirmed them
// (pending-nodes.ts). Mechanisms have the names and members of the core; tde-mechanisms.ts declares each once, and
// tde-codec.ts turns them into JSON and back.

import type { TdeRoute } from './tde-routes.ts';

export { type PendingNodes, readPendingNodes } from './pending-nodes.ts';
export { leastVerifiedMac, maxEnvelope } from './tde-mechanisms.ts';
export type {
  CreateObject,
  Destination,
  KeyAlgorithm,
  KeyUsage,
  ObjectClass,
  TokenObject,
} from './tde-objects.ts';
export {
  type Answers,
  decodeAnswer,
  decodeHead,
  encodeAnswer,
  encodeHead,
  type FindHead,
  type Heads,
  requestKey,
  type ServiceInfo,
  type TdeRoute,
  type TdeRoutes,
  tdeRoutes,
  type WithdrawalOutcome,
} from './tde-routes.ts';

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
 * Idempotency-Key (empty where the route has none) and the head, byte for byte.
 */
export const boundTo = (
  applicationId: string,
  route: TdeRoute,
  handle: number,
  once: string,
  head: Uint8Array,
): Buffer => Buffer.concat([Buffer.from(`${applicationId}\n${route}\n${handle}\n${once}\n`), head]);

/**
 * Requests that make or change token objects have `Idempotency-Key` (1 to 128 letters, digits and `._:-`, never used before by the
 * application). Sent again under the same key within seven days, to any node, such a request is not carried out twice: the answer is what
 * the first one made. The same key with another head is `conflict`, and so is a request that was withdrawn, with the reason `withdrawn`.
 * What is destroyed twice is `key-destroyed` the second time.
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
