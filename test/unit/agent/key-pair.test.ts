// Pairs of keys: PKCS#11 2.40, sections 5.7, 5.11, 5.12 and 5.14; mechanisms 2.1 and 2.3. Node's
// own cryptography is the other side: it imports the public keys of the token, verifies the token's
// signatures, and signs for the token.
import {
  constants,
  generateKeyPairSync,
  type JsonWebKey,
  sign as nodeSign,
  verify as nodeVerify,
  publicEncrypt,
} from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKG, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { CKR } from '../../../provider/schema/return-values.ts';
import type { MechanismParameter } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room } from '../../support/in-process-agent.ts';
import { mech, oaepWith, p256, type Row, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

const p384 = Buffer.from('06052b81040022', 'hex');
const p521 = Buffer.from('06052b81040023', 'hex');
const edwards = Buffer.from('06032b6570', 'hex');

const data = Buffer.from('the quick brown fox');
const pssOf = (hash: number, mgf: number, saltLength: number): MechanismParameter => ({
  kind: 'pss',
  hash,
  mgf,
  saltLength,
});

describe('RSA', async () => {
  const { agent, session, pair, sign, signInParts, verify, node: nodeOf } = await startSession();
  const { publicKey, privateKey } = await pair(
    CKM.RSA_PKCS_KEY_PAIR_GEN,
    [
      [CKA.MODULUS_BITS, 2048],
      [CKA.PUBLIC_EXPONENT, Buffer.of(1, 0, 1)],
    ],
    [],
  );
  const node = await nodeOf(publicKey);

  test('the public half shows modulus and exponent, the private half keeps the rest secret', async () => {
    const open = await agent.read(session, publicKey, CKA.MODULUS, CKA.PUBLIC_EXPONENT, CKA.MODULUS_BITS, CKA.LOCAL);
    const jwk: JsonWebKey = node.export({ format: 'jwk' });
    expect(open.rv).toBe(CKR.OK);
    expect(open.values).toEqual([Buffer.from(jwk.n ?? '', 'base64url'), Buffer.of(1, 0, 1), 2048, true]);
    const kept = await agent.read(session, privateKey, CKA.MODULUS, CKA.PRIVATE_EXPONENT, CKA.PRIME_1);
    expect(kept.rv).toBe(CKR.ATTRIBUTE_SENSITIVE);
    expect(kept.values).toEqual([open.values[0], null, null]);
    const custody = [CKA.SENSITIVE, CKA.EXTRACTABLE, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.PRIVATE];
    expect((await agent.read(session, privateKey, ...custody)).values).toEqual([true, false, true, true, true]);
  });
  test('an attribute of another class is none of a half', async () => {
    expect((await agent.read(session, publicKey, CKA.VALUE)).rv).toBe(CKR.ATTRIBUTE_TYPE_INVALID);
    expect((await agent.read(session, privateKey, CKA.VALUE)).rv).toBe(CKR.ATTRIBUTE_TYPE_INVALID);
  });
  test.each([
    ['SHA224_RSA_PKCS', CKM.SHA224_RSA_PKCS, 'sha224'],
    ['SHA256_RSA_PKCS', CKM.SHA256_RSA_PKCS, 'sha256'],
    ['SHA384_RSA_PKCS', CKM.SHA384_RSA_PKCS, 'sha384'],
    ['SHA512_RSA_PKCS', CKM.SHA512_RSA_PKCS, 'sha512'],
    ['SHA3_224_RSA_PKCS', CKM.SHA3_224_RSA_PKCS, 'sha3-224'],
    ['SHA3_256_RSA_PKCS', CKM.SHA3_256_RSA_PKCS, 'sha3-256'],
    ['SHA3_384_RSA_PKCS', CKM.SHA3_384_RSA_PKCS, 'sha3-384'],
    ['SHA3_512_RSA_PKCS', CKM.SHA3_512_RSA_PKCS, 'sha3-512'],
  ])('%s signs what others verify, whole and in parts alike', async (_name, type, hash) => {
    const signature = await sign(mech(type), privateKey, data);
    expect(nodeVerify(hash, data, node, signature)).toBe(true);
    expect(await signInParts(mech(type), privateKey, data)).toEqual(signature);
    expect(await verify(mech(type), publicKey, data, signature)).toBe('CKR_OK');
    signature[9] = (signature[9] ?? 0) ^ 1;
    expect(await verify(mech(type), publicKey, data, signature)).toBe('CKR_SIGNATURE_INVALID');
    expect(await verify(mech(type), publicKey, data, signature.subarray(1))).toBe('CKR_SIGNATURE_LEN_RANGE');
  });
  test('RSA_PKCS signs a DigestInfo as it is, and nothing that leaves no room for the padding', async () => {
    const signature = await sign(mech(CKM.RSA_PKCS), privateKey, Buffer.alloc(245, 7));
    expect(await verify(mech(CKM.RSA_PKCS), publicKey, Buffer.alloc(245, 7), signature)).toBe('CKR_OK');
    await agent.call('C_SignInit', { session, mechanism: mech(CKM.RSA_PKCS), key: privateKey });
    const tooLong = { session, data: Buffer.alloc(246), signature: room(256) };
    expect(await agent.rv('C_Sign', tooLong)).toBe('CKR_DATA_LEN_RANGE');
  });
  test('a mechanism that hashes nothing takes no parts', async () => {
    await agent.call('C_SignInit', { session, mechanism: mech(CKM.RSA_PKCS), key: privateKey });
    expect(await agent.rv('C_SignUpdate', { session, part: data })).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });
  test.each([
    ['sha256', CKM.SHA256_RSA_PKCS_PSS, CKM.SHA256, CKG.MGF1_SHA256],
    ['sha3-224', CKM.SHA3_224_RSA_PKCS_PSS, CKM.SHA3_224, CKG.MGF1_SHA3_224],
    ['sha3-256', CKM.SHA3_256_RSA_PKCS_PSS, CKM.SHA3_256, CKG.MGF1_SHA3_256],
    ['sha3-384', CKM.SHA3_384_RSA_PKCS_PSS, CKM.SHA3_384, CKG.MGF1_SHA3_384],
    ['sha3-512', CKM.SHA3_512_RSA_PKCS_PSS, CKM.SHA3_512, CKG.MGF1_SHA3_512],
  ] as const)('PSS with %s follows its parameters', async (digest, type, hash, mask) => {
    const mechanism = mech(type, pssOf(hash, mask, 20));
    const signature = await signInParts(mechanism, privateKey, data);
    const options = { key: node, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 20 };
    expect(nodeVerify(digest, data, options, signature)).toBe(true);
    expect(await verify(mechanism, publicKey, data, signature)).toBe('CKR_OK');
  });
  test.each<[string, number, MechanismParameter | null]>([
    ['without', CKM.SHA256_RSA_PKCS_PSS, null],
    ['with another digest', CKM.SHA256_RSA_PKCS_PSS, pssOf(CKM.SHA384, CKG.MGF1_SHA256, 32)],
    ['with an unknown mask', CKM.SHA256_RSA_PKCS_PSS, pssOf(CKM.SHA256, 99, 32)],
    ['with more salt than fits', CKM.SHA256_RSA_PKCS_PSS, pssOf(CKM.SHA256, CKG.MGF1_SHA256, 223)],
    ['with SHA-1', CKM.RSA_PKCS_PSS, pssOf(CKM.SHA_1, CKG.MGF1_SHA1, 20)],
  ])('PSS signs not %s', async (_name, type, parameter) => {
    const init = { session, mechanism: mech(type, parameter), key: privateKey };
    expect(await agent.rv('C_SignInit', init)).toBe('CKR_MECHANISM_PARAM_INVALID');
  });
  test('SHA-1 signatures are verified and not made', async () => {
    const init = { session, mechanism: mech(CKM.SHA1_RSA_PKCS), key: privateKey };
    expect(await agent.rv('C_SignInit', init)).toBe('CKR_MECHANISM_INVALID');
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const jwk = other.publicKey.export({ format: 'jwk' });
    const theirs = await agent.create(
      session,
      [CKA.CLASS, CKO.PUBLIC_KEY],
      [CKA.KEY_TYPE, CKK.RSA],
      [CKA.MODULUS, Buffer.from(jwk.n ?? '', 'base64url')],
      [CKA.PUBLIC_EXPONENT, Buffer.from(jwk.e ?? '', 'base64url')],
    );
    const signature = nodeSign('sha1', data, other.privateKey);
    expect(await verify(mech(CKM.SHA1_RSA_PKCS), theirs, data, signature)).toBe('CKR_OK');
  });
  test('OAEP decrypts what others encrypt, and does not reveal what is wrong', async () => {
    const oaep = oaepWith(Buffer.from('label'));
    const sealed = publicEncrypt(
      { key: node, oaepHash: 'sha256', oaepLabel: Buffer.from('label'), padding: constants.RSA_PKCS1_OAEP_PADDING },
      data,
    );
    const decrypt = async (encryptedData: Uint8Array, out = room(256)) => {
      await agent.call('C_DecryptInit', { session, mechanism: oaep, key: privateKey });
      return given(out, await agent.call('C_Decrypt', { session, encryptedData, data: out }));
    };
    expect(await decrypt(sealed)).toEqual(data);
    expect(await decrypt(sealed, room(data.length))).toEqual(data);
    await agent.call('C_DecryptInit', { session, mechanism: null, key: 0 });
    expect(await decrypt(sealed, room(data.length - 1))).toBe(data.length);
    await agent.call('C_DecryptInit', { session, mechanism: null, key: 0 });
    sealed[100] = (sealed[100] ?? 0) ^ 1;
    await expect(decrypt(sealed)).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
    await expect(decrypt(sealed.subarray(1))).rejects.toThrow('CKR_ENCRYPTED_DATA_LEN_RANGE');
  });
  test('each half does its part only', async () => {
    const init = (name: 'C_SignInit' | 'C_VerifyInit', key: number) =>
      agent.rv(name, { session, mechanism: mech(CKM.SHA256_RSA_PKCS), key });
    expect(await init('C_SignInit', publicKey)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    expect(await init('C_VerifyInit', privateKey)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    const ecdsa = { session, mechanism: mech(CKM.ECDSA), key: privateKey };
    expect(await agent.rv('C_SignInit', ecdsa)).toBe('CKR_KEY_TYPE_INCONSISTENT');
  });
});

describe('elliptic curves', () => {
  test.each([
    ['P-256', p256, CKM.ECDSA_SHA256, 'sha256', 64],
    ['P-384', p384, CKM.ECDSA_SHA384, 'sha384', 96],
    ['P-521', p521, CKM.ECDSA_SHA512, 'sha512', 132],
    ['P-256', p256, CKM.ECDSA_SHA3_224, 'sha3-224', 64],
    ['P-256', p256, CKM.ECDSA_SHA3_256, 'sha3-256', 64],
    ['P-384', p384, CKM.ECDSA_SHA3_384, 'sha3-384', 96],
    ['P-521', p521, CKM.ECDSA_SHA3_512, 'sha3-512', 132],
  ] as const)('%s signs what others verify', async (_name, parameters, type, hash, length) => {
    const { agent, session, pair, signInParts, verify, node: nodeOf } = await startSession();
    const { publicKey, privateKey } = await pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, parameters]], []);
    const node = await nodeOf(publicKey);
    const signature = await signInParts(mech(type), privateKey, data);
    expect(signature).toHaveLength(length);
    expect(nodeVerify(hash, data, { key: node, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    expect(await verify(mech(type), publicKey, data, signature)).toBe('CKR_OK');
    const { values } = await agent.read(session, publicKey, CKA.EC_POINT, CKA.EC_PARAMS);
    expect(values[1]).toEqual(parameters);
    const point = Buffer.from(values[0] as Uint8Array);
    expect(point.subarray(-length)).toEqual(node.export({ format: 'der', type: 'spki' }).subarray(-length));
    expect(point[0]).toBe(4);
  });
  test('Ed25519 signs what others verify', async () => {
    const { pair, sign, verify, node: nodeOf } = await startSession();
    const { publicKey, privateKey } = await pair(CKM.EC_EDWARDS_KEY_PAIR_GEN, [[CKA.EC_PARAMS, edwards]], []);
    const node = await nodeOf(publicKey);
    const signature = await sign(mech(CKM.EDDSA), privateKey, data);
    expect(nodeVerify(null, data, node, signature)).toBe(true);
    expect(await verify(mech(CKM.EDDSA), publicKey, data, signature)).toBe('CKR_OK');
  });
  test('EDDSA without parameters is pure Ed25519, and nothing else is offered', async () => {
    const { agent, session, pair } = await startSession();
    const { privateKey } = await pair(CKM.EC_EDWARDS_KEY_PAIR_GEN, [[CKA.EC_PARAMS, edwards]], []);
    const nothing = new Uint8Array(0);
    for (const parameter of [
      { kind: 'eddsa', prehash: false, context: nothing },
      { kind: 'eddsa', prehash: true, context: nothing },
      { kind: 'eddsa', prehash: false, context: Uint8Array.of(1) },
      { kind: 'bytes', bytes: new Uint8Array(24) },
    ] as const) {
      const mechanism = mech(CKM.EDDSA, parameter);
      expect(await agent.rv('C_SignInit', { session, mechanism, key: privateKey })).toBe('CKR_MECHANISM_PARAM_INVALID');
    }
  });
  test('other curves are refused', async () => {
    const { pair } = await startSession();
    const secp192r1 = Buffer.from('06082a8648ce3d030101', 'hex');
    await expect(pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, secp192r1]], [])).rejects.toThrow(
      'CKR_CURVE_NOT_SUPPORTED',
    );
    await expect(pair(CKM.EC_KEY_PAIR_GEN, [], [])).rejects.toThrow('CKR_TEMPLATE_INCOMPLETE');
  });
});

describe('imported keys', () => {
  const numbers: readonly [number, keyof JsonWebKey][] = [
    [CKA.MODULUS, 'n'],
    [CKA.PUBLIC_EXPONENT, 'e'],
    [CKA.PRIVATE_EXPONENT, 'd'],
    [CKA.PRIME_1, 'p'],
    [CKA.PRIME_2, 'q'],
    [CKA.EXPONENT_1, 'dp'],
    [CKA.EXPONENT_2, 'dq'],
    [CKA.COEFFICIENT, 'qi'],
  ];
  const node = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = node.privateKey.export({ format: 'jwk' });
  const rows: Row[] = [
    [CKA.CLASS, CKO.PRIVATE_KEY],
    [CKA.KEY_TYPE, CKK.RSA],
    ...numbers.map(([type, name]): Row => [type, Buffer.from(String(jwk[name]), 'base64url')]),
  ];
  const create = (agent: InProcessAgent, session: number, ...more: Row[]) => agent.create(session, ...rows, ...more);

  test('an RSA private key signs, and was neither always sensitive nor never extractable', async () => {
    const { agent, session, sign } = await startSession();
    const key = await create(agent, session);
    const signature = await sign(mech(CKM.SHA256_RSA_PKCS), key, data);
    expect(nodeVerify('sha256', data, node.publicKey, signature)).toBe(true);
    const { values } = await agent.read(session, key, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL);
    expect(values).toEqual([false, false, false]);
  });
  test('that may be read gives its numbers back', async () => {
    const { agent, session } = await startSession();
    const key = await create(agent, session, [CKA.SENSITIVE, false], [CKA.EXTRACTABLE, true]);
    // Compared in the same turn as the answer, because its secrets are wiped afterwards.
    const { values } = await agent.read(session, key, ...numbers.map(([type]) => type));
    expect(values).toEqual(numbers.map(([, name]) => Buffer.from(String(jwk[name]), 'base64url')));
  });
  test('whose numbers do not fit together is refused', async () => {
    const { agent, session } = await startSession();
    const bad = rows.map(
      ([type, value]): Row => (type === CKA.PRIME_1 ? [type, Buffer.alloc(128, 0xc5)] : [type, value]),
    );
    const asked = { session, template: template(...bad) };
    expect(await agent.rv('C_CreateObject', asked)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    for (const needed of [CKA.MODULUS, CKA.PRIVATE_EXPONENT]) {
      const short = { session, template: template(...rows.filter(([type]) => type !== needed)) };
      expect(await agent.rv('C_CreateObject', short)).toBe('CKR_TEMPLATE_INCOMPLETE');
    }
  });
  const few = [CKA.CLASS, CKA.KEY_TYPE, CKA.MODULUS, CKA.PRIVATE_EXPONENT] as number[];
  const withExponent = [...few, CKA.PUBLIC_EXPONENT];
  describe.each(places)('with fewer numbers, for the %s', (_where, token) => {
    test.each([
      ['the modulus and the private exponent', few],
      ['the public exponent as well', withExponent],
      ['its primes as well', [...withExponent, CKA.PRIME_1, CKA.PRIME_2]],
      ['one prime', [...few, CKA.PRIME_2]],
    ])('an RSA private key needs %s', async (_what, types) => {
      const { agent, session, sign } = await startSession();
      const object = await agent.create(
        session,
        ...rows.filter(([type]) => types.includes(type)),
        [CKA.TOKEN, token],
        [CKA.SENSITIVE, false],
        [CKA.EXTRACTABLE, true],
      );
      const signature = await sign(mech(CKM.SHA256_RSA_PKCS), object, data);
      expect(nodeVerify('sha256', data, node.publicKey, signature)).toBe(true);
      const { values } = await agent.read(session, object, ...numbers.map(([type]) => type));
      const [n, e, d, p, q] = values.map((value) => BigInt(`0x${Buffer.from(value as Uint8Array).toString('hex')}`));
      const own = (name: keyof JsonWebKey) =>
        BigInt(`0x${Buffer.from(String(jwk[name]), 'base64url').toString('hex')}`);
      expect([n, e, d]).toEqual([own('n'), own('e'), own('d')]);
      expect(new Set([p, q])).toEqual(new Set([own('p'), own('q')]));
    });
    test.each([
      ['a private exponent of another key', (): Row => [CKA.PRIVATE_EXPONENT, Buffer.alloc(256, 0x5b)]],
      ['a private exponent of nothing', (): Row => [CKA.PRIVATE_EXPONENT, Buffer.alloc(0)]],
      ['a private exponent of 1', (): Row => [CKA.PRIVATE_EXPONENT, Buffer.of(1)]],
      ['an even modulus', (): Row => [CKA.MODULUS, Buffer.alloc(256, 0xc4)]],
      ['a modulus of 1024 bits', (): Row => [CKA.MODULUS, Buffer.alloc(128, 0xc5)]],
      ['a modulus of 64 KiB', (): Row => [CKA.MODULUS, Buffer.alloc(65_536, 0xc5)]],
      ['another public exponent', (): Row => [CKA.PUBLIC_EXPONENT, Buffer.of(3)]],
      ['an even public exponent', (): Row => [CKA.PUBLIC_EXPONENT, Buffer.of(4)]],
      ['a prime that does not divide', (): Row => [CKA.PRIME_1, Buffer.alloc(128, 0xc5)]],
    ])('%s is refused', async (_what, wrong) => {
      const { agent, session } = await startSession();
      const [type, value] = wrong();
      const given = rows.filter(([each]) => few.includes(each) && each !== type);
      const asked = { session, template: template(...given, [type, value], [CKA.TOKEN, token]) };
      expect(await agent.rv('C_CreateObject', asked)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    });
  });
  test('an EC private key needs its curve and its value alone', async () => {
    const { agent, session, sign } = await startSession();
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { d } = ec.privateKey.export({ format: 'jwk' });
    const key = await agent.create(
      session,
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC],
      [CKA.EC_PARAMS, p256],
      [CKA.VALUE, Buffer.from(d ?? '', 'base64url')],
    );
    const signature = await sign(mech(CKM.ECDSA_SHA256), key, data);
    expect(nodeVerify('sha256', data, { key: ec.publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
  });
  test('a certificate is kept and read, in the session and on the token', async () => {
    const { agent, session } = await startSession();
    for (const token of [false, true]) {
      const object = await agent.create(
        session,
        [CKA.CLASS, CKO.CERTIFICATE],
        [CKA.TOKEN, token],
        [CKA.CERTIFICATE_TYPE, 0],
        [CKA.SUBJECT, Buffer.from('subject')],
        [CKA.ID, Buffer.of(7)],
        [CKA.VALUE, Buffer.from('DER')],
      );
      const { rv, values } = await agent.read(session, object, CKA.VALUE, CKA.ID, CKA.SUBJECT, CKA.PRIVATE);
      expect(rv).toBe(CKR.OK);
      expect(
        values.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString() : String(value))),
      ).toEqual(['DER', '\u0007', 'subject', 'false']);
      expect((await agent.read(session, object, CKA.SENSITIVE)).rv).toBe(CKR.ATTRIBUTE_TYPE_INVALID);
    }
  });
  test('a public key of the token verifies without asking the service to', async () => {
    const { agent, session, verify } = await startSession();
    const theirs = await agent.create(
      session,
      [CKA.CLASS, CKO.PUBLIC_KEY],
      [CKA.KEY_TYPE, CKK.RSA],
      [CKA.TOKEN, true],
      ...rows.slice(2, 4),
    );
    const signature = nodeSign('sha256', data, node.privateKey);
    expect(await verify(mech(CKM.SHA256_RSA_PKCS), theirs, data, signature)).toBe('CKR_OK');
    expect(agent.service.asked.get('verify')).toBeUndefined();
  });
});

test('keys of a pair go with their objects', async () => {
  const { agent, session, pair, sign } = await startSession();
  const before = core.memoryStatus().keys;
  const { publicKey, privateKey } = await pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], []);
  await sign(mech(CKM.ECDSA), privateKey, data);
  expect(core.memoryStatus().keys).toBe(before + 2);
  await agent.call('C_DestroyObject', { session, object: publicKey });
  await agent.call('C_DestroyObject', { session, object: privateKey });
  expect(core.memoryStatus().keys).toBe(before);
});

test('a session that is closed while its pair is looked for gets none, and none is left', async () => {
  const { agent, session, pair } = await startSession();
  const before = core.memoryStatus().keys;
  const looking = pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [[CKA.MODULUS_BITS, 2048]], []);
  const refused = expect(looking).rejects.toThrow('CKR_SESSION_CLOSED');
  await agent.call('C_CloseSession', { session });
  await refused;
  expect(core.memoryStatus().keys).toBe(before);
});
test.each<[string, Row[], Row[], string]>([
  ['whose public half says another modulus', [[CKA.MODULUS, Buffer.alloc(256, 7)]], [], 'CKR_TEMPLATE_INCONSISTENT'],
  ['with another exponent', [[CKA.PUBLIC_EXPONENT, Buffer.of(3)]], [], 'CKR_ATTRIBUTE_VALUE_INVALID'],
  ['of 1024 bits', [[CKA.MODULUS_BITS, 1024]], [], 'CKR_ATTRIBUTE_VALUE_INVALID'],
  ['whose private half asks for a PIN', [], [[CKA.ALWAYS_AUTHENTICATE, true]], 'CKR_ATTRIBUTE_VALUE_INVALID'],
  ['whose private half names another type', [], [[CKA.KEY_TYPE, CKK.EC]], 'CKR_TEMPLATE_INCONSISTENT'],
])('no pair is made %s', async (_what, publicRows, privateRows, rv) => {
  const { pair } = await startSession();
  const before = core.memoryStatus().keys;
  const bits: Row[] = publicRows.some(([type]) => type === CKA.MODULUS_BITS) ? [] : [[CKA.MODULUS_BITS, 2048]];
  const asked = pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [...bits, ...publicRows], privateRows);
  await expect(asked).rejects.toThrow(rv);
  expect(core.memoryStatus().keys).toBe(before);
});
