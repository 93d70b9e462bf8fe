// Keys in transit between the agent and the service: for every call that sends one, neither the
// request nor the answer contains its value, and the service has the right key afterwards. What a
// process keeps in its memory is test/scenario/secrets.test.ts.
import { createCipheriv, createPrivateKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ServiceRequest } from '../../../provider/agent/service/service-door.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { ServiceInfo } from '../../../server/contract/tde.ts';
import {
  aesRows,
  clear,
  extractable,
  keyWrap,
  mech,
  noDecrypt,
  oaepWith,
  onToken,
  type Row,
  startSession,
} from '../../support/session-calls.ts';

const ecb = mech(CKM.AES_ECB);
const sensitive: Row = [CKA.SENSITIVE, true];
const block = Buffer.alloc(16, 1);
const expected = (value: Buffer): Buffer =>
  createCipheriv('aes-256-ecb', value, null).setAutoPadding(false).update(block);

/** A session, and all messages between its agent and the service. */
const listen = async () => {
  const call = await startSession();
  const said: { readonly route: string; readonly bytes: Buffer }[] = [];
  const { service } = call.agent;
  const pass = service.call.bind(service);
  service.call = async (request, caller) => {
    const { route, head, raw } = request as ServiceRequest;
    said.push({ route, bytes: Buffer.concat([Buffer.from(JSON.stringify(head)), raw ?? Buffer.alloc(0)]) });
    const answer = await pass(request, caller);
    said.push({ route, bytes: Buffer.concat([Buffer.from(JSON.stringify(answer.answer)), answer.raw]) });
    return answer;
  };
  /** The routes whose request or answer contains the secret, as bytes or as text. */
  const carriersOf = (secret: Buffer): readonly string[] =>
    said
      .filter(({ bytes }) =>
        [secret, Buffer.from(secret.toString('hex')), Buffer.from(secret.toString('base64').slice(0, -3))].some(
          (form) => bytes.includes(form),
        ),
      )
      .map(({ route }) => route);
  return { ...call, said, carriersOf };
};

type Listened = Awaited<ReturnType<typeof listen>>;
const create = (call: Pick<Listened, 'create'>, value: Buffer, ...rows: Row[]): Promise<number> =>
  call.create(...aesRows, [CKA.VALUE, value], ...rows);
/** A session key that unwraps keys that the test has wrapped. */
const wrapped = (under: Buffer, value: Buffer): Buffer => {
  const cipher = createCipheriv('aes256-wrap', under, Buffer.alloc(8, 0xa6));
  return Buffer.concat([cipher.update(value), cipher.final()]);
};

describe('neither a request nor an answer contains the value of a key', () => {
  test('that is created on the token', async () => {
    const call = await listen();
    const value = randomBytes(32);
    const key = await create(call, value, onToken);
    expect(await call.encrypt(ecb, key, block)).toEqual(expected(value));
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that is copied from a session onto the token', async () => {
    const call = await listen();
    const value = randomBytes(32);
    const key = await call.copy(await create(call, value, sensitive), onToken);
    expect(await call.encrypt(ecb, key, block)).toEqual(expected(value));
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that is unwrapped in a session for the token', async () => {
    const call = await listen();
    const [under, value] = [randomBytes(32), randomBytes(32)];
    const key = await call.unwrap(
      keyWrap,
      await create(call, under),
      wrapped(under, value),
      ...aesRows,
      onToken,
      sensitive,
    );
    expect(await call.encrypt(ecb, key, block)).toEqual(expected(value));
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that is derived in a session for the token', async () => {
    const call = await listen();
    const base = randomBytes(32);
    const handle = await create(call, base, [CKA.DERIVE, true], ...clear);
    const value = createCipheriv('aes-256-ecb', base, null).setAutoPadding(false).update(block);
    const mechanism = mech(CKM.AES_ECB_ENCRYPT_DATA, { kind: 'data', data: block });
    const key = await call.derive(mechanism, handle, ...aesRows, [CKA.VALUE_LEN, 16], onToken, sensitive);
    const cipher = createCipheriv('aes-128-ecb', value, null).setAutoPadding(false);
    expect(await call.encrypt(ecb, key, block)).toEqual(cipher.update(block));
    expect(call.carriersOf(value)).toEqual([]);
  });
  test.each([
    ['an AES key', async (call: Listened) => call.generate(onToken, noDecrypt), keyWrap],
    [
      'an RSA pair',
      async (call: Listened) => {
        const rows: Row[] = [onToken, [CKA.MODULUS_BITS, 2048], [CKA.WRAP, true]];
        const halves: Row[] = [onToken, noDecrypt, [CKA.UNWRAP, true]];
        return (await call.pair(CKM.RSA_PKCS_KEY_PAIR_GEN, rows, halves)).publicKey;
      },
      oaepWith(Buffer.alloc(0)),
    ],
  ])('that is wrapped under %s of the token', async (_name, wrapping, mechanism) => {
    const call = await listen();
    const value = randomBytes(32);
    const handle = await wrapping(call);
    await call.wrap(mechanism, handle, await create(call, value, sensitive, extractable));
    expect(call.said.map(({ route }) => route)).toContain('wrap');
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that may be read and is copied, onto the token and into the session', async () => {
    const call = await listen();
    const value = randomBytes(32);
    const source = await create(call, value, onToken, ...clear);
    for (const rows of [
      [onToken, sensitive],
      [[CKA.TOKEN, false], sensitive],
    ] as Row[][]) {
      const key = await call.copy(source, ...rows);
      expect(await call.encrypt(ecb, key, block)).toEqual(expected(value));
    }
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that may be read and is wrapped under a key of the session', async () => {
    const call = await listen();
    const [under, value] = [randomBytes(32), randomBytes(32)];
    const source = await create(call, value, onToken, ...clear);
    expect(await call.wrap(keyWrap, await create(call, under, [CKA.WRAP, true]), source)).toEqual(
      wrapped(under, value),
    );
    expect(call.carriersOf(value)).toEqual([]);
  });
  test('that is private: created on the token, and copied there', async () => {
    const call = await listen();
    for (const how of ['create', 'copy']) {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519');
      const value = createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }));
      const secret = Buffer.from(value.export({ format: 'jwk' }).d ?? '', 'base64url');
      const rows: Row[] = [
        [CKA.CLASS, CKO.PRIVATE_KEY],
        [CKA.KEY_TYPE, CKK.EC_EDWARDS],
        [CKA.EC_PARAMS, Buffer.from('06032b6570', 'hex')],
        [CKA.VALUE, secret],
        [CKA.SIGN, true],
      ];
      const key =
        how === 'create' ? await call.create(...rows, onToken) : await call.copy(await call.create(...rows), onToken);
      expect(key).toBeLessThan(2 ** 31);
      expect(verify(null, block, publicKey, await call.sign(mech(CKM.EDDSA), key, block))).toBe(true);
      expect(call.carriersOf(secret)).toEqual([]);
    }
  });
});

test('an agent whose recipient is gone seals the key to the new one', async () => {
  const call = await startSession();
  const { service } = call.agent;
  const pass = service.call.bind(service);
  let stale = true;
  service.call = async (request, caller) => {
    const given = await pass(request, caller);
    if (request.route !== 'info' || !stale) return given;
    stale = false;
    const { recipient, ...info } = given.answer as ServiceInfo;
    // That of the erasure run before, by its epoch, or of another store that was in the place of
    // this one, by its key.
    const publicKey = randomBytes(32).toString('base64');
    return { ...given, answer: { ...info, recipient: { ...recipient, publicKey } } as typeof given.answer };
  };
  const value = randomBytes(32);
  const key = await create(call, value, onToken);
  expect(await call.encrypt(ecb, key, block)).toEqual(expected(value));
  expect(Object.fromEntries(service.asked)).toMatchObject({ info: 2, createObject: 2 });
});

test('the value of a key that its owner reads is in the answer to that call only', async () => {
  const call = await listen();
  const value = randomBytes(32);
  const key = await create(call, value, onToken, ...clear);
  expect(await call.value(key)).toEqual(value);
  expect(call.carriersOf(value)).toEqual(['readValue']);
});
