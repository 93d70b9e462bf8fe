// Digests, MACs, dual functions and random numbers: PKCS#11 2.40, sections 5.10 to 5.13 and 5.15.
import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { AttributeAnswers, Mechanism } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room } from '../../support/in-process-agent.ts';
import { CKK, CKO } from '../../support/names.ts';
import { mech, startSession } from '../../support/session-calls.ts';
import { places, template } from '../../support/template.ts';

const data = Buffer.from('what do ya want for nothing?');
const plain = (type: number): Mechanism => mech(type);

describe('digests', () => {
  test.each([
    ['sha1', CKM.SHA_1],
    ['sha224', CKM.SHA224],
    ['sha256', CKM.SHA256],
    ['sha384', CKM.SHA384],
    ['sha512', CKM.SHA512],
    ['sha512-224', CKM.SHA512_224],
    ['sha512-256', CKM.SHA512_256],
    ['sha3-224', CKM.SHA3_224],
    ['sha3-256', CKM.SHA3_256],
    ['sha3-384', CKM.SHA3_384],
    ['sha3-512', CKM.SHA3_512],
  ] as const)('%s, whole and in parts', async (name, type) => {
    const { agent, session } = await startSession();
    const expected = createHash(name).update(data).digest();
    await agent.call('C_DigestInit', { session, mechanism: plain(type) });
    const ask = async (capacity: number | null) => {
      const digest = room(capacity);
      return given(digest, await agent.call('C_Digest', { session, data, digest }));
    };
    expect(await ask(null)).toBe(expected.length);
    expect(await ask(expected.length - 1)).toBe(expected.length);
    expect(await ask(expected.length)).toEqual(expected);
    await agent.call('C_DigestInit', { session, mechanism: plain(type) });
    for (const byte of data) await agent.call('C_DigestUpdate', { session, part: Buffer.of(byte) });
    const digest = room(64);
    expect(given(digest, await agent.call('C_DigestFinal', { session, digest }))).toEqual(expected);
    await agent.call('C_DigestInit', { session, mechanism: plain(type) });
    await agent.call('C_DigestUpdate', { session, part: data });
    expect(await agent.rv('C_Digest', { session, data, digest: room(64) })).toBe('CKR_OPERATION_ACTIVE');
    expect(await agent.rv('C_DigestFinal', { session, digest })).toBe('CKR_OPERATION_NOT_INITIALIZED');
    await agent.call('C_DigestInit', { session, mechanism: plain(type) });
    const empty = room(64);
    expect(given(empty, await agent.call('C_DigestFinal', { session, digest: empty }))).toEqual(
      createHash(name).digest(),
    );
  });
});

describe.each(places)('MACs with a %s key', (_where, token) => {
  const start = async (keyType: number, value: Buffer) => {
    const { agent, session } = await startSession();
    const key = await agent.create(
      session,
      [CKA.CLASS, CKO.SECRET_KEY],
      [CKA.KEY_TYPE, keyType],
      [CKA.VALUE, value],
      [CKA.TOKEN, token],
    );
    return { agent, session, key };
  };
  const sign = async (agent: InProcessAgent, session: number, capacity: number | null, input = data) => {
    const signature = room(capacity);
    return given(signature, await agent.call('C_Sign', { session, data: input, signature }));
  };

  test('HMAC agrees with Node, whole and in parts, and verifies', async () => {
    const { agent, session, key } = await start(CKK.GENERIC_SECRET, Buffer.from('Jefe'));
    const expected = createHmac('sha256', 'Jefe').update(data).digest();
    await agent.call('C_SignInit', { session, mechanism: plain(CKM.SHA256_HMAC), key });
    expect(await sign(agent, session, null)).toBe(32);
    expect(await sign(agent, session, 31)).toBe(32);
    expect(await sign(agent, session, 32)).toEqual(expected);
    await agent.call('C_SignInit', { session, mechanism: plain(CKM.SHA256_HMAC), key });
    await agent.call('C_SignUpdate', { session, part: data.subarray(0, 5) });
    await agent.call('C_SignUpdate', { session, part: data.subarray(5) });
    const signature = room(32);
    expect(given(signature, await agent.call('C_SignFinal', { session, signature }))).toEqual(expected);

    const verify = async (bytes: Buffer) => {
      await agent.call('C_VerifyInit', { session, mechanism: plain(CKM.SHA256_HMAC), key });
      return agent.rv('C_Verify', { session, data, signature: bytes });
    };
    expect(await verify(expected)).toBe('CKR_OK');
    expect(await verify(Buffer.alloc(32))).toBe('CKR_SIGNATURE_INVALID');
    expect(await verify(expected.subarray(1))).toBe('CKR_SIGNATURE_LEN_RANGE');
    await agent.call('C_VerifyInit', { session, mechanism: plain(CKM.SHA256_HMAC), key });
    await agent.call('C_VerifyUpdate', { session, part: data });
    expect(await agent.rv('C_VerifyFinal', { session, signature: expected })).toBe('CKR_OK');
    expect(await agent.rv('C_VerifyFinal', { session, signature: expected })).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });

  test.each([
    ['sha1', CKM.SHA_1_HMAC, CKK.SHA_1_HMAC],
    ['sha224', CKM.SHA224_HMAC, CKK.SHA224_HMAC],
    ['sha384', CKM.SHA384_HMAC, CKK.SHA384_HMAC],
    ['sha512', CKM.SHA512_HMAC, CKK.SHA512_HMAC],
    ['sha512-224', CKM.SHA512_224_HMAC, CKK.SHA512_224_HMAC],
    ['sha512-256', CKM.SHA512_256_HMAC, CKK.SHA512_256_HMAC],
    ['sha3-224', CKM.SHA3_224_HMAC, CKK.SHA3_224_HMAC],
    ['sha3-256', CKM.SHA3_256_HMAC, CKK.SHA3_256_HMAC],
    ['sha3-384', CKM.SHA3_384_HMAC, CKK.SHA3_384_HMAC],
    ['sha3-512', CKM.SHA3_512_HMAC, CKK.SHA3_512_HMAC],
  ] as const)('HMAC with %s agrees with Node, under a key of its own type', async (name, type, keyType) => {
    const { agent, session, key } = await start(keyType, Buffer.from('Jefe'));
    const expected = createHmac(name, 'Jefe').update(data).digest();
    await agent.call('C_SignInit', { session, mechanism: plain(type), key });
    expect(await sign(agent, session, expected.length)).toEqual(expected);
    await agent.call('C_VerifyInit', { session, mechanism: plain(type), key });
    expect(await agent.rv('C_Verify', { session, data, signature: expected })).toBe('CKR_OK');
    const other = plain(type === CKM.SHA384_HMAC ? CKM.SHA512_HMAC : CKM.SHA384_HMAC);
    expect(await agent.rv('C_SignInit', { session, mechanism: other, key })).toBe('CKR_KEY_TYPE_INCONSISTENT');
  });

  test('a general MAC is as long as asked', async () => {
    const { agent, session, key } = await start(CKK.GENERIC_SECRET, Buffer.from('Jefe'));
    const general = (value: number): Mechanism => mech(CKM.SHA256_HMAC_GENERAL, { kind: 'ulong', value });
    await agent.call('C_SignInit', { session, mechanism: general(10), key });
    expect(await sign(agent, session, 10)).toEqual(createHmac('sha256', 'Jefe').update(data).digest().subarray(0, 10));
    const mac = createHmac('sha256', 'Jefe').update(data).digest();
    for (const length of [4, 31, 32]) {
      const init = { session, mechanism: general(length), key };
      await agent.call('C_VerifyInit', init);
      expect(await agent.rv('C_Verify', { session, data, signature: mac.subarray(0, length) })).toBe('CKR_OK');
      await agent.call('C_VerifyInit', init);
      await agent.call('C_VerifyUpdate', { session, part: data });
      expect(await agent.rv('C_VerifyFinal', { session, signature: mac.subarray(0, length) })).toBe('CKR_OK');
      await agent.call('C_VerifyInit', init);
      const wrong = Buffer.from(mac.subarray(0, length));
      wrong.writeUInt8(wrong.readUInt8(length - 1) ^ 1, length - 1);
      expect(await agent.rv('C_Verify', { session, data, signature: wrong })).toBe('CKR_SIGNATURE_INVALID');
      await agent.call('C_VerifyInit', init);
      const short = mac.subarray(0, length - 1);
      expect(await agent.rv('C_Verify', { session, data, signature: short })).toBe('CKR_SIGNATURE_LEN_RANGE');
    }
    for (const wrong of [0, 3, 33]) {
      expect(await agent.rv('C_VerifyInit', { session, mechanism: general(wrong), key })).toBe(
        'CKR_MECHANISM_PARAM_INVALID',
      );
    }
    for (const wrong of [0, 33]) {
      expect(await agent.rv('C_SignInit', { session, mechanism: general(wrong), key })).toBe(
        'CKR_MECHANISM_PARAM_INVALID',
      );
    }
  });

  test("AES-CMAC gives RFC 4493's result", async () => {
    const { agent, session, key } = await start(CKK.AES, Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex'));
    await agent.call('C_SignInit', { session, mechanism: plain(CKM.AES_CMAC), key });
    const message = Buffer.from('6bc1bee22e409f96e93d7e117393172a', 'hex');
    expect(await sign(agent, session, 16, message)).toEqual(Buffer.from('070a16b46b4d4144f79bdd9dd04a287c', 'hex'));
    expect(await agent.rv('C_SignInit', { session, mechanism: plain(CKM.SHA256_HMAC), key })).toBe(
      'CKR_KEY_TYPE_INCONSISTENT',
    );
  });
});

describe.each(places)('keys for HMAC and HKDF made in the %s', (_where, token) => {
  test.each([
    ['SHA_1_KEY_GEN', CKM.SHA_1_KEY_GEN, CKK.SHA_1_HMAC, CKM.SHA_1_HMAC],
    ['SHA224_KEY_GEN', CKM.SHA224_KEY_GEN, CKK.SHA224_HMAC, CKM.SHA224_HMAC],
    ['SHA256_KEY_GEN', CKM.SHA256_KEY_GEN, CKK.SHA256_HMAC, CKM.SHA256_HMAC],
    ['SHA384_KEY_GEN', CKM.SHA384_KEY_GEN, CKK.SHA384_HMAC, CKM.SHA384_HMAC],
    ['SHA512_KEY_GEN', CKM.SHA512_KEY_GEN, CKK.SHA512_HMAC, CKM.SHA512_HMAC],
    ['SHA512_224_KEY_GEN', CKM.SHA512_224_KEY_GEN, CKK.SHA512_224_HMAC, CKM.SHA512_224_HMAC],
    ['SHA512_256_KEY_GEN', CKM.SHA512_256_KEY_GEN, CKK.SHA512_256_HMAC, CKM.SHA512_256_HMAC],
    ['SHA3_224_KEY_GEN', CKM.SHA3_224_KEY_GEN, CKK.SHA3_224_HMAC, CKM.SHA3_224_HMAC],
    ['SHA3_256_KEY_GEN', CKM.SHA3_256_KEY_GEN, CKK.SHA3_256_HMAC, CKM.SHA3_256_HMAC],
    ['SHA3_384_KEY_GEN', CKM.SHA3_384_KEY_GEN, CKK.SHA3_384_HMAC, CKM.SHA3_384_HMAC],
    ['SHA3_512_KEY_GEN', CKM.SHA3_512_KEY_GEN, CKK.SHA3_512_HMAC, CKM.SHA3_512_HMAC],
    ['HKDF_KEY_GEN', CKM.HKDF_KEY_GEN, CKK.HKDF, null],
  ] as const)('%s makes a key of its type', async (_name, type, keyType, mac) => {
    const { agent, session } = await startSession();
    const key = await agent.generate(session, type, [CKA.VALUE_LEN, 24], [CKA.TOKEN, token]);
    const query = [CKA.KEY_TYPE, CKA.VALUE_LEN, CKA.KEY_GEN_MECHANISM, CKA.LOCAL].map((each) => ({
      type: each,
      capacity: 64,
    }));
    const { values } = (await agent.call('C_GetAttributeValue', {
      session,
      object: key,
      template: query,
    })) as AttributeAnswers;
    expect(values).toEqual([keyType, 24, type, true]);
    if (mac !== null) expect(await agent.rv('C_SignInit', { session, mechanism: plain(mac), key })).toBe('CKR_OK');
    const wrong = { session, mechanism: plain(type), template: template([CKA.VALUE_LEN, 513], [CKA.TOKEN, token]) };
    expect(await agent.rv('C_GenerateKey', wrong)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  });
});

describe('dual functions', () => {
  test('digest and encrypt, decrypt and digest', async () => {
    const { agent, session } = await startSession();
    const key = await agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32]);
    const block = Buffer.from('0123456789abcdef0123456789ABCDEF');
    const expected = createHash('sha256').update(block).digest();
    const start = async (init: 'C_EncryptInit' | 'C_DecryptInit') => {
      await agent.call('C_DigestInit', { session, mechanism: plain(CKM.SHA256) });
      await agent.call(init, { session, mechanism: plain(CKM.AES_ECB), key });
    };
    const digest = async () => {
      const out = room(32);
      return given(out, await agent.call('C_DigestFinal', { session, digest: out }));
    };
    await start('C_EncryptInit');
    // Too small a buffer feeds neither.
    expect(
      given(room(1), await agent.call('C_DigestEncryptUpdate', { session, part: block, encryptedPart: room(1) })),
    ).toBe(32);
    const out = room(32);
    const sealed = given(out, await agent.call('C_DigestEncryptUpdate', { session, part: block, encryptedPart: out }));
    expect(await digest()).toEqual(expected);
    await agent.call('C_EncryptFinal', { session, lastEncryptedPart: room(16) });
    await start('C_DecryptInit');
    const clear = room(32);
    await agent.call('C_DecryptDigestUpdate', { session, encryptedPart: sealed as Buffer, part: clear });
    expect(clear.space).toEqual(block);
    expect(await digest()).toEqual(expected);
    expect(await agent.rv('C_DigestEncryptUpdate', { session, part: block, encryptedPart: room(32) })).toBe(
      'CKR_OPERATION_NOT_INITIALIZED',
    );
  });
});

describe('random numbers', () => {
  test('come in the length asked, and a seed is taken', async () => {
    const { agent, session } = await startSession();
    const ask = async (length: number) => {
      const random = room(length);
      return given(random, await agent.call('C_GenerateRandom', { session, random }));
    };
    expect(await ask(0)).toHaveLength(0);
    const [one, other] = [(await ask(32)) as Buffer, (await ask(32)) as Buffer];
    expect(one.equals(other)).toBe(false);
    expect(await agent.rv('C_SeedRandom', { session, seed: Buffer.from('seed') })).toBe('CKR_OK');
  });
});
