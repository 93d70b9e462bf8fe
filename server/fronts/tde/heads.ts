// What comes in the heads of TDE requests, checked before anything else sees it (contract/tde.ts has the shapes). Unknown
// members are refused: a misspelt one must not be silently without effect.

import { z } from 'zod';
import { digestNames } from '../../base/digests.ts';
import { ServiceError } from '../../base/errors.ts';
import type { DeriveMechanism, KeyDestination, PartOfMessage, SealTo, WrapMechanism } from '../../operations/index.ts';
import type { CipherParameters, MacParameters, OaepParameters, SignatureParameters } from '../../ports/crypto-core.ts';
import {
  type CipherHead,
  type CreateObject,
  type DeriveHead,
  type Destination,
  type InstanceHeader,
  type KeyUsage,
  keyAlgorithms,
  leastVerifiedMac,
  type MacHead,
  maxEnvelope,
  maxState,
  type OaepHead,
  type PartHead,
  type Pkcs1Head,
  type SignatureHead,
  sealedKeyInfo,
  type TdeRoutes,
  type WrapHead,
  type WrappedKey,
} from '../contract/tde.ts';

const base64 = (most: number) =>
  z
    .string()
    .max(Math.ceil(most / 3) * 4)
    .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'not Base64');

const objectClass = z.enum(['secret-key', 'public-key', 'private-key', 'certificate', 'data']);
const algorithm = z.enum(keyAlgorithms);
const usage = z.enum(['encrypt', 'decrypt', 'wrap', 'unwrap', 'sign', 'verify', 'derive']);
const usages = z.array(usage).max(7);
const label = base64(1024);
const attributes = base64(64 * 1024);

const empty: z.ZodType<Record<string, never>> = z.strictObject({});

const createObject = z.strictObject({
  class: objectClass,
  label,
  algorithm: algorithm.nullable(),
  bits: z.int().min(1).max(65_536).nullable(),
  usages,
  sensitive: z.boolean(),
  extractable: z.boolean(),
  modifiable: z.boolean(),
  destroyable: z.boolean(),
  private: z.boolean(),
  attributes,
}) satisfies z.ZodType<CreateObject>;

const findHead = z.strictObject({
  label: label.optional(),
  class: objectClass.optional(),
  after: z.int().min(0).max(0x7fffffff),
  limit: z.int().min(1).max(1000),
});

const iv16 = base64(16);
const ecbHead = z.strictObject({ mode: z.literal('ecb') });
const cbcHead = z.strictObject({ mode: z.literal('cbc'), iv: iv16 });
const gcmHead = z.strictObject({
  mode: z.literal('gcm'),
  iv: base64(128),
  aad: base64(64 * 1024),
  tagLength: z.int().min(4).max(16),
});
const ccmHead = (most: number) =>
  z.strictObject({
    mode: z.literal('ccm'),
    iv: base64(13),
    aad: base64(64 * 1024),
    tagLength: z.int().min(4).max(16),
    dataLength: z.int().min(0).max(most),
  });
const cipherHead = z.discriminatedUnion('mode', [
  ecbHead,
  cbcHead,
  z.strictObject({ mode: z.literal('cbc-pad'), iv: iv16 }),
  z.strictObject({ mode: z.literal('ctr'), iv: iv16, counterBits: z.int().min(1).max(128) }),
  gcmHead,
  ccmHead(maxEnvelope),
]) satisfies z.ZodType<CipherHead>;

const digest = z.enum(digestNames);

const oaepHead = z.strictObject({
  mode: z.literal('oaep'),
  digest,
  mgfDigest: digest,
  label: base64(64 * 1024),
}) satisfies z.ZodType<OaepHead>;

const pkcs1Head = z.strictObject({ mode: z.literal('rsa-pkcs1') }) satisfies z.ZodType<Pkcs1Head>;

const hmacHead = z.strictObject({ algorithm: z.literal('hmac'), digest });
const cmacHead = z.strictObject({ algorithm: z.literal('cmac') });
const macHead = z.discriminatedUnion('algorithm', [hmacHead, cmacHead]) satisfies z.ZodType<MacHead>;
/** Shorter ones are guessed byte by byte by who may only verify (SP 800-107, section 5.3.3). */
const length = z.int().min(leastVerifiedMac).max(64).optional();
const verifyHead = z.discriminatedUnion('algorithm', [
  hmacHead.extend({ length }),
  cmacHead.extend({ length }),
]) satisfies z.ZodType<TdeRoutes['verify']['head']>;

const partHead = { state: base64(maxState), last: z.boolean() };
const cipherPartHead = z.strictObject({
  ...partHead,
  use: z.enum(['encrypt', 'decrypt', 'check']),
  cipher: z.discriminatedUnion('mode', [gcmHead, ccmHead(2 ** 31)]),
}) satisfies z.ZodType<TdeRoutes['cipherPart']['head']>;
const macPartHead = z.strictObject({
  ...partHead,
  use: z.enum(['sign', 'verify']),
  mac: macHead,
  length,
}) satisfies z.ZodType<TdeRoutes['macPart']['head']>;

const signatureHead = z.discriminatedUnion('algorithm', [
  z.strictObject({ algorithm: z.literal('rsa-pkcs1') }),
  z.strictObject({
    algorithm: z.literal('rsa-pss'),
    digest,
    mgfDigest: digest,
    saltLength: z.int().min(0).max(512),
  }),
  z.strictObject({ algorithm: z.literal('ecdsa') }),
  z.strictObject({ algorithm: z.enum(['ed25519', 'ed448']) }),
]) satisfies z.ZodType<SignatureHead>;

const wrapHead = z.discriminatedUnion('way', [
  z.strictObject({ way: z.literal('key-wrap'), padded: z.boolean(), iv: base64(8).optional() }),
  z.strictObject({ way: z.literal('cipher'), cipher: cipherHead }),
  z.strictObject({ way: z.literal('oaep'), oaep: oaepHead }),
]) satisfies z.ZodType<WrapHead>;

const deriveHead = z.discriminatedUnion('way', [
  z.strictObject({
    way: z.literal('ecdh'),
    point: base64(1024),
    kdf: digest.nullable(),
    shared: base64(64 * 1024),
  }),
  z.strictObject({
    way: z.literal('hkdf'),
    digest,
    steps: z.enum(['both', 'extract', 'expand']),
    salt: base64(64 * 1024),
    saltKey: z.int().min(1).max(0x7fffffff).optional(),
    info: base64(64 * 1024),
  }),
  z.strictObject({
    way: z.literal('sp800-108'),
    prf: macHead,
    data: base64(4096),
    counterAt: z.int().min(0).max(4096).optional(),
    counterBytes: z.int().min(0).max(4),
    littleEndian: z.boolean(),
    previousAt: z.int().min(0).max(4096).optional(),
    counterFirst: z.boolean(),
    iv: base64(4096),
  }),
  z.strictObject({ way: z.literal('encryption'), cipher: z.discriminatedUnion('mode', [ecbHead, cbcHead]) }),
]) satisfies z.ZodType<DeriveHead>;

const destination = z.discriminatedUnion('on', [
  z.strictObject({ on: z.literal('token'), object: createObject }),
  z.strictObject({
    on: z.literal('session'),
    recipient: base64(32),
    class: z.enum(['secret-key', 'private-key']),
    algorithm,
    bits: z.int().min(1).max(65_536).nullable(),
    sensitive: z.boolean(),
    extractable: z.boolean(),
  }),
]) satisfies z.ZodType<Destination>;

const wrappedKey = z.discriminatedUnion('from', [
  z.strictObject({ from: z.literal('token'), handle: z.int().min(1).max(0x7fffffff) }),
  z.strictObject({
    from: z.literal('session'),
    class: z.enum(['secret-key', 'private-key']),
    sensitive: z.boolean(),
  }),
]) satisfies z.ZodType<WrappedKey>;

const instanceHeader = z.object({
  host: z.string().max(1024),
  pid: z.int().min(0),
  process: z.string().max(1024),
  library: z.string().max(256),
  agent: z.string().max(256),
  osUser: z.string().max(256),
}) satisfies z.ZodType<InstanceHeader>;

/** An Idempotency-Key, and an X-Request-Id. */
export const requestKey = /^[A-Za-z0-9._:-]{1,128}$/;

export const heads = {
  info: empty,
  generateKey: createObject,
  generateKeyPair: z.strictObject({ privateKey: createObject, publicKey: createObject.nullable() }),
  createObject,
  findObjects: findHead,
  getObject: empty,
  readValue: z.strictObject({ recipient: base64(32).optional() }),
  updateObject: z.strictObject({
    label: label.optional(),
    attributes: attributes.optional(),
    usages: usages.optional(),
    sensitive: z.literal(true).optional(),
    extractable: z.literal(false).optional(),
    replacesValue: z.literal(true).optional(),
    seen: z.strictObject({ attributes, usages }).optional(),
  }),
  destroyObject: empty,
  withdraw: z.strictObject({ key: z.string().regex(requestKey) }),
  checkUse: z.strictObject({ usage }) satisfies z.ZodType<{ readonly usage: KeyUsage }>,
  encrypt: cipherHead,
  decrypt: z.union([cipherHead, oaepHead, pkcs1Head]),
  cipherPart: cipherPartHead,
  sign: z.union([macHead, signatureHead]),
  verify: verifyHead,
  macPart: macPartHead,
  wrap: z.strictObject({ mechanism: wrapHead, key: wrappedKey }),
  unwrap: z.strictObject({ mechanism: wrapHead, into: destination }),
  derive: z.strictObject({ mechanism: deriveHead, into: destination }),
} as const satisfies Record<keyof TdeRoutes, z.ZodType>;

export type Heads = { readonly [R in keyof TdeRoutes]: z.infer<(typeof heads)[R]> };

/** The longest head has the attributes of two objects, with 64 KiB each. */
const longestHead = 512 * 1024;
/** Commas and brackets of a head: the longest one has some dozens, and none are in its texts, which are Base64 and names. */
const mostInHead = 512;
const [comma, bracket, brace] = [0x2c, 0x5b, 0x7b];

/** Throws 'validation' for a head that takes long to read. What is in it is checked afterwards. */
export const checkHeadSize = (json: Buffer): void => {
  const tooLong = (): ServiceError => new ServiceError('validation', 'the head is too long');
  if (json.length <= mostInHead) return;
  if (json.length > longestHead) throw tooLong();
  let count = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if ((byte === comma || byte === bracket || byte === brace) && ++count > mostInHead) throw tooLong();
  }
};

/** Names the first member that does not fit, never its value. */
const complaint = (error: z.ZodError): string => {
  const [first] = error.issues;
  if (first === undefined) return 'the head does not fit';
  const path = first.path.length === 0 ? 'the head' : first.path.join('.');
  return `${path}: ${first.code.replaceAll('_', ' ')}`;
};

export const parseHead = <R extends keyof TdeRoutes>(route: R, head: unknown): Heads[R] => {
  const result = heads[route].safeParse(head);
  if (!result.success) throw new ServiceError('validation', complaint(result.error));
  return result.data as Heads[R];
};

/** X-Dke-Instance: base64url JSON. */
const parseInstance = (header: string | undefined): InstanceHeader => {
  if (header === undefined || header.length > 4096)
    throw new ServiceError('validation', 'the header X-Dke-Instance is missing or too long');
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'));
  } catch (error) {
    throw new ServiceError('validation', 'the header X-Dke-Instance is not base64url JSON', { cause: error });
  }
  const result = instanceHeader.safeParse(value);
  if (!result.success) throw new ServiceError('validation', `X-Dke-Instance: ${complaint(result.error)}`);
  return result.data;
};

/** Texts of the header that are remembered with what they say: an agent sends the same one for every call of a process. */
const mostInstances = 1024;

/** Parses X-Dke-Instance; throws 'validation'. */
export const createInstances = (): { parse(header: string | string[] | undefined): InstanceHeader } => {
  const known = new Map<string, InstanceHeader>();
  return {
    parse: (header) => {
      const text = typeof header === 'string' ? header : undefined;
      const before = text === undefined ? undefined : known.get(text);
      if (before !== undefined) return before;
      const parsed = Object.freeze(parseInstance(text));
      if (known.size >= mostInstances) known.clear();
      if (text !== undefined) known.set(text, parsed);
      return parsed;
    },
  };
};

const decode = (text: string): Buffer => Buffer.from(text, 'base64');

export const toCipherParameters = (head: CipherHead): CipherParameters => {
  switch (head.mode) {
    case 'ecb':
      return { algorithm: 'aes-ecb' };
    case 'cbc':
      return { algorithm: 'aes-cbc', iv: decode(head.iv) };
    case 'cbc-pad':
      return { algorithm: 'aes-cbc-pad', iv: decode(head.iv) };
    case 'ctr':
      return { algorithm: 'aes-ctr', iv: decode(head.iv), counterBits: head.counterBits };
    case 'gcm':
      return { algorithm: 'aes-gcm', iv: decode(head.iv), aad: decode(head.aad), tagLength: head.tagLength };
    case 'ccm': {
      const { tagLength, dataLength } = head;
      return { algorithm: 'aes-ccm', iv: decode(head.iv), aad: decode(head.aad), tagLength, dataLength };
    }
  }
};

export const toPart = ({ state, last }: PartHead, input: Uint8Array): PartOfMessage => ({
  state: decode(state),
  last,
  input,
});

export const toMacParameters = (head: MacHead): MacParameters =>
  head.algorithm === 'hmac' ? { algorithm: 'hmac', digest: head.digest } : { algorithm: 'aes-cmac' };

export const toOaepParameters = ({ digest, mgfDigest, label }: OaepHead): OaepParameters => ({
  padding: 'oaep',
  digest,
  mgfDigest,
  label: decode(label),
});

/** For input that is hashed already. */
export const toSignatureParameters = (head: SignatureHead): SignatureParameters => {
  switch (head.algorithm) {
    case 'rsa-pss':
      return { ...head, prehashed: true };
    case 'ecdsa':
      return { algorithm: 'ecdsa', encoding: 'p1363' };
    default:
      return head;
  }
};

export const toWrapMechanism = (head: WrapHead): WrapMechanism => {
  switch (head.way) {
    case 'key-wrap':
      return { ...head, iv: head.iv === undefined ? undefined : decode(head.iv) };
    case 'cipher':
      return { way: 'cipher', cipher: toCipherParameters(head.cipher) };
    case 'oaep':
      return { way: 'oaep', oaep: toOaepParameters(head.oaep) };
  }
};

export const toDeriveMechanism = (head: DeriveHead, data: Uint8Array): DeriveMechanism => {
  switch (head.way) {
    case 'ecdh':
      return { ...head, point: decode(head.point), shared: decode(head.shared) };
    case 'hkdf':
      return { ...head, salt: decode(head.salt), info: decode(head.info) };
    case 'sp800-108': {
      const { way, prf, ...parts } = head;
      return { way, prf: toMacParameters(prf), parts: { ...parts, data: decode(head.data), iv: decode(head.iv) } };
    }
    case 'encryption':
      return { way: 'encryption', cipher: toCipherParameters(head.cipher), data };
  }
};

/** `recipient`: the agent's, Base64. */
export const toSealTo = (recipient: string): SealTo => ({
  recipient: decode(recipient),
  info: Buffer.from(sealedKeyInfo),
});

export const toDestination = (into: Destination): KeyDestination =>
  into.on === 'token' ? into : { ...into, ...toSealTo(into.recipient) };
