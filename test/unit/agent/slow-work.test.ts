// What takes longer than 5 ms leaves the socket thread to the calls of others, and the users'
// queues are served in turn. No time is measured here: while the slow call is under way, calls of
// another process are answered.
import { constants, createPublicKey, generateKeyPairSync, publicEncrypt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Accounts, defaultLimits } from '../../../provider/agent/sessions/user-limits.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { room, rvOf } from '../../support/in-process-agent.ts';
import {
  aesRows,
  answeredDuring,
  cbcPad,
  extractable,
  mech,
  noDecrypt,
  oaepWith,
  type Row,
  type SessionCalls,
  startSession,
} from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 });
const jwk = privateKey.export({ format: 'jwk' });
const numbers = [
  [CKA.MODULUS, 'n'],
  [CKA.PUBLIC_EXPONENT, 'e'],
  [CKA.PRIVATE_EXPONENT, 'd'],
  [CKA.PRIME_1, 'p'],
  [CKA.PRIME_2, 'q'],
  [CKA.EXPONENT_1, 'dp'],
  [CKA.EXPONENT_2, 'dq'],
  [CKA.COEFFICIENT, 'qi'],
] as const;
const rsa: Row[] = [
  [CKA.CLASS, CKO.PRIVATE_KEY],
  [CKA.KEY_TYPE, CKK.RSA],
];
const imported: Row[] = [
  ...rsa,
  ...numbers.map(([type, name]): Row => [type, Buffer.from(String(jwk[name]), 'base64url')]),
];
const uses: Row[] = [[CKA.SIGN, true], [CKA.DECRYPT, true], [CKA.UNWRAP, true], extractable];
const oaep = oaepWith(Buffer.alloc(0));
const encrypted = publicEncrypt(
  { key: createPublicKey(privateKey), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
  Buffer.alloc(32, 7),
);
const pairRows: Row[] = [[CKA.MODULUS_BITS, 2048]];

const accounts = new Accounts(defaultLimits, 1 << 20);

describe('calls of another process are answered during', () => {
  test('each call with a large private key', async () => {
    const [own, other] = [await startSession(), await startSession()];
    const key = await own.create(...imported, ...uses);
    const wrapping = await own.generate(noDecrypt, [CKA.WRAP, true], [CKA.UNWRAP, true]);
    const kwp = mech(CKM.AES_KEY_WRAP_KWP);
    const wrapped = await own.wrap(kwp, wrapping, key);
    const slow: Record<string, () => Promise<unknown>> = {
      C_GenerateKeyPair: () => own.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, pairRows, []),
      C_CreateObject: () => own.create(...imported, ...uses),
      'C_CreateObject of two numbers': () =>
        own.create(
          ...imported.filter(([type]) => type !== CKA.PUBLIC_EXPONENT && type !== CKA.PRIME_1 && type !== CKA.PRIME_2),
        ),
      'C_CreateObject on the token': () => own.create(...imported, ...uses, [CKA.TOKEN, true]),
      C_UnwrapKey: () => own.unwrap(kwp, wrapping, wrapped, ...rsa),
      'C_UnwrapKey with OAEP': () => own.unwrap(oaep, key, encrypted, ...aesRows),
      C_Decrypt: () => own.decrypt(oaep, key, encrypted),
      C_Sign: () => own.sign(mech(CKM.SHA256_RSA_PKCS), key, encrypted),
      C_SignFinal: () => own.signInParts(mech(CKM.SHA256_RSA_PKCS), key, encrypted.subarray(0, 3)),
    };
    // On a busy machine the other process may not get its turn during one call.
    for (const [name, call] of Object.entries(slow))
      await expect.poll(() => answeredDuring(other, call), { message: name }).toBeGreaterThan(1);
  });
});

test('one user who generates many keys does not delay another one', async () => {
  const [greedy, other] = [await startSession(accounts.of(1001)), await startSession(accounts.of(1002))];
  const order: string[] = [];
  const make = async (calls: SessionCalls, who: string): Promise<void> => {
    await calls.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, pairRows, []);
    order.push(who);
  };
  const all = Array.from({ length: 12 }, () => make(greedy, 'greedy'));
  await make(other, 'other');
  const before = order.indexOf('other');
  await Promise.all(all);
  expect(before).toBeLessThan(11);
});

test('only a user who asks for too much at the same time is refused', async () => {
  const [greedy, other] = [await startSession(accounts.of(1001)), await startSession(accounts.of(1002))];
  const make = (calls: SessionCalls) => rvOf(calls.agent.pair(calls.session, CKM.RSA_PKCS_KEY_PAIR_GEN, pairRows, []));
  const all = Array.from({ length: 20 }, () => make(greedy));
  expect(await make(other)).toBe('CKR_OK');
  // The process ends: waiting work no longer starts.
  greedy.agent.connection.close();
  const codes = await Promise.all(all);
  expect(codes.filter((rv) => rv === 'CKR_DEVICE_MEMORY')).toHaveLength(3);
  expect(codes).toContain('CKR_CRYPTOKI_NOT_INITIALIZED');
});

test('a key that is too large is refused in every way in', async () => {
  const { agent, session, generate, unwrap } = await startSession();
  const large = numbers.map(([type]): Row => [type, Buffer.alloc(type === CKA.MODULUS ? 1792 : 896, 0xc5)]);
  const refused = { session, template: template(...rsa, ...large) };
  expect(await agent.rv('C_CreateObject', refused)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  // A PKCS#8 of 14,336 bits, with any numbers.
  const integer = (bytes: number): Buffer =>
    Buffer.concat([Buffer.from([2, 0x82, bytes >> 8, bytes & 0xff, 0x45]), Buffer.alloc(bytes - 1, 0xc5)]);
  const sequence = (tag: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
  const half = integer(896);
  const key = sequence(
    0x30,
    Buffer.concat([
      Buffer.from([2, 1, 0]),
      integer(1792),
      Buffer.from([2, 3, 1, 0, 1]),
      integer(1792),
      half,
      half,
      half,
      half,
      half,
    ]),
  );
  const algorithm = Buffer.from('300d06092a864886f70d0101010500', 'hex');
  const pkcs8 = sequence(0x30, Buffer.concat([Buffer.from([2, 1, 0]), algorithm, sequence(4, key)]));
  const wrapping = await generate([CKA.UNWRAP, true], [CKA.ENCRYPT, true]);
  const encryptedData = room(16_384);
  await agent.call('C_EncryptInit', { session, mechanism: cbcPad, key: wrapping });
  const length = (await agent.call('C_Encrypt', { session, data: pkcs8, encryptedData })) as number;
  const wrapped = Buffer.from(encryptedData.space.subarray(0, length));
  await expect(unwrap(cbcPad, wrapping, wrapped, ...rsa)).rejects.toThrow('CKR_WRAPPED_KEY_INVALID');
});
