// For every mechanism of the table: a parameter that it takes, parameters that it does not take, and keys of every type, with
// everything allowed, to try it with.
import { createECDH } from 'node:crypto';
import type { MechanismRow } from '../../provider/client/operations/mechanisms.ts';
import { CKA } from '../../provider/schema/attributes.ts';
import { CKD, CKG, CKK, CKO, HKDF_SALT } from '../../provider/schema/constants.ts';
import { CKM, parameterKind } from '../../provider/schema/mechanisms.ts';
import type { AttributeValue, MechanismParameter, MechanismParameterKind } from '../../provider/schema/types.ts';
import type { DigestName } from '../../server/base/digests.ts';
import type { InProcessAgent } from './in-process-agent.ts';
import { template } from './template.ts';

export type Row = readonly [number, AttributeValue];

/** What the standard calls the core's digests: mechanism, and mask generation function. */
export const digestMechanisms = {
  sha1: { hash: CKM.SHA_1, mgf: CKG.MGF1_SHA1 },
  sha224: { hash: CKM.SHA224, mgf: CKG.MGF1_SHA224 },
  sha256: { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256 },
  sha384: { hash: CKM.SHA384, mgf: CKG.MGF1_SHA384 },
  sha512: { hash: CKM.SHA512, mgf: CKG.MGF1_SHA512 },
  'sha512-224': { hash: CKM.SHA512_224, mgf: null },
  'sha512-256': { hash: CKM.SHA512_256, mgf: null },
  'sha3-224': { hash: CKM.SHA3_224, mgf: CKG.MGF1_SHA3_224 },
  'sha3-256': { hash: CKM.SHA3_256, mgf: CKG.MGF1_SHA3_256 },
  'sha3-384': { hash: CKM.SHA3_384, mgf: CKG.MGF1_SHA3_384 },
  'sha3-512': { hash: CKM.SHA3_512, mgf: CKG.MGF1_SHA3_512 },
} as const satisfies Record<DigestName, { hash: number; mgf: number | null }>;

const nothing = new Uint8Array(0);
const peer = createECDH('prime256v1').generateKeys();
let ivs = 0;
/** An IV that was not used before. */
const freshIv = (): Buffer => {
  const iv = Buffer.alloc(12);
  iv.writeUInt32BE(++ivs);
  return iv;
};

const samples = {
  none: () => null,
  bytes: () => ({ kind: 'bytes', bytes: new Uint8Array(16) }),
  ulong: () => ({ kind: 'ulong', value: 8 }),
  ctr: () => ({ kind: 'ctr', counterBits: 128, block: new Uint8Array(16) }),
  gcm: () => ({ kind: 'gcm', iv: freshIv(), ivBits: 96, aad: nothing, tagBits: 128 }),
  ccm: () => ({ kind: 'ccm', dataLength: 16, nonce: freshIv(), aad: nothing, macLength: 16 }),
  pss: () => ({ kind: 'pss', hash: CKM.SHA256, mgf: CKG.MGF1_SHA256, saltLength: 20 }),
  oaep: () => ({ kind: 'oaep', hash: CKM.SHA256, mgf: CKG.MGF1_SHA256, source: 1, label: nothing }),
  ecdh1: () => ({ kind: 'ecdh1', kdf: CKD.NULL, shared: nothing, publicData: peer }),
  hkdf: () => ({
    kind: 'hkdf',
    extract: true,
    expand: true,
    hash: CKM.SHA256,
    saltType: HKDF_SALT.NULL,
    salt: nothing,
    saltKey: 0,
    info: nothing,
  }),
  sp800: () => ({
    kind: 'sp800',
    prf: CKM.SHA256_HMAC,
    additionalKeys: 0,
    iv: nothing,
    data: [{ type: 1, littleEndian: false, bits: 32, method: 0, bytes: nothing }],
  }),
  eddsa: () => ({ kind: 'eddsa', prehash: false, context: nothing }),
  data: () => ({ kind: 'data', data: new Uint8Array(32) }),
  ivdata: () => ({ kind: 'ivdata', iv: new Uint8Array(16), data: new Uint8Array(32) }),
} as const satisfies Record<MechanismParameterKind | 'none', () => MechanismParameter | null>;

const keyWraps: readonly number[] = [CKM.AES_KEY_WRAP, CKM.AES_KEY_WRAP_PAD, CKM.AES_KEY_WRAP_KWP];

/** One that the mechanism takes. */
export const goodParameter = ({ type, signature }: MechanismRow): MechanismParameter | null => {
  if (keyWraps.includes(type) || type === CKM.EDDSA) return null;
  const kind = parameterKind(type);
  if (type === CKM.SP800_108_FEEDBACK_KDF) {
    return { ...samples.sp800(), data: [{ type: 1, littleEndian: false, bits: 0, method: 0, bytes: nothing }] };
  }
  const digest = signature?.digest;
  if (kind === 'pss' && digest !== null && digest !== undefined) {
    const { hash, mgf } = digestMechanisms[digest];
    return { kind, hash, mgf: mgf ?? 0, saltLength: 20 };
  }
  return samples[kind]();
};

type Pss = Extract<MechanismParameter, { kind: 'pss' }>;
const spoilt: Readonly<Partial<Record<MechanismParameterKind, (row: MechanismRow) => readonly object[]>>> = {
  bytes: () => [{ bytes: new Uint8Array(15) }, { bytes: new Uint8Array(17) }],
  ulong: ({ mac }) => [{ value: 0 }, { value: (mac?.length ?? 0) + 1 }, { value: -1 }],
  ctr: () => [{ counterBits: 0 }, { counterBits: 129 }, { counterBits: -1 }],
  gcm: () => [{ iv: nothing }, { iv: new Uint8Array(257) }, { tagBits: 88 }, { tagBits: 127 }, { tagBits: 136 }],
  ccm: () => [{ nonce: new Uint8Array(6) }, { macLength: 2 }, { macLength: 9 }, { dataLength: -1 }],
  pss: (row) => [
    { hash: CKM.AES_CBC },
    { mgf: 0 },
    { mgf: 99 },
    { saltLength: -1 },
    { saltLength: 10_000 },
    // The hash of the mechanism's name and that of its parameter are one.
    ...(row.signature?.digest === null
      ? []
      : [{ hash: (goodParameter(row) as Pss).hash === CKM.SHA256 ? CKM.SHA512 : CKM.SHA256 }]),
  ],
  oaep: () => [{ hash: CKM.AES_CBC }, { mgf: 99 }, { source: 2 }, { source: 0, label: Uint8Array.of(1) }],
  ecdh1: () => [{ kdf: 99 }, { shared: Uint8Array.of(1) }, { publicData: nothing }, { publicData: new Uint8Array(65) }],
  hkdf: () => [{ hash: CKM.AES_CBC }, { saltType: 0 }, { saltType: 8 }, { extract: false, expand: false }],
  sp800: () => [{ prf: CKM.SHA256 }, { additionalKeys: 1 }, { data: [] }],
  // Any CK_EDDSA_PARAMS asks for another signature than plain Ed25519.
  eddsa: () => [{}, { prehash: true }, { context: Uint8Array.of(1) }],
  data: () => [{ data: nothing }, { data: new Uint8Array(17) }],
  ivdata: () => [{ data: nothing }, { data: new Uint8Array(17) }, { iv: new Uint8Array(15) }],
};
/** The parameter may be left out. */
const optional: readonly number[] = [CKM.EDDSA, ...keyWraps];

/** All sorts that the mechanism does not take: those of other mechanisms, none where it needs one, and its own with a fault. */
export const badParameters = (row: MechanismRow): readonly (MechanismParameter | null)[] => {
  const own = parameterKind(row.type);
  const foreign = Object.entries(samples).flatMap(([kind, make]) => {
    const leftOut = kind === 'none' && optional.includes(row.type);
    return kind === own || leftOut ? [] : [make()];
  });
  const good = goodParameter(row) ?? samples[own]();
  const faults = own === 'none' ? [] : (spoilt[own]?.(row) ?? []);
  return [...foreign, ...faults.map((fault) => ({ ...good, ...fault }) as MechanismParameter)];
};

// --- keys -------------------------------------------------------------------------------------------------------------

export interface SampleKeys {
  /** By type: a secret key, or the halves of a pair, with every use allowed. */
  readonly secret: ReadonlyMap<number, number>;
  readonly pairs: ReadonlyMap<number, { readonly publicKey: number; readonly privateKey: number }>;
  /** An AES key that any key may wrap. */
  readonly open: number;
}

const secretTypes: readonly number[] = [
  CKK.AES,
  CKK.GENERIC_SECRET,
  CKK.HKDF,
  CKK.SHA_1_HMAC,
  CKK.SHA224_HMAC,
  CKK.SHA256_HMAC,
  CKK.SHA384_HMAC,
  CKK.SHA512_HMAC,
  CKK.SHA512_224_HMAC,
  CKK.SHA512_256_HMAC,
  CKK.SHA3_224_HMAC,
  CKK.SHA3_256_HMAC,
  CKK.SHA3_384_HMAC,
  CKK.SHA3_512_HMAC,
];
const usages = [CKA.ENCRYPT, CKA.DECRYPT, CKA.SIGN, CKA.VERIFY, CKA.WRAP, CKA.UNWRAP, CKA.DERIVE];
const curves: Readonly<Record<string, string>> = {
  p256: '06082a8648ce3d030107',
  ed25519: '06032b6570',
  x25519: '06032b656e',
};

export const curve = (name: string): Buffer => Buffer.from(curves[name] ?? '', 'hex');

/** A secret key, not sensitive, of 32 bytes unless told otherwise. */
export const createSecret = (
  agent: InProcessAgent,
  session: number,
  keyType: number,
  ...rows: readonly Row[]
): Promise<number> => {
  const given = new Map<number, AttributeValue>([
    [CKA.CLASS, CKO.SECRET_KEY],
    [CKA.KEY_TYPE, keyType],
    [CKA.VALUE, Buffer.alloc(32, keyType + 1)],
    [CKA.SENSITIVE, false],
    [CKA.EXTRACTABLE, true],
    ...usages.map((usage) => [usage, true] as const),
    ...rows,
  ]);
  return agent.call('C_CreateObject', { session, template: template(...given) }) as Promise<number>;
};

/** How a pair of each type is asked for. */
export const pairTemplates: ReadonlyMap<number, { readonly type: number; readonly rows: readonly Row[] }> = new Map([
  [CKK.RSA, { type: CKM.RSA_PKCS_KEY_PAIR_GEN, rows: [[CKA.MODULUS_BITS, 2048]] }],
  [CKK.EC, { type: CKM.EC_KEY_PAIR_GEN, rows: [[CKA.EC_PARAMS, curve('p256')]] }],
  [CKK.EC_EDWARDS, { type: CKM.EC_EDWARDS_KEY_PAIR_GEN, rows: [[CKA.EC_PARAMS, curve('ed25519')]] }],
  [CKK.EC_MONTGOMERY, { type: CKM.EC_MONTGOMERY_KEY_PAIR_GEN, rows: [[CKA.EC_PARAMS, curve('x25519')]] }],
]);

export const makeSampleKeys = async (agent: InProcessAgent, session: number, token: boolean): Promise<SampleKeys> => {
  const secret = new Map<number, number>();
  for (const type of secretTypes) secret.set(type, await createSecret(agent, session, type, [CKA.TOKEN, token]));
  const pairs = new Map<number, { readonly publicKey: number; readonly privateKey: number }>();
  for (const [keyType, { type, rows }] of pairTemplates) {
    const asked = {
      session,
      mechanism: { type, parameter: null },
      publicTemplate: template(...rows, [CKA.TOKEN, token]),
      privateTemplate: template([CKA.TOKEN, token], ...(keyType === CKK.EC ? [[CKA.DERIVE, true] as const] : [])),
    };
    pairs.set(keyType, await agent.call('C_GenerateKeyPair', asked));
  }
  return { secret, pairs, open: await createSecret(agent, session, CKK.AES, [CKA.TOKEN, token]) };
};
