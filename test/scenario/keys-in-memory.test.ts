// Known keys go every way that the library has, between a database, the agent and the server; then
// the memory of agent and server is searched for their values. A core dump has none of them. Nor
// has any memory but that which the addon keeps for secrets, which is locked and excluded from core
// dumps.
//
// Their messages are searched in test/unit/agent/keys-in-transit.test.ts.
import {
  createCipheriv,
  createDecipheriv,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import pkcs11js, { type Handle, type Template } from 'pkcs11js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/host.ts';
import { type Pkcs11Host, startHost } from '../support/pkcs11-host.ts';
import { type Needles, noCoreDumps, searchCoreDump, searchMemory } from '../support/process-memory.ts';
import { inLongTier } from '../support/tiers.ts';

const keyWrap = { mechanism: 0x2109 }; // CKM_AES_KEY_WRAP
const keyWrapWithPadding = { mechanism: 0x210b }; // CKM_AES_KEY_WRAP_KWP

const secrets = new Map<string, Buffer>();
/** A value that must not be found, with its name. */
const canary = (name: string, value: Buffer = randomBytes(32)): Buffer => {
  secrets.set(name, value);
  return value;
};
/** Values that must be found, which proves that the search works. */
const marker = `marker-${randomBytes(16).toString('hex')}`;

/**
 * A secret in the forms in which it could lie in memory: as bytes, and as text of one byte and of
 * two bytes a character.
 */
const forms = (secret: Buffer): readonly Buffer[] => {
  const texts = [
    secret.toString('hex'),
    secret.toString('base64').slice(0, 42),
    secret.toString('base64url').slice(0, 42),
  ];
  return [secret, ...texts.flatMap((text) => [Buffer.from(text), Buffer.from(text, 'utf16le')])];
};
const needles = (): Needles =>
  new Map([...secrets, ['the marker', Buffer.from(marker)] as const].map(([name, value]) => [name, forms(value)]));

const onToken = (value: boolean): Template => [{ type: pkcs11js.CKA_TOKEN, value }];
const aes: Template = [
  { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
  { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
];
const flags = (...types: number[]): Template => types.map((type) => ({ type, value: true }));
const { CKA_SENSITIVE, CKA_EXTRACTABLE, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE, CKA_DECRYPT } = pkcs11js;
const sensitive = flags(CKA_SENSITIVE);
const clear: Template = [{ type: CKA_SENSITIVE, value: false }, ...flags(CKA_EXTRACTABLE)];
const noDecrypt: Template = [{ type: CKA_DECRYPT, value: false }];
const wrapped = (under: Buffer, value: Buffer): Buffer => {
  const cipher = createCipheriv('aes256-wrap', under, Buffer.alloc(8, 0xa6));
  return Buffer.concat([cipher.update(value), cipher.final()]);
};

/** Uncompressed. */
const pointOf = (key: KeyObject): Buffer => {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
};

const rsaTypes = {
  n: pkcs11js.CKA_MODULUS,
  e: pkcs11js.CKA_PUBLIC_EXPONENT,
  d: pkcs11js.CKA_PRIVATE_EXPONENT,
  p: pkcs11js.CKA_PRIME_1,
  q: pkcs11js.CKA_PRIME_2,
  dp: pkcs11js.CKA_EXPONENT_1,
  dq: pkcs11js.CKA_EXPONENT_2,
  qi: pkcs11js.CKA_COEFFICIENT,
} as const;

/**
 * The numbers of a new RSA key. Its secrets must not be found, neither as they are written nor as a
 * processor has them.
 */
const rsaNumbers = (what: string): ((name: keyof typeof rsaTypes) => Buffer) => {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const number = (name: keyof typeof rsaTypes): Buffer => Buffer.from(String(jwk[name]), 'base64url');
  for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi'] as const) {
    // The middle, because leading zeros vary.
    const part = number(name).subarray(8, 72);
    canary(`${name} of an ${what}`, part);
    canary(`${name} of an ${what}, lowest byte first`, Buffer.from(part).reverse());
  }
  return number;
};

let host: Pkcs11Host;
beforeAll(async () => {
  host = await startHost();
  const { pkcs11 } = host;
  const session = host.open();
  const create = (value: Buffer, ...rows: Template): Handle =>
    pkcs11.C_CreateObject(session, [...aes, { type: pkcs11js.CKA_VALUE, value }, ...rows]);
  const room = (): Buffer => Buffer.alloc(4096);

  create(canary('a key that is created in a session'), ...sensitive);
  create(canary('a key that is created on the token'), ...onToken(true), ...sensitive, {
    type: pkcs11js.CKA_LABEL,
    value: marker,
  });
  const createEc = (privateKey: KeyObject, ...rows: Template): { handle: Handle; privateKey: KeyObject } => {
    const handle = pkcs11.C_CreateObject(session, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_PRIVATE_KEY },
      { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_EC },
      { type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from('06082a8648ce3d030107', 'hex') },
      { type: pkcs11js.CKA_VALUE, value: Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url') },
      ...rows,
    ]);
    return { handle, privateKey };
  };
  const randomEc = (): KeyObject => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const name = `private key ${secrets.size}`;
    canary(name, Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url'));
    return privateKey;
  };
  for (const to of [false, true]) createEc(randomEc(), ...onToken(to), ...sensitive);
  pkcs11.C_CopyObject(session, create(canary('a key that is copied onto the token'), ...sensitive), onToken(true));

  // A token key that wraps and unwraps, and a session key with a known value.
  const wrapping = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
    { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
    ...onToken(true),
    ...flags(CKA_WRAP, CKA_UNWRAP),
    ...noDecrypt,
  ]);
  const known = randomBytes(32);
  const own = create(known, ...flags(CKA_WRAP, CKA_UNWRAP));
  for (const to of [false, true]) {
    const value = canary(`a key that is unwrapped by the agent, onto the token: ${to}`);
    pkcs11.C_UnwrapKey(session, keyWrap, own, wrapped(known, value), [...aes, ...onToken(to), ...sensitive]);
  }
  const leaving = create(
    canary('a key that is wrapped under a key of the token'),
    ...sensitive,
    ...flags(CKA_EXTRACTABLE),
  );
  const out = pkcs11.C_WrapKey(session, keyWrap, wrapping, leaving, room());
  for (const to of [false, true]) {
    pkcs11.C_UnwrapKey(session, keyWrap, wrapping, Buffer.from(out), [...aes, ...onToken(to), ...sensitive]);
  }

  for (const from of [false, true]) {
    const base = createEc(randomEc(), ...onToken(from), ...sensitive, ...flags(CKA_DERIVE));
    for (const to of [false, true]) {
      const peer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      canary(
        `a key that is derived from one on the token: ${from}, onto the token: ${to}`,
        diffieHellman({ privateKey: base.privateKey, publicKey: peer.publicKey }),
      );
      const parameter = { type: pkcs11js.CK_PARAMS_EC_DH, kdf: 1, publicData: pointOf(peer.publicKey) };
      pkcs11.C_DeriveKey(session, { mechanism: pkcs11js.CKM_ECDH1_DERIVE, parameter }, base.handle, [
        ...aes,
        { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
        ...onToken(to),
        ...sensitive,
      ]);
    }
  }

  // RSA keys: whole, and of the two numbers that the standard requires; signed with, wrapped, and
  // unwrapped.
  const rsa: Template = [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_PRIVATE_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_RSA },
  ];
  const few = ['n', 'd'] as const;
  for (const to of [false, true]) {
    for (const names of [few, ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'] as const]) {
      const numbers = rsaNumbers(`RSA key of ${names.length} numbers, on the token: ${to}`);
      const handle = pkcs11.C_CreateObject(session, [
        ...rsa,
        ...names.map((name) => ({ type: rsaTypes[name], value: numbers(name) })),
        ...onToken(to),
        ...sensitive,
        ...flags(CKA_EXTRACTABLE, pkcs11js.CKA_SIGN),
      ]);
      pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_RSA_PKCS }, handle);
      pkcs11.C_Sign(session, Buffer.from('a message'), room());
      const pkcs8 = Buffer.from(pkcs11.C_WrapKey(session, keyWrapWithPadding, wrapping, handle, room()));
      for (const back of [false, true])
        pkcs11.C_UnwrapKey(session, keyWrapWithPadding, wrapping, pkcs8, [...rsa, ...onToken(back), ...sensitive]);
    }
  }

  // Keys that their owner may read but does not: generated here, copied, and wrapped.
  for (const from of [false, true]) {
    const made = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      ...onToken(from),
      ...clear,
    ]);
    for (const to of [false, true]) pkcs11.C_CopyObject(session, made, [...onToken(to), ...sensitive]);
    const decipher = createDecipheriv('aes256-wrap', known, Buffer.alloc(8, 0xa6));
    const bytes = pkcs11.C_WrapKey(session, keyWrap, own, made, room());
    canary(
      `a key that is generated, copied and wrapped, on the token: ${from}`,
      Buffer.concat([decipher.update(bytes), decipher.final()]),
    );
  }
});
afterAll(() => host.stop());

const pidOf = (name: string): number => (name === 'agent' ? host.agent.child.pid : host.service.pid) ?? 0;

test('the search finds keys in the memory that the agent’s addon keeps for keys', () => {
  const found = searchMemory(pidOf('agent'), 'left out of core dumps', needles());
  expect(found).toContain('a key that is created in a session');
  expect(found).toContain('a key that is unwrapped by the agent, onto the token: false');
  expect(found).toContain('p of an RSA key of 8 numbers, on the token: false, lowest byte first');
});

test.each(['agent', 'server'])('no memory of the %s contains a key but that which core dumps leave out', (name) => {
  expect(searchMemory(pidOf(name), 'rest', needles())).toEqual(['the marker']);
});

test('a key goes to the token after the keys of the service have changed under the running agent', async () => {
  const { pkcs11, service } = host;
  const { epoch } = await service.api.call<{ epoch: number }>('GET', '/api/root');
  await service.api.call('POST', '/api/root/rotate', {});
  await until('the new root key', async () => {
    const root = await service.api.call<{ epoch: number; rotating: boolean }>('GET', '/api/root');
    return root.epoch > epoch && !root.rotating ? true : undefined;
  });
  const value = canary('a key that is created after a rotation');
  const session = host.open();
  const key = pkcs11.C_CreateObject(session, [...aes, { type: pkcs11js.CKA_VALUE, value }, ...onToken(true)]);
  pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
  const cipher = createCipheriv('aes-256-ecb', value, null).setAutoPadding(false);
  const block = Buffer.alloc(16, 3);
  expect(pkcs11.C_Encrypt(session, block, Buffer.alloc(32))).toEqual(cipher.update(block));
});

const reason = noCoreDumps();
if (reason !== null) console.log(`skipped: ${reason}`);

test.runIf(reason === null && inLongTier('scenario/keys-in-memory: core dumps')).each(['agent', 'server'])(
  'no core dump of the %s contains a key',
  async (name) => {
    expect(await searchCoreDump(pidOf(name), needles())).toEqual(['the marker']);
  },
);
