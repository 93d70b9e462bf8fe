// For any content of a template or a mechanism's parameter, the answer is one of the standard's
// codes for it: never CKR_GENERAL_ERROR, which means that the agent itself failed, and no key is
// left behind.

import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { attributes, CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Attribute, MechanismParameter } from '../../../provider/schema/types.ts';
import { type InProcessAgent, room } from '../../support/in-process-agent.ts';
import fc from '../../support/property.ts';
import { mech, startSession } from '../../support/session-calls.ts';
import { sizeOf } from '../../support/tiers.ts';

const seed = 20_261_121;
const numRuns = sizeOf('templates');

const curve = Buffer.from('06082a8648ce3d030107', 'hex');
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.uint8Array({ minLength: 128, maxLength: 128 }),
  fc.uint8Array({ minLength: 256, maxLength: 256 }),
  fc.constantFrom(new Uint8Array(70_000), curve, Buffer.from('06032b6570', 'hex'), Buffer.of(1, 0, 1)),
);
/** A value of the attribute's kind, most of the time. */
const attribute: fc.Arbitrary<Attribute> = fc
  .constantFrom(...Object.values(attributes))
  .chain(({ type, kind }): fc.Arbitrary<Attribute> => {
    switch (kind) {
      case 'boolean':
      case 'byteBoolean':
        return fc.boolean().map((value) => ({ type, value, length: 1 }));
      case 'ulong':
        return fc
          .oneof(fc.nat({ max: 70 }), fc.constantFrom(2048, -1, 2 ** 40))
          .map((value) => ({ type, value, length: 8 }));
      case 'template':
        return fc.constant({ type, value: [{ type: CKA.PRIVATE, value: true, length: 1 }], length: 24 });
      case 'mechanisms':
        return fc
          .array(fc.nat({ max: 0x2000 }), { maxLength: 3 })
          .map((value) => ({ type, value, length: value.length * 8 }));
      default:
        return bytes.map((value) => ({ type, value, length: value.length }));
    }
  });
const classes = fc.constantFrom(...Object.values(CKO));
const keyTypes = fc.constantFrom(CKK.RSA, CKK.EC, CKK.EC_EDWARDS, CKK.AES, CKK.GENERIC_SECRET, CKK.DES3);
const number = (type: number, value: number): Attribute => ({ type, value, length: 8 });
/** The required attributes of an object of a class and type, so that some creations succeed. */
const needed = (objectClass: number, keyType: number): readonly number[] => {
  if (objectClass === CKO.CERTIFICATE) return [CKA.SUBJECT, CKA.VALUE];
  if (objectClass !== CKO.PUBLIC_KEY && objectClass !== CKO.PRIVATE_KEY) return [CKA.VALUE];
  const isPublic = objectClass === CKO.PUBLIC_KEY;
  if (keyType !== CKK.RSA) return [CKA.EC_PARAMS, isPublic ? CKA.EC_POINT : CKA.VALUE];
  const open = [CKA.MODULUS, CKA.PUBLIC_EXPONENT];
  const rest = [CKA.PRIVATE_EXPONENT, CKA.PRIME_1, CKA.PRIME_2, CKA.EXPONENT_1, CKA.EXPONENT_2, CKA.COEFFICIENT];
  return isPublic ? open : [...open, ...rest];
};
const template = fc
  .tuple(
    fc.oneof(classes, fc.constantFrom(CKO.PUBLIC_KEY, CKO.PRIVATE_KEY, CKO.SECRET_KEY)),
    keyTypes,
    fc.oneof(fc.constant([]), fc.array(attribute, { maxLength: 3 })),
    fc.boolean(),
    fc.array(bytes, { minLength: 8, maxLength: 8 }),
  )
  .map(([objectClass, keyType, rows, whole, values]): Attribute[] => {
    const filled = whole
      ? needed(objectClass, keyType).map((type, at): Attribute => {
          const value = type === CKA.EC_PARAMS ? curve : (values[at] ?? curve);
          return { type, value, length: value.length };
        })
      : [];
    const type = objectClass === CKO.CERTIFICATE ? number(CKA.CERTIFICATE_TYPE, 0) : number(CKA.KEY_TYPE, keyType);
    return [number(CKA.CLASS, objectClass), type, ...filled, ...rows];
  });
const parameter: fc.Arbitrary<MechanismParameter | null> = fc.oneof(
  fc.constant(null),
  bytes.map((value) => ({ kind: 'bytes' as const, bytes: value })),
  fc.record({ kind: fc.constant('data' as const), data: bytes }),
  fc.record({ kind: fc.constant('ivdata' as const), iv: bytes, data: bytes }),
  fc.record({ kind: fc.constant('ecdh1' as const), kdf: fc.nat({ max: 9 }), shared: bytes, publicData: bytes }),
  fc.record({
    kind: fc.constant('hkdf' as const),
    extract: fc.boolean(),
    expand: fc.boolean(),
    hash: fc.constantFrom(CKM.SHA256, CKM.SHA512, 7),
    saltType: fc.nat({ max: 4 }),
    salt: bytes,
    saltKey: fc.constant(0),
    info: bytes,
  }),
  fc.record({
    kind: fc.constant('oaep' as const),
    hash: fc.constantFrom(CKM.SHA256, CKM.SHA_1, 7),
    mgf: fc.nat({ max: 6 }),
    source: fc.nat({ max: 2 }),
    label: bytes,
  }),
);
const mechanism = fc.record({
  type: fc.constantFrom(
    CKM.ECDH1_DERIVE,
    CKM.ECDH1_COFACTOR_DERIVE,
    CKM.HKDF_DERIVE,
    CKM.HKDF_DATA,
    CKM.AES_ECB_ENCRYPT_DATA,
    CKM.AES_CBC_ENCRYPT_DATA,
    CKM.AES_KEY_WRAP,
    CKM.AES_KEY_WRAP_KWP,
    CKM.AES_CBC,
    CKM.AES_CBC_PAD,
    CKM.RSA_PKCS_OAEP,
    CKM.EC_KEY_PAIR_GEN,
    CKM.EC_EDWARDS_KEY_PAIR_GEN,
  ),
  parameter,
});

const start = async () => {
  const { agent, session } = await startSession();
  const make = (rows: Attribute[]) => agent.call('C_CreateObject', { session, template: rows }) as Promise<number>;
  const yes = (type: number): Attribute => ({ type, value: true, length: 1 });
  const value = Buffer.alloc(32, 5);
  const secret = (keyType: number) => [
    number(CKA.CLASS, CKO.SECRET_KEY),
    number(CKA.KEY_TYPE, keyType),
    { type: CKA.VALUE, value, length: 32 },
    yes(CKA.DERIVE),
    yes(CKA.EXTRACTABLE),
  ];
  const { privateKey, publicKey } = (await agent.call('C_GenerateKeyPair', {
    session,
    mechanism: mech(CKM.EC_KEY_PAIR_GEN),
    publicTemplate: [{ type: CKA.EC_PARAMS, value: curve, length: curve.length }],
    privateTemplate: [],
  })) as { privateKey: number; publicKey: number };
  const keys = [
    await make(secret(CKK.AES)),
    await make(secret(CKK.GENERIC_SECRET)),
    privateKey,
    publicKey,
    0,
    2 ** 31 + 2 ** 30,
  ];
  return { agent, session, keys };
};

/** Destroys the created objects, and checks that their number is as before. */
const checkNothingLeft = async (agent: InProcessAgent, session: number, keys: readonly number[], before: number) => {
  for (const object of (await agent.connection.application?.candidates([])) ?? []) {
    if (!keys.includes(object.handle)) agent.connection.application?.removeObject(object);
  }
  expect(core.memoryStatus().keys).toBe(before);
  await agent.call('C_GetSessionInfo', { session });
};

describe(`the agent answers (seed ${seed})`, () => {
  test('any template of C_CreateObject', async () => {
    const { agent, session, keys } = await start();
    const before = core.memoryStatus().keys;
    await fc.assert(
      fc.asyncProperty(template, async (rows) => {
        const inSession = rows.filter(({ type }) => type !== CKA.TOKEN);
        await agent.rv('C_CreateObject', { session, template: inSession });
      }),
      { numRuns, seed },
    );
    await checkNothingLeft(agent, session, keys, before);
  });
  test('any template and parameter of C_UnwrapKey, C_DeriveKey and C_GenerateKeyPair', async () => {
    const { agent, session, keys } = await start();
    const before = core.memoryStatus().keys;
    const handle = fc.constantFrom(...keys);
    await fc.assert(
      fc.asyncProperty(mechanism, handle, handle, template, bytes, async (how, key, other, rows, wrappedKey) => {
        const asked = rows.filter(({ type }) => type !== CKA.TOKEN);
        await agent.rv('C_UnwrapKey', { session, mechanism: how, unwrappingKey: key, wrappedKey, template: asked });
        await agent.rv('C_DeriveKey', { session, mechanism: how, baseKey: key, template: asked });
        await agent.rv('C_WrapKey', { session, mechanism: how, wrappingKey: key, key: other, wrappedKey: room(64) });
        const halves = { publicTemplate: asked, privateTemplate: asked.slice(2) };
        await agent.rv('C_GenerateKeyPair', { session, mechanism: how, ...halves });
      }),
      { numRuns, seed },
    );
    await checkNothingLeft(agent, session, keys, before);
  });
});
