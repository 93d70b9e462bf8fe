// Keys of the token that are more than a cipher: pairs, and keys that wrap, unwrap and derive
// (PKCS#11 2.40, section 5.14). The work of a private or secret one is the service's; Node's own
// cryptography is the other side.
import {
  constants,
  generateKeyPairSync,
  hkdfSync,
  sign as nodeSign,
  verify as nodeVerify,
  publicEncrypt,
} from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD, CKG, CKK, CKO, HKDF_SALT } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { given, room } from '../../support/in-process-agent.ts';
import {
  aesRows,
  cbcPad,
  clear,
  extractable,
  hkdfWith,
  keyWrap,
  mech,
  noDecrypt,
  oaepWith,
  onToken,
  p256,
  type Row,
  salted,
  secret,
  startSession,
} from '../../support/session-calls.ts';

const label = (text: string): Row => [CKA.LABEL, Buffer.from(text)];
const edwards = Buffer.from('06032b6570', 'hex');
const data = Buffer.from('the quick brown fox');
const padded = mech(CKM.AES_KEY_WRAP_KWP);
const oaep = oaepWith(Buffer.from('label'));
const pss = (type: number, hash: number, mgf: number, saltLength: number) =>
  mech(type, { kind: 'pss', hash, mgf, saltLength });

type Calls = Awaited<ReturnType<typeof startSession>>;

const rsaPublic: Row[] = [onToken, [CKA.MODULUS_BITS, 2048], label('rsa'), [CKA.ID, Buffer.of(1)]];
const rsaPrivate: Row[] = [onToken, label('rsa'), [CKA.ID, Buffer.of(1)]];

describe('an RSA pair of the token', async () => {
  const call = await startSession();
  const { publicKey, privateKey } = await call.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, rsaPublic, rsaPrivate);
  const node = await call.node(publicKey);

  test('is made by the service: both halves say so, and tell the same public numbers', async () => {
    expect(publicKey).toBeLessThan(2 ** 31);
    expect(privateKey).toBeLessThan(2 ** 31);
    const jwk = node.export({ format: 'jwk' });
    const modulus = Buffer.from(jwk.n ?? '', 'base64url');
    const exponent = Buffer.of(1, 0, 1);
    expect(await call.read(publicKey, CKA.MODULUS, CKA.PUBLIC_EXPONENT, CKA.MODULUS_BITS, CKA.LOCAL)).toEqual([
      modulus,
      exponent,
      2048,
      true,
    ]);
    expect(await call.read(privateKey, CKA.MODULUS, CKA.PUBLIC_EXPONENT, CKA.LOCAL, CKA.KEY_GEN_MECHANISM)).toEqual([
      modulus,
      exponent,
      true,
      CKM.RSA_PKCS_KEY_PAIR_GEN,
    ]);
    const custody = [CKA.SENSITIVE, CKA.EXTRACTABLE, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.PRIVATE];
    expect(await call.read(privateKey, ...custody)).toEqual([true, false, true, true, true]);
    expect(await call.read(privateKey, CKA.PRIVATE_EXPONENT, CKA.PRIME_1)).toEqual([null, null]);
  });
  test.each([
    ['SHA224_RSA_PKCS', CKM.SHA224_RSA_PKCS, 'sha224'],
    ['SHA256_RSA_PKCS', CKM.SHA256_RSA_PKCS, 'sha256'],
    ['SHA384_RSA_PKCS', CKM.SHA384_RSA_PKCS, 'sha384'],
    ['SHA512_RSA_PKCS', CKM.SHA512_RSA_PKCS, 'sha512'],
  ])('%s signs what others verify, whole and in parts alike', async (_name, type, hash) => {
    const signature = await call.sign(mech(type), privateKey, data);
    expect(nodeVerify(hash, data, node, signature)).toBe(true);
    expect(await call.signInParts(mech(type), privateKey, data)).toEqual(signature);
    expect(await call.verify(mech(type), publicKey, data, signature)).toBe('CKR_OK');
  });
  test('PSS signs with the parameters that were asked for', async () => {
    const mechanism = pss(CKM.SHA384_RSA_PKCS_PSS, CKM.SHA384, CKG.MGF1_SHA384, 20);
    const signature = await call.signInParts(mechanism, privateKey, data);
    const key = { key: node, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 20 };
    expect(nodeVerify('sha384', data, key, signature)).toBe(true);
  });
  test('no signature over SHA-1 is made', async () => {
    const { agent, session } = call;
    const weak = pss(CKM.RSA_PKCS_PSS, CKM.SHA_1, CKG.MGF1_SHA1, 20);
    expect(await agent.rv('C_SignInit', { session, mechanism: weak, key: privateKey })).toBe(
      'CKR_MECHANISM_PARAM_INVALID',
    );
    const old = mech(CKM.SHA1_RSA_PKCS);
    expect(await agent.rv('C_SignInit', { session, mechanism: old, key: privateKey })).toBe('CKR_MECHANISM_INVALID');
  });
  test('OAEP decrypts what others encrypted, with the label; one answer for whatever is wrong', async () => {
    const parts = { key: node, oaepHash: 'sha256', oaepLabel: Buffer.from('label') };
    const encrypted = publicEncrypt(parts, data);
    expect(await call.decrypt(oaep, privateKey, encrypted)).toEqual(data);
    for (const bad of [publicEncrypt({ ...parts, oaepLabel: Buffer.from('lable') }, data), Buffer.alloc(256, 1)]) {
      await expect(call.decrypt(oaep, privateKey, bad)).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
    }
    await expect(call.decrypt(oaep, privateKey, encrypted.subarray(1))).rejects.toThrow('CKR_ENCRYPTED_DATA_LEN_RANGE');
  });
  test('the length of a signature and of a ciphertext is known without a request to the service', async () => {
    const { agent, session } = call;
    await agent.call('C_SignInit', { session, mechanism: mech(CKM.SHA256_RSA_PKCS), key: privateKey });
    await agent.call('C_DecryptInit', { session, mechanism: oaep, key: privateKey });
    const before = Object.fromEntries(agent.service.asked);
    const [signature, plain] = [room(null), room(null)];
    expect(given(signature, await agent.call('C_Sign', { session, data, signature }))).toBe(256);
    const encryptedData = Buffer.alloc(256);
    expect(given(plain, await agent.call('C_Decrypt', { session, encryptedData, data: plain }))).toBe(256 - 2 * 32 - 2);
    expect(Object.fromEntries(agent.service.asked)).toEqual(before);
    for (const flags of [1 << 9, 1 << 11]) await agent.call('C_SessionCancel', { session, flags });
  });
  test('a half is only for what it is for', async () => {
    const { agent, session } = call;
    const mechanism = mech(CKM.SHA256_RSA_PKCS);
    expect(await agent.rv('C_SignInit', { session, mechanism, key: publicKey })).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    expect(await agent.rv('C_VerifyInit', { session, mechanism, key: privateKey })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
  });
  test('a private half that is disabled, or destroyed, no longer signs', async () => {
    const other = await call.pair(CKM.EC_KEY_PAIR_GEN, [onToken, [CKA.EC_PARAMS, p256]], [onToken, label('ec')]);
    const { agent, session } = call;
    const init = { session, mechanism: mech(CKM.ECDSA_SHA256), key: other.privateKey };
    await agent.service.setState('ec', 'disabled');
    expect(await agent.rv('C_SignInit', init)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    await agent.service.setState('ec', 'destroyed');
    expect(await agent.rv('C_SignInit', init)).toBe('CKR_KEY_HANDLE_INVALID');
    // The public half is another object.
    expect(await call.read(other.publicKey, CKA.CLASS)).toEqual([CKO.PUBLIC_KEY]);
  });
});

test.each<[string, Row[], Row[]]>([
  ['both on the token', [onToken], [onToken]],
  ['the public half in the session', [], [onToken]],
  ['the private half in the session', [onToken], []],
])('a pair works wherever its halves are: %s', async (_where, publicRows, privateRows) => {
  const call = await startSession();
  for (const [type, curve, mechanism] of [
    [CKM.EC_KEY_PAIR_GEN, p256, mech(CKM.ECDSA_SHA384)],
    [CKM.EC_EDWARDS_KEY_PAIR_GEN, edwards, mech(CKM.EDDSA)],
  ] as const) {
    const pair = await call.pair(type, [[CKA.EC_PARAMS, curve], ...publicRows], privateRows);
    const signature = await call.sign(mechanism, pair.privateKey, data);
    expect(await call.verify(mechanism, pair.publicKey, data, signature)).toBe('CKR_OK');
    const node = await call.node(pair.publicKey);
    const ieee = { key: node, dsaEncoding: 'ieee-p1363' } as const;
    expect(nodeVerify(type === CKM.EC_KEY_PAIR_GEN ? 'sha384' : null, data, ieee, signature)).toBe(true);
    expect(await call.read(pair.publicKey, CKA.TOKEN, CKA.LOCAL)).toEqual([publicRows.length > 0, expect.any(Boolean)]);
    expect(await call.read(pair.privateKey, CKA.TOKEN)).toEqual([privateRows.length > 0]);
    expect(await call.bytes(pair.publicKey, CKA.EC_PARAMS)).toEqual(curve);
    expect(await call.bytes(pair.privateKey, CKA.EC_PARAMS)).toEqual(curve);
  }
});

describe('a private key that was made elsewhere', () => {
  const { privateKey: theirs } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = theirs.export({ format: 'jwk' });
  const number = (name: 'n' | 'e' | 'd' | 'p' | 'q' | 'dp' | 'dq' | 'qi'): Buffer =>
    Buffer.from(jwk[name] ?? '', 'base64url');
  const rows: Row[] = [
    [CKA.CLASS, CKO.PRIVATE_KEY],
    [CKA.KEY_TYPE, CKK.RSA],
    onToken,
    [CKA.MODULUS, number('n')],
    [CKA.PUBLIC_EXPONENT, number('e')],
    [CKA.PRIVATE_EXPONENT, number('d')],
    [CKA.PRIME_1, number('p')],
    [CKA.PRIME_2, number('q')],
    [CKA.EXPONENT_1, number('dp')],
    [CKA.EXPONENT_2, number('dq')],
    [CKA.COEFFICIENT, number('qi')],
  ];
  test('comes into custody and signs there', async () => {
    const call = await startSession();
    const key = await call.create(...rows);
    const signature = await call.sign(mech(CKM.SHA256_RSA_PKCS), key, data);
    expect(signature).toEqual(nodeSign('sha256', data, theirs));
    expect(await call.read(key, CKA.PRIME_1, CKA.LOCAL, CKA.NEVER_EXTRACTABLE, CKA.ALWAYS_SENSITIVE)).toEqual([
      null,
      false,
      false,
      false,
    ]);
  });
  test('shows its numbers only if it was meant to', async () => {
    const call = await startSession();
    const key = await call.create(...rows, ...clear);
    expect(await call.bytes(key, CKA.PRIME_1)).toEqual(number('p'));
    expect(await call.bytes(key, CKA.PRIVATE_EXPONENT)).toEqual(number('d'));
  });
  test('whose numbers do not belong together is refused, and nothing is kept', async () => {
    const call = await startSession();
    const bad = rows.map((row): Row => (row[0] === CKA.PRIME_1 ? [CKA.PRIME_1, number('q')] : row));
    await expect(call.create(...bad)).rejects.toThrow('CKR_ATTRIBUTE_VALUE_INVALID');
    expect(call.agent.service.asked.get('createObject')).toBeUndefined();
  });
});

describe('from the session to the token', () => {
  test('a sensitive key is copied into custody, and works there as before', async () => {
    const call = await startSession();
    const key = await call.generate();
    const copy = await call.copy(key, onToken, label('kept'));
    const encrypted = await call.encrypt(cbcPad, key, data);
    await call.agent.call('C_DestroyObject', { session: call.session, object: key });
    expect(await call.decrypt(cbcPad, copy, encrypted)).toEqual(data);
    expect(await call.read(copy, CKA.VALUE, CKA.SENSITIVE, CKA.TOKEN)).toEqual([null, true, true]);
  });
  test('a private key too', async () => {
    const call = await startSession();
    const { publicKey, privateKey } = await call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], []);
    const copy = await call.copy(privateKey, onToken);
    const signature = await call.sign(mech(CKM.ECDSA_SHA256), copy, data);
    expect(await call.verify(mech(CKM.ECDSA_SHA256), publicKey, data, signature)).toBe('CKR_OK');
  });
  test('never back, unless it may be read', async () => {
    const call = await startSession();
    const [hidden, open] = [await call.generate(onToken), await call.generate(onToken, ...clear)];
    await expect(call.copy(hidden, [CKA.TOKEN, false])).rejects.toThrow('CKR_ACTION_PROHIBITED');
    const copy = await call.copy(open, [CKA.TOKEN, false]);
    expect(await call.bytes(copy, CKA.VALUE)).toEqual(await call.bytes(open, CKA.VALUE));
  });
});

describe('a wrapping key of the token', () => {
  const wrapper = (call: Calls): Promise<number> => call.generate(onToken, noDecrypt);

  test.each<[string, Row[], Row[]]>([
    ['a key of the token, back onto it', [onToken], [onToken]],
    ['a key of the token, into the session', [onToken], []],
    ['a key of the session, onto the token', [], [onToken]],
    ['a key of the session, back into it', [], []],
  ])('wraps %s', async (_what, from, to) => {
    const call = await startSession();
    const [wrapping, key] = [await wrapper(call), await call.generate(extractable, ...from)];
    const encrypted = await call.encrypt(cbcPad, key, data);
    const wrapped = await call.wrap(keyWrap, wrapping, key);
    expect(wrapped).toHaveLength(40);
    const back = await call.unwrap(keyWrap, wrapping, wrapped, ...aesRows, ...to);
    expect(await call.decrypt(cbcPad, back, encrypted)).toEqual(data);
    const facts = [CKA.SENSITIVE, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL, CKA.VALUE_LEN, CKA.TOKEN];
    expect(await call.read(back, ...facts)).toEqual([true, false, false, false, 32, to.length > 0]);
    expect(await call.read(back, CKA.CHECK_VALUE)).toEqual(await call.read(key, CKA.CHECK_VALUE));
  });
  test('wraps a private key as its PKCS#8', async () => {
    const call = await startSession();
    const wrapping = await wrapper(call);
    const [publicRows, rows]: [Row[], Row[]] = [
      [[CKA.EC_PARAMS, p256]],
      [
        [CKA.CLASS, CKO.PRIVATE_KEY],
        [CKA.KEY_TYPE, CKK.EC],
      ],
    ];
    const pair = await call.pair(CKM.EC_KEY_PAIR_GEN, publicRows, [onToken, extractable]);
    const wrapped = await call.wrap(padded, wrapping, pair.privateKey);
    for (const where of [[], [onToken]]) {
      const back = await call.unwrap(padded, wrapping, wrapped, ...rows, ...where);
      const signature = await call.sign(mech(CKM.ECDSA_SHA256), back, data);
      expect(await call.verify(mech(CKM.ECDSA_SHA256), pair.publicKey, data, signature)).toBe('CKR_OK');
    }
    const wrong: Row[] = [
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.RSA],
    ];
    await expect(call.unwrap(padded, wrapping, wrapped, ...wrong)).rejects.toThrow('CKR_WRAPPED_KEY_INVALID');
  });
  test('an RSA pair wraps with its public half and unwraps with its private one', async () => {
    const call = await startSession();
    const pair = await call.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, rsaPublic, [onToken, noDecrypt]);
    for (const rows of [[extractable, onToken], [extractable], clear]) {
      const key = await call.generate(...rows);
      const encrypted = await call.encrypt(cbcPad, key, data);
      const wrapped = await call.wrap(oaep, pair.publicKey, key);
      const back = await call.unwrap(oaep, pair.privateKey, wrapped, ...aesRows);
      expect(await call.decrypt(cbcPad, back, encrypted)).toEqual(data);
    }
  });
  test('one answer for whatever is wrong with a wrapped key', async () => {
    const call = await startSession();
    const wrapping = await wrapper(call);
    const wrapped = await call.wrap(keyWrap, wrapping, await call.generate(extractable));
    for (let at = 0; at < wrapped.length; at += 13) {
      const bad = Buffer.from(wrapped);
      bad[at] = (bad[at] ?? 0) ^ 1;
      for (const where of [[], [onToken]])
        await expect(call.unwrap(keyWrap, wrapping, bad, ...aesRows, ...where)).rejects.toThrow(
          'CKR_WRAPPED_KEY_INVALID',
        );
    }
  });
  test('a template that says another length makes no key', async () => {
    const call = await startSession();
    const wrapping = await wrapper(call);
    const wrapped = await call.wrap(keyWrap, wrapping, await call.generate(extractable));
    // The service has opened the wrapping key by now, and the agent has generated the pair for
    // sealed keys.
    await call.unwrap(keyWrap, wrapping, wrapped, ...aesRows);
    const before = core.memoryStatus().keys;
    await expect(call.unwrap(keyWrap, wrapping, wrapped, ...aesRows, [CKA.VALUE_LEN, 16])).rejects.toThrow(
      'CKR_TEMPLATE_INCONSISTENT',
    );
    expect(core.memoryStatus().keys).toBe(before);
  });
  test('what is not extractable is not wrapped, and a key that decrypts wraps nothing sensitive', async () => {
    const call = await startSession();
    const wrapping = await wrapper(call);
    await expect(call.wrap(keyWrap, wrapping, await call.generate(onToken))).rejects.toThrow('CKR_KEY_UNEXTRACTABLE');
    const both = await call.generate(onToken);
    for (const rows of [[extractable, onToken], [extractable]])
      await expect(call.wrap(keyWrap, both, await call.generate(...rows))).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
    expect(await call.wrap(keyWrap, both, await call.generate(...clear))).toHaveLength(40);
  });
  test('a key that has wrapped what is sensitive never decrypts again, and unwraps nothing readable', async () => {
    const call = await startSession();
    const { agent, session } = call;
    const wrapping = await wrapper(call);
    const wrapped = await call.wrap(keyWrap, wrapping, await call.generate(extractable, onToken));
    await expect(call.set(wrapping, [CKA.DECRYPT, true])).rejects.toThrow(/CKR_(ACTION_PROHIBITED|KEY_FUNCTION)/);
    expect(await agent.rv('C_DecryptInit', { session, mechanism: cbcPad, key: wrapping })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
    for (const where of [[], [onToken]])
      await expect(call.unwrap(keyWrap, wrapping, wrapped, ...aesRows, ...clear, ...where)).rejects.toThrow(/^CKR_/);
  });
  test('only a key that the service made, and that was never extractable, wraps what is sensitive', async () => {
    const call = await startSession();
    const imported = await call.create(...aesRows, [CKA.VALUE, secret], onToken, noDecrypt);
    const loose = await call.generate(onToken, noDecrypt, extractable);
    const key = await call.generate(extractable, onToken);
    for (const wrapping of [imported, loose])
      await expect(call.wrap(keyWrap, wrapping, key)).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
  });
  test('a key that came from the service wraps nothing sensitive in the session', async () => {
    const call = await startSession();
    const wrapping = await wrapper(call);
    const wrapped = await call.wrap(keyWrap, wrapping, await call.generate(extractable));
    const back = await call.unwrap(keyWrap, wrapping, wrapped, ...aesRows, noDecrypt);
    await expect(call.wrap(keyWrap, back, await call.generate(extractable))).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
  });
  test('a key that has wrapped in the session does not go to the service', async () => {
    const call = await startSession();
    const local = await call.generate(noDecrypt, extractable);
    await call.wrap(keyWrap, local, await call.generate(extractable));
    await expect(call.copy(local, onToken)).rejects.toThrow('CKR_ACTION_PROHIBITED');
    await expect(call.wrap(keyWrap, await wrapper(call), local)).rejects.toThrow('CKR_ACTION_PROHIBITED');
  });
});

describe('a base key of the token', () => {
  const hkdf = hkdfWith(salted);
  const derived = Buffer.from(hkdfSync('sha256', secret, 'salt', 'info', 32));

  test.each<[string, Row[]]>([
    ['into the session', []],
    ['onto the token', [onToken]],
  ])('HKDF gives what others compute, %s', async (_where, where) => {
    const call = await startSession();
    const base = await call.create(
      [CKA.CLASS, CKO.SECRET_KEY],
      [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
      [CKA.VALUE, secret],
      [CKA.DERIVE, true],
      onToken,
    );
    const key = await call.derive(hkdf, base, ...aesRows, [CKA.VALUE_LEN, 32], ...clear, ...where);
    expect(await call.bytes(key, CKA.VALUE)).toEqual(derived);
    expect(await call.read(key, CKA.TOKEN, CKA.LOCAL)).toEqual([where.length > 0, false]);
  });
  test('HKDF takes a salt that is a key of the token too, and no key of the session', async () => {
    const call = await startSession();
    const generic: Row[] = [
      [CKA.CLASS, CKO.SECRET_KEY],
      [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
    ];
    const derives: Row = [CKA.DERIVE, true];
    const base = await call.create(...generic, [CKA.VALUE, secret], onToken, derives);
    const saltedBy = (saltKey: number) => hkdfWith({ ...salted, saltType: HKDF_SALT.KEY, saltKey });
    const wanted: Row[] = [...aesRows, [CKA.VALUE_LEN, 32], ...clear];
    const salt = await call.create(...generic, [CKA.VALUE, Buffer.from('salt')], onToken, derives);
    const before = core.memoryStatus().keys;
    const key = await call.derive(saltedBy(salt), base, ...wanted);
    expect(await call.bytes(key, CKA.VALUE)).toEqual(derived);
    // What came of it, the key pair that it was sealed to, and base and salt, which the service
    // keeps open.
    expect(core.memoryStatus().keys).toBeLessThanOrEqual(before + 4);
    const here = await call.create(...generic, [CKA.VALUE, Buffer.from('salt')], derives);
    await expect(call.derive(saltedBy(here), base, ...wanted)).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    const idle = await call.create(...generic, [CKA.VALUE, secret], onToken);
    await expect(call.derive(saltedBy(idle), base, ...wanted)).rejects.toThrow('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });
  test('CKM_HKDF_DATA brings data out of a key of the token', async () => {
    const call = await startSession();
    const base = await call.create(
      [CKA.CLASS, CKO.SECRET_KEY],
      [CKA.KEY_TYPE, CKK.HKDF],
      [CKA.VALUE, secret],
      [CKA.DERIVE, true],
      onToken,
    );
    const keys = core.memoryStatus().keys;
    const made = await call.derive(mech(CKM.HKDF_DATA, hkdf.parameter), base, [CKA.VALUE_LEN, 32]);
    expect(await call.bytes(made, CKA.VALUE)).toEqual(derived);
    expect(await call.read(made, CKA.CLASS)).toEqual([CKO.DATA]);
    expect(core.memoryStatus().keys).toBeLessThanOrEqual(keys + 2);
  });
  test.each<[string, Row[]]>([
    ['into the session', []],
    ['onto the token', [onToken]],
  ])('ECDH meets the other side, %s', async (_where, where) => {
    const call = await startSession();
    const [ours, theirs] = [
      await call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], [onToken, [CKA.DERIVE, true]]),
      await call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], [[CKA.DERIVE, true]]),
    ];
    const ecdh = async (peer: number): Promise<Mechanism> =>
      mech(CKM.ECDH1_DERIVE, {
        kind: 'ecdh1',
        kdf: CKD.SHA256_KDF,
        shared: Buffer.from('shared'),
        publicData: await call.bytes(peer, CKA.EC_POINT),
      });
    const rows: Row[] = [...aesRows, [CKA.VALUE_LEN, 32], ...clear];
    const a = await call.derive(await ecdh(theirs.publicKey), ours.privateKey, ...rows, ...where);
    const b = await call.derive(await ecdh(ours.publicKey), theirs.privateKey, ...rows);
    expect(await call.bytes(a, CKA.VALUE)).toEqual(await call.bytes(b, CKA.VALUE));
  });
  test('a point that is not on the curve is refused', async () => {
    const call = await startSession();
    const { privateKey } = await call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], [onToken, [CKA.DERIVE, true]]);
    const publicData = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]);
    const mechanism = mech(CKM.ECDH1_DERIVE, { kind: 'ecdh1', kdf: CKD.NULL, shared: Buffer.alloc(0), publicData });
    await expect(call.derive(mechanism, privateKey, ...aesRows, [CKA.VALUE_LEN, 32])).rejects.toThrow(
      'CKR_MECHANISM_PARAM_INVALID',
    );
  });
  test('a key that may not derive does not', async () => {
    const call = await startSession();
    const base = await call.generate(onToken);
    await expect(call.derive(hkdf, base, ...aesRows, [CKA.VALUE_LEN, 32])).rejects.toThrow(/^CKR_KEY_/);
  });
});

test('what the agent caches for keys of the service is released with the application', async () => {
  const call = await startSession();
  const wrapping = await call.generate(onToken, noDecrypt);
  const wrapped = await call.wrap(keyWrap, wrapping, await call.generate(extractable));
  await call.unwrap(keyWrap, wrapping, wrapped, ...aesRows);
  const before = core.memoryStatus().keys;
  await call.agent.call('C_Finalize', {});
  // The session's two keys, and the pair that the second one was sealed to.
  expect(core.memoryStatus().keys).toBe(before - 3);
});
