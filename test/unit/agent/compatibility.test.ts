// The compatibility switches of an application: weaker cryptography that is refused until it is
// permitted. Node's own cryptography is the other side. Keys of the session are the agent's affair,
// keys of the token the service's as well.
import {
  constants,
  createDecipheriv,
  generateKeyPairSync,
  type KeyObject,
  sign as nodeSign,
  verify as nodeVerify,
  privateDecrypt,
  publicEncrypt,
} from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKF, CKG, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { given, room, rvOf } from '../../support/in-process-agent.ts';
import {
  aesRows,
  keyWrap,
  mech,
  noDecrypt,
  oaepWith,
  p256,
  type Row,
  secret,
  startSession,
} from '../../support/session-calls.ts';

type Host = Awaited<ReturnType<typeof startSession>>;

const data = Buffer.from('the quick brown fox');
const pkcs1 = mech(CKM.RSA_PKCS);
const oaep = oaepWith(Buffer.alloc(0));
const places = [
  ['of the session', []],
  ['of the token', [[CKA.TOKEN, true]]],
] as const satisfies readonly (readonly [string, readonly Row[]])[];

const long = generateKeyPairSync('rsa', { modulusLength: 2048 });
const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
type Pair = typeof long;

const number = (key: KeyObject, name: 'n' | 'e' | 'd' | 'p' | 'q' | 'dp' | 'dq' | 'qi'): Buffer =>
  Buffer.from(key.export({ format: 'jwk' })[name] ?? '', 'base64url');
const publicRows = ({ publicKey }: Pair): Row[] => [
  [CKA.CLASS, CKO.PUBLIC_KEY],
  [CKA.KEY_TYPE, CKK.RSA],
  [CKA.MODULUS, number(publicKey, 'n')],
  [CKA.PUBLIC_EXPONENT, number(publicKey, 'e')],
];
const privateRows = ({ privateKey }: Pair): Row[] => [
  [CKA.CLASS, CKO.PRIVATE_KEY],
  [CKA.KEY_TYPE, CKK.RSA],
  [CKA.MODULUS, number(privateKey, 'n')],
  [CKA.PUBLIC_EXPONENT, number(privateKey, 'e')],
  [CKA.PRIVATE_EXPONENT, number(privateKey, 'd')],
  [CKA.PRIME_1, number(privateKey, 'p')],
  [CKA.PRIME_2, number(privateKey, 'q')],
  [CKA.EXPONENT_1, number(privateKey, 'dp')],
  [CKA.EXPONENT_2, number(privateKey, 'dq')],
  [CKA.COEFFICIENT, number(privateKey, 'qi')],
];
const info = ({ agent }: Host, type: number) => agent.call('C_GetMechanismInfo', { slot: 0, type });
const linesOf = ({ agent }: Host, cause: string): readonly string[] =>
  agent.lines.filter((line) => line.includes(`"cause":"${cause}"`));

describe.each(places)('RSA with PKCS#1 v1.5 padding, keys %s', (_place, rows) => {
  const encrypted = publicEncrypt({ key: long.publicKey, padding: constants.RSA_PKCS1_PADDING }, data);

  test('is refused by default, before a program depends on it', async () => {
    const host = await startSession();
    const key = await host.create(...privateRows(long), ...rows);
    const open = await host.create(...publicRows(long), ...rows);
    expect((await info(host, CKM.RSA_PKCS)).flags & (CKF.ENCRYPT | CKF.DECRYPT)).toBe(0);
    expect(await rvOf(host.decrypt(pkcs1, key, encrypted))).toBe('CKR_MECHANISM_INVALID');
    expect(await rvOf(host.encrypt(pkcs1, open, data))).toBe('CKR_MECHANISM_INVALID');
  });

  test('works in both directions with the switch, is logged once, and is announced', async () => {
    const host = await startSession();
    await host.agent.service.permit('rsa-pkcs1-encryption');
    const key = await host.create(...privateRows(long), ...rows);
    const open = await host.create(...publicRows(long), ...rows);
    expect((await info(host, CKM.RSA_PKCS)).flags & (CKF.ENCRYPT | CKF.DECRYPT)).toBe(CKF.ENCRYPT | CKF.DECRYPT);
    expect(await host.decrypt(pkcs1, key, encrypted)).toEqual(data);
    const back = await host.encrypt(pkcs1, open, data);
    expect(privateDecrypt({ key: long.privateKey, padding: constants.RSA_PKCS1_PADDING }, back)).toEqual(data);
    expect(await rvOf(host.encrypt(pkcs1, open, Buffer.alloc(246)))).toBe('CKR_DATA_LEN_RANGE');
    expect(linesOf(host, 'switch-used')).toHaveLength(1);
  });

  test('never reveals whether the padding is right', async () => {
    const host = await startSession();
    await host.agent.service.permit('rsa-pkcs1-encryption');
    const key = await host.create(...privateRows(long), ...rows);
    for (let n = 1; n <= 8; n++) {
      const wrong = Buffer.alloc(256, n);
      wrong[0] = 0;
      const instead = privateDecrypt({ key: long.privateKey, padding: constants.RSA_PKCS1_PADDING }, wrong);
      expect(await host.decrypt(pkcs1, key, wrong)).toEqual(instead);
    }
    expect(await rvOf(host.decrypt(pkcs1, key, Buffer.alloc(255)))).toBe('CKR_ENCRYPTED_DATA_LEN_RANGE');
    expect(await rvOf(host.decrypt(pkcs1, key, Buffer.alloc(256, 0xff)))).toBe('CKR_ENCRYPTED_DATA_INVALID');
  });

  test('keeps the rules for output', async () => {
    const host = await startSession();
    await host.agent.service.permit('rsa-pkcs1-encryption');
    const { agent, session } = host;
    const key = await host.create(...privateRows(long), ...rows);
    await agent.call('C_DecryptInit', { session, mechanism: pkcs1, key });
    const ask = async (capacity: number | null) => {
      const out = room(capacity);
      return given(out, await agent.call('C_Decrypt', { session, encryptedData: encrypted, data: out }));
    };
    expect(await ask(null)).toBe(245);
    expect(await ask(data.length - 1)).toBe(data.length);
    expect(await ask(data.length)).toEqual(data);
  });

  test('a switch that is withdrawn refuses the next call', async () => {
    const host = await startSession();
    await host.agent.service.permit('rsa-pkcs1-encryption', 'sha1-signatures');
    const key = await host.create(...privateRows(long), ...rows);
    expect(await host.decrypt(pkcs1, key, encrypted)).toEqual(data);
    await host.agent.service.permit('sha1-signatures');
    expect(await rvOf(host.decrypt(pkcs1, key, encrypted))).toBe('CKR_MECHANISM_INVALID');
  });
});

describe.each(places)('signatures over SHA-1, keys %s', (_place, rows) => {
  const pss: Mechanism['parameter'] = { kind: 'pss', hash: CKM.SHA_1, mgf: CKG.MGF1_SHA1, saltLength: 20 };
  const pssOptions = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 20 };
  const digest = Buffer.from('2fd4e1c67a2d28fced849ee1bb76e7391b93eb12', 'hex');
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const curveRows: Row[] = [
    [CKA.CLASS, CKO.PRIVATE_KEY],
    [CKA.KEY_TYPE, CKK.EC],
    [CKA.EC_PARAMS, p256],
    [CKA.VALUE, number(curve.privateKey, 'd')],
  ];

  test('are refused by default', async () => {
    const host = await startSession();
    const key = await host.create(...privateRows(long), ...rows);
    const curveKey = await host.create(...curveRows, ...rows);
    expect(await rvOf(host.sign(mech(CKM.SHA1_RSA_PKCS), key, data))).toBe('CKR_MECHANISM_INVALID');
    expect(await rvOf(host.sign(mech(CKM.SHA1_RSA_PKCS_PSS, pss), key, data))).toBe('CKR_MECHANISM_INVALID');
    expect(await rvOf(host.sign(mech(CKM.RSA_PKCS_PSS, pss), key, digest))).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await rvOf(host.sign(mech(CKM.ECDSA_SHA1), curveKey, data))).toBe('CKR_MECHANISM_INVALID');
    expect((await info(host, CKM.SHA1_RSA_PKCS)).flags).toBe(CKF.VERIFY);
    // Old ones are verified.
    const open = await host.create(...publicRows(long), ...rows);
    const old = nodeSign('sha1', data, long.privateKey);
    expect(await host.verify(mech(CKM.SHA1_RSA_PKCS), open, data, old)).toBe('CKR_OK');
  });

  test('are made with the switch', async () => {
    const host = await startSession();
    await host.agent.service.permit('sha1-signatures');
    const key = await host.create(...privateRows(long), ...rows);
    const curveKey = await host.create(...curveRows, ...rows);
    expect((await info(host, CKM.SHA1_RSA_PKCS)).flags).toBe(CKF.SIGN | CKF.VERIFY);
    const signature = await host.sign(mech(CKM.SHA1_RSA_PKCS), key, data);
    expect(signature).toEqual(nodeSign('sha1', data, long.privateKey));
    const theirs = { key: long.publicKey, ...pssOptions };
    const padded = await host.signInParts(mech(CKM.SHA1_RSA_PKCS_PSS, pss), key, data);
    expect(nodeVerify('sha1', data, theirs, padded)).toBe(true);
    expect(await rvOf(host.sign(mech(CKM.RSA_PKCS_PSS, pss), key, digest))).toBe('CKR_OK');
    const onCurve = await host.sign(mech(CKM.ECDSA_SHA1), curveKey, data);
    expect(nodeVerify('sha1', data, { key: curve.publicKey, dsaEncoding: 'ieee-p1363' }, onCurve)).toBe(true);
  });
});

describe.each(places)('RSA keys below 2048 bits, %s', (_place, rows) => {
  const signature = nodeSign('sha256', data, short.privateKey);

  test('are refused by default', async () => {
    const host = await startSession();
    expect(await rvOf(host.create(...publicRows(short), ...rows))).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    expect(await rvOf(host.create(...privateRows(short), ...rows))).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    const numbers = privateRows(short).slice(0, 5);
    expect(await rvOf(host.create(...numbers, ...rows))).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    expect((await info(host, CKM.SHA256_RSA_PKCS)).minKeySize).toBe(2048);
  });

  test('verify with the switch for that, and do nothing else', async () => {
    const host = await startSession();
    await host.agent.service.permit('short-rsa-verification');
    const open = await host.create(...publicRows(short), ...rows);
    expect((await info(host, CKM.SHA256_RSA_PKCS)).minKeySize).toBe(1024);
    expect(await host.verify(mech(CKM.SHA256_RSA_PKCS), open, data, signature)).toBe('CKR_OK');
    expect(await rvOf(host.encrypt(oaep, open, data))).toBe('CKR_KEY_SIZE_RANGE');
    const key = await host.create(...aesRows, [CKA.VALUE, secret], [CKA.EXTRACTABLE, true]);
    expect(await rvOf(host.wrap(oaep, open, key))).toBe('CKR_WRAPPING_KEY_SIZE_RANGE');
    expect(await rvOf(host.create(...privateRows(short), ...rows))).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  });

  test('sign, decrypt and come unwrapped with the switch for all, and wrap nothing', async () => {
    const host = await startSession();
    await host.agent.service.permit('short-rsa-keys');
    const open = await host.create(...publicRows(short), ...rows);
    for (const own of [privateRows(short), privateRows(short).slice(0, 5)]) {
      const key = await host.create(...own, ...rows, [CKA.EXTRACTABLE, true]);
      expect(await host.sign(mech(CKM.SHA256_RSA_PKCS), key, data)).toEqual(signature);
      expect(await host.decrypt(oaep, key, await host.encrypt(oaep, open, data))).toEqual(data);
      const wrapping = await host.generate(noDecrypt, ...rows);
      const wrapped = await host.wrap(keyWrap, wrapping, key);
      const into: Row[] = [
        [CKA.CLASS, CKO.PRIVATE_KEY],
        [CKA.KEY_TYPE, CKK.RSA],
      ];
      const back = await host.unwrap(keyWrap, wrapping, wrapped, ...into);
      expect(await host.sign(mech(CKM.SHA256_RSA_PKCS), back, data)).toEqual(signature);
      await host.agent.service.permit('short-rsa-verification');
      expect(await rvOf(host.unwrap(keyWrap, wrapping, wrapped, ...into))).toBe('CKR_WRAPPED_KEY_INVALID');
      await host.agent.service.permit('short-rsa-keys');
    }
    const key = await host.create(...aesRows, [CKA.VALUE, secret], [CKA.EXTRACTABLE, true]);
    expect(await rvOf(host.wrap(oaep, open, key))).toBe('CKR_WRAPPING_KEY_SIZE_RANGE');
    const pair = host.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [[CKA.MODULUS_BITS, 1024]], [...rows]);
    expect(await rvOf(pair)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  });
});

describe.each(places)('a second message under one IV, keys %s', (_place, rows) => {
  const iv = Buffer.alloc(12, 9);
  const gcm = mech(CKM.AES_GCM, { kind: 'gcm', iv, ivBits: 96, aad: Buffer.alloc(0), tagBits: 128 });
  const open = (sealed: Buffer): Buffer => {
    const decipher = createDecipheriv('aes-256-gcm', secret, iv, { authTagLength: 16 });
    decipher.setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
  };

  test('is refused by default, and encrypted with the switch', async () => {
    const host = await startSession();
    const key = await host.create(...aesRows, [CKA.VALUE, secret], ...rows);
    const other = Buffer.from('another message');
    expect(open(await host.encrypt(gcm, key, data))).toEqual(data);
    expect(await rvOf(host.encrypt(gcm, key, other))).toBe('CKR_MECHANISM_PARAM_INVALID');
    await host.agent.service.permit('repeated-ivs');
    for (const message of [other, data, other]) expect(open(await host.encrypt(gcm, key, message))).toEqual(message);
    await host.agent.service.permit();
    expect(await rvOf(host.encrypt(gcm, key, data))).toBe('CKR_MECHANISM_PARAM_INVALID');
  });
});

describe('the service', () => {
  const caller = { requestId: 'r', instance: '' };
  const ask = (host: Host, route: 'decrypt' | 'sign', handle: number, head: object, raw: Uint8Array) =>
    host.agent.service.call({ route, handle, head, raw: Uint8Array.from(raw) } as never, caller).then(
      () => 'done',
      (error: { readonly code: string; readonly reason: string | null }) => `${error.code} ${error.reason}`,
    );

  test('refuses what an agent might not have refused', async () => {
    const host = await startSession();
    const key = await host.create(...privateRows(long), [CKA.TOKEN, true]);
    const encrypted = publicEncrypt({ key: long.publicKey, padding: constants.RSA_PKCS1_PADDING }, data);
    const pss = { algorithm: 'rsa-pss', digest: 'sha1', mgfDigest: 'sha1', saltLength: 20 };
    const rows = [
      ['decrypt', { padding: 'pkcs1' }, encrypted, 'rsa-pkcs1-encryption'],
      ['sign', pss, Buffer.alloc(20), 'sha1-signatures'],
    ] as const;
    for (const [route, head, raw, name] of rows) {
      await host.agent.service.permit();
      expect(await ask(host, route, key, head, raw)).toBe('forbidden compatibility');
      await host.agent.service.permit(name);
      expect(await ask(host, route, key, head, raw)).toBe('done');
    }
  });

  test('takes no short key that an agent might send', async () => {
    const host = await startSession();
    const { service } = host.agent;
    const value = short.publicKey.export({ type: 'spki', format: 'der' });
    const head = {
      ...{ class: 'public-key', label: '', algorithm: 'rsa', bits: null, usages: ['verify'], sensitive: false },
      ...{ extractable: true, modifiable: true, destroyable: true, private: false, attributes: '' },
    };
    const send = () =>
      service
        .call({ route: 'createObject', handle: null, head, raw: Uint8Array.from(value) } as never, {
          requestId: `create-${Math.random()}`,
          instance: '',
        })
        .then(
          () => 'done',
          (error: { readonly code: string }) => error.code,
        );
    expect(await send()).toBe('unsupported');
    await service.permit('short-rsa-verification');
    expect(await send()).toBe('done');
  });

  test('refuses a short key that it has when the switch is withdrawn', async () => {
    const host = await startSession();
    await host.agent.service.permit('short-rsa-keys');
    const key = await host.create(...privateRows(short), [CKA.TOKEN, true]);
    await host.agent.service.permit();
    expect(await rvOf(host.sign(mech(CKM.SHA256_RSA_PKCS), key, data))).toBe('CKR_ACTION_PROHIBITED');
  });
});
