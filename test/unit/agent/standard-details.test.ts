// Details of the standard that programs and conformance suites check: parameters that are optional
// or rare, the padding of wrapped keys, defaults of attributes, and which refusal comes first
// (PKCS#11 3.1; sections are named with each test).
import { createCipheriv, createDecipheriv, verify as verifyWithNode } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKG, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { MessageParameter } from '../../../provider/schema/types.ts';
import { given, room } from '../../support/in-process-agent.ts';
import {
  aesRows,
  clear,
  extractable,
  iv,
  keyWrap,
  mech,
  noDecrypt,
  onToken,
  p256,
  type Row,
  secret,
  startSession,
} from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const places: readonly (readonly [string, Row])[] = [
  ['session', [CKA.TOKEN, false]],
  ['token', onToken],
];
const edwards: Row = [CKA.EC_PARAMS, Buffer.from('06032b6570', 'hex')];
const edwardsByName = Buffer.concat([Buffer.of(0x13, 12), Buffer.from('edwards25519')]);
const noBytes = new Uint8Array(0);
const generic: Row[] = [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
];
const bytesKind = (bytes: Uint8Array) => ({ kind: 'bytes', bytes }) as const;

describe.each(places)('EdDSA with a pair of the %s (6.3.15)', (_name, place) => {
  const make = async () => {
    const session = await startSession();
    const pair = await session.pair(CKM.EC_EDWARDS_KEY_PAIR_GEN, [edwards], [place]);
    return { ...session, ...pair };
  };

  test('CK_EDDSA_PARAMS without prehash is Ed25519ctx, which is refused: never a plain Ed25519 signature', async () => {
    const { agent, session, publicKey, privateKey } = await make();
    const mechanism = mech(CKM.EDDSA, { kind: 'eddsa', prehash: false, context: noBytes });
    expect(await agent.rv('C_SignInit', { session, mechanism, key: privateKey })).toBe('CKR_MECHANISM_PARAM_INVALID');
    expect(await agent.rv('C_VerifyInit', { session, mechanism, key: publicKey })).toBe('CKR_MECHANISM_PARAM_INVALID');
  });

  test('a message in parts is signed and verified like one in one piece', async () => {
    const { agent, session, publicKey, privateKey, sign, signInParts, node } = await make();
    const message = Buffer.from('a message in parts');
    const signature = await signInParts(mech(CKM.EDDSA), privateKey, message);
    expect(signature).toEqual(await sign(mech(CKM.EDDSA), privateKey, message));
    expect(verifyWithNode(null, message, await node(publicKey), signature)).toBe(true);
    const verifyParts = async (text: Buffer): Promise<string> => {
      await agent.call('C_VerifyInit', { session, mechanism: mech(CKM.EDDSA), key: publicKey });
      for (const byte of text) await agent.call('C_VerifyUpdate', { session, part: Buffer.of(byte) });
      return agent.rv('C_VerifyFinal', { session, signature });
    };
    expect(await verifyParts(message)).toBe('CKR_OK');
    expect(await verifyParts(Buffer.from('a message in parts.'))).toBe('CKR_SIGNATURE_INVALID');
    await agent.call('C_SignInit', { session, mechanism: mech(CKM.EDDSA), key: privateKey });
    const none = room(64);
    expect(given(none, await agent.call('C_SignFinal', { session, signature: none }))).toEqual(
      await sign(mech(CKM.EDDSA), privateKey, noBytes),
    );
  });
});

test('CKM_EDDSA counts the bits of the field: 255 for edwards25519 (6.3.15)', async () => {
  const { agent } = await startSession();
  for (const type of [CKM.EDDSA, CKM.EC_EDWARDS_KEY_PAIR_GEN]) {
    expect(await agent.call('C_GetMechanismInfo', { slot: 0, type })).toMatchObject({ minKeySize: 255 });
  }
});

describe.each(places)('AES-CCM with a key of the %s (6.13.3)', (_name, place) => {
  test.each([4, 6])('a MAC of %i bytes', async (macLength) => {
    const { create, encrypt, decrypt } = await startSession();
    const key = await create(...aesRows, [CKA.VALUE, secret], place);
    const nonce = Buffer.alloc(12, macLength);
    const data = Buffer.from('sixteen bytes of');
    const mechanism = mech(CKM.AES_CCM, { kind: 'ccm', dataLength: data.length, nonce, aad: noBytes, macLength });
    const cipher = createCipheriv('aes-256-ccm', secret, nonce, { authTagLength: macLength });
    const expected = Buffer.concat([cipher.update(data), cipher.final(), cipher.getAuthTag()]);
    expect(await encrypt(mechanism, key, data)).toEqual(expected);
    expect(await decrypt(mechanism, key, expected)).toEqual(data);
    expected[0] = (expected[0] ?? 0) ^ 1;
    await expect(decrypt(mechanism, key, expected)).rejects.toThrow('CKR_ENCRYPTED_DATA_INVALID');
  });
});

describe.each(places)('AES key wrap under a key of the %s (6.16)', (_name, place) => {
  const kek = Buffer.alloc(32, 9);
  const make = async () => {
    const session = await startSession();
    return { ...session, wrapping: await session.create(...aesRows, [CKA.VALUE, kek], noDecrypt, place) };
  };
  const openWith = (name: string, initial: Buffer, wrapped: Buffer): Buffer => {
    const node = createDecipheriv(name, kek, initial);
    return Buffer.concat([node.update(wrapped), node.final()]);
  };

  test.each([
    ['AES_KEY_WRAP', CKM.AES_KEY_WRAP, 'id-aes256-wrap', 8],
    ['AES_KEY_WRAP_KWP', CKM.AES_KEY_WRAP_KWP, 'id-aes256-wrap-pad', 4],
  ] as const)('%s takes an initial value of its own', async (_mechanism, type, name, length) => {
    const { create, wrapping, wrap, unwrap, value } = await make();
    const own = Buffer.alloc(length, 0x5a);
    const key = await create(...aesRows, [CKA.VALUE, secret], ...clear);
    const wrapped = await wrap(mech(type, bytesKind(own)), wrapping, key);
    expect(openWith(name, own, wrapped)).toEqual(secret);
    expect(await value(await unwrap(mech(type, bytesKind(own)), wrapping, wrapped, ...aesRows, ...clear))).toEqual(
      secret,
    );
    await expect(unwrap(mech(type), wrapping, wrapped, ...aesRows, ...clear)).rejects.toThrow(
      'CKR_WRAPPED_KEY_INVALID',
    );
    for (const wrong of [length - 1, length + 1]) {
      const bad = mech(type, bytesKind(Buffer.alloc(wrong)));
      await expect(wrap(bad, wrapping, key)).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    }
  });

  test.each([1, 15, 17, 20, 23])('AES_KEY_WRAP pads a key of %i bytes with zeros', async (bytes) => {
    const { create, wrapping, wrap, unwrap, value } = await make();
    const own = Buffer.alloc(bytes, 0xc3);
    const wrapped = await wrap(keyWrap, wrapping, await create(...generic, [CKA.VALUE, own], ...clear));
    const whole = Math.max(16, Math.ceil(bytes / 8) * 8);
    expect(wrapped.length).toBe(whole + 8);
    const padded = Buffer.concat([own, Buffer.alloc(whole - bytes)]);
    expect(openWith('id-aes256-wrap', Buffer.alloc(8, 0xa6), wrapped)).toEqual(padded);
    const back = await unwrap(keyWrap, wrapping, wrapped, ...generic, [CKA.VALUE_LEN, bytes], ...clear);
    expect(await value(back)).toEqual(own);
    // Without CKA_VALUE_LEN the length of the key is unknown.
    expect(await value(await unwrap(keyWrap, wrapping, wrapped, ...generic, ...clear))).toEqual(padded);
  });

  test('AES_KEY_WRAP never cuts bytes of the key itself', async () => {
    const { create, wrapping, wrap, unwrap } = await make();
    const wrapped = await wrap(keyWrap, wrapping, await create(...generic, [CKA.VALUE, secret], ...clear));
    const cut = unwrap(keyWrap, wrapping, wrapped, ...generic, [CKA.VALUE_LEN, 31], ...clear);
    await expect(cut).rejects.toThrow('CKR_WRAPPED_KEY_INVALID');
    const far = unwrap(keyWrap, wrapping, wrapped, ...generic, [CKA.VALUE_LEN, 16], ...clear);
    await expect(far).rejects.toThrow('CKR_TEMPLATE_INCONSISTENT');
  });

  test('AES_KEY_WRAP wraps private keys of any length', async () => {
    const { pair, wrapping, wrap, unwrap, read } = await make();
    const rows: Row[] = [
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC],
    ];
    const { privateKey } = await pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], clear);
    const back = await unwrap(keyWrap, wrapping, await wrap(keyWrap, wrapping, privateKey), ...rows);
    expect(await read(back, CKA.PUBLIC_KEY_INFO)).toEqual(await read(privateKey, CKA.PUBLIC_KEY_INFO));
  });

  test.each([1, 17, 24])('AES_CBC pads a key of %i bytes with zeros (6.11.5)', async (bytes) => {
    const { create, wrapping, wrap, unwrap, value } = await make();
    const cbc = mech(CKM.AES_CBC, bytesKind(iv));
    const own = Buffer.alloc(bytes, 0xc3);
    const wrapped = await wrap(cbc, wrapping, await create(...generic, [CKA.VALUE, own], ...clear));
    const node = createDecipheriv('aes-256-cbc', kek, iv).setAutoPadding(false);
    const plain = Buffer.concat([node.update(wrapped), node.final()]);
    expect(plain).toEqual(Buffer.concat([own, Buffer.alloc(Math.ceil(bytes / 16) * 16 - bytes)]));
    const back = await unwrap(cbc, wrapping, wrapped, ...generic, [CKA.VALUE_LEN, bytes], ...clear);
    expect(await value(back)).toEqual(own);
  });
});

describe.each(places)('attributes of an object of the %s', (_name, place) => {
  test('C_SetAttributeValue refuses a read-only attribute, whatever its value (5.7.6)', async () => {
    const { agent, session, generate, read } = await startSession();
    const key = await generate(place);
    const readOnly = [CKA.CLASS, CKA.KEY_TYPE, CKA.LOCAL, CKA.TOKEN, CKA.ALWAYS_SENSITIVE, CKA.KEY_GEN_MECHANISM];
    const present = await read(key, ...readOnly);
    for (const [i, type] of readOnly.entries()) {
      const row: Row = [type, present[i] as Row[1]];
      const asked = { session, object: key, template: template(row) };
      expect(await agent.rv('C_SetAttributeValue', asked), `0x${type.toString(16)}`).toBe('CKR_ATTRIBUTE_READ_ONLY');
    }
    // What may go one way may also stay.
    const same = template([CKA.SENSITIVE, true], [CKA.EXTRACTABLE, false]);
    expect(await agent.rv('C_SetAttributeValue', { session, object: key, template: same })).toBe('CKR_OK');
  });

  test('both halves of a pair name their curve alike (6.3.3)', async () => {
    const { pair, bytes } = await startSession();
    for (const named of [edwardsByName, edwards[1] as Buffer]) {
      const { publicKey, privateKey } = await pair(CKM.EC_EDWARDS_KEY_PAIR_GEN, [[CKA.EC_PARAMS, named]], [place]);
      expect(await bytes(publicKey, CKA.EC_PARAMS)).toEqual(named);
      expect(await bytes(privateKey, CKA.EC_PARAMS)).toEqual(named);
    }
  });

  test('a pair that is asked to wrap or unwrap does not decrypt by default, and wraps', async () => {
    const { pair, generate, wrap, read } = await startSession();
    const rsa: Row = [CKA.MODULUS_BITS, 2048];
    const oaep = mech(CKM.RSA_PKCS_OAEP, {
      kind: 'oaep',
      hash: CKM.SHA256,
      mgf: CKG.MGF1_SHA256,
      source: 1,
      label: noBytes,
    });
    for (const [publicRows, privateRows] of [
      [[], [[CKA.UNWRAP, true]]],
      [[[CKA.WRAP, true]], []],
    ] as const satisfies readonly (readonly [Row[], Row[]])[]) {
      const all: Row[] = [...privateRows, place];
      const { publicKey, privateKey } = await pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [rsa, place, ...publicRows], all);
      expect(await read(privateKey, CKA.DECRYPT, CKA.UNWRAP)).toEqual([false, true]);
      expect((await wrap(oaep, publicKey, await generate(extractable))).length).toBe(256);
    }
    const { privateKey } = await pair(CKM.RSA_PKCS_KEY_PAIR_GEN, [rsa], [place]);
    expect(await read(privateKey, CKA.DECRYPT, CKA.UNWRAP, CKA.SIGN)).toEqual([true, true, true]);
  });

  test('a secret key that is asked to wrap or unwrap does not decrypt by default, and wraps', async () => {
    const { generate, wrap, read } = await startSession();
    for (const use of [CKA.WRAP, CKA.UNWRAP]) {
      const key = await generate([use, true], place);
      expect(await read(key, CKA.DECRYPT, CKA.WRAP, CKA.UNWRAP)).toEqual([false, true, true]);
      expect((await wrap(keyWrap, key, await generate(extractable))).length).toBe(40);
    }
    const both = await generate([CKA.WRAP, true], [CKA.DECRYPT, true], place);
    expect(await read(both, CKA.DECRYPT)).toEqual([true]);
    expect(await read(await generate(place), CKA.DECRYPT, CKA.WRAP)).toEqual([true, true]);
  });
});

test('a message function without its Init reports that first, whatever its parameter (5.9.2, 5.15.2)', async () => {
  const { agent, session, generate } = await startSession();
  const parameter: MessageParameter | null = null;
  const associatedData = noBytes;
  const sealing = { session, parameter, associatedData, plaintext: secret, ciphertext: room(64) };
  const opening = { session, parameter, associatedData, ciphertext: secret, plaintext: room(64) };
  const rvs = async () => [
    await agent.rv('C_EncryptMessage', sealing),
    await agent.rv('C_EncryptMessageBegin', { session, parameter, associatedData }),
    await agent.rv('C_DecryptMessage', opening),
    await agent.rv('C_DecryptMessageBegin', { session, parameter, associatedData }),
  ];
  expect(new Set(await rvs())).toEqual(new Set(['CKR_OPERATION_NOT_INITIALIZED']));
  const key = await generate();
  await agent.call('C_MessageEncryptInit', { session, mechanism: mech(CKM.AES_GCM), key });
  await agent.call('C_MessageDecryptInit', { session, mechanism: mech(CKM.AES_GCM), key });
  expect(new Set(await rvs())).toEqual(new Set(['CKR_MECHANISM_PARAM_INVALID']));
});
