// PKCS#11 2.40 by chapter through the built library: what the unit tests cannot see, namely that
// library, wire and agent agree, byte for byte and length for length.
import { createHash, createHmac } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';

let host: Pkcs11Host;
let pkcs11: pkcs11js.PKCS11;
let session: Buffer;
beforeAll(async () => {
  host = await startHost();
  ({ pkcs11 } = host);
  session = host.open();
});
afterAll(() => host?.stop());

const aesKey = (value: Buffer, extra: pkcs11js.Template = []): Buffer =>
  pkcs11.C_CreateObject(session, [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
    { type: pkcs11js.CKA_VALUE, value },
    ...extra,
  ]);
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const value = hex('2b7e151628aed2a6abf7158809cf4f3c');
const plain = hex('6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51');
const iv = hex('000102030405060708090a0b0c0d0e0f');

describe('5.4 and 5.5: general purpose, slots and tokens', () => {
  test('the token is the application, initialized and writable', () => {
    const info = pkcs11.C_GetTokenInfo(host.slot);
    expect(info.label.trim()).toBe('conformance');
    expect(info.flags & pkcs11js.CKF_WRITE_PROTECTED).toBe(0);
    const wanted =
      pkcs11js.CKF_RNG |
      pkcs11js.CKF_LOGIN_REQUIRED |
      pkcs11js.CKF_USER_PIN_INITIALIZED |
      pkcs11js.CKF_TOKEN_INITIALIZED;
    expect(info.flags & wanted).toBe(wanted);
  });
  test('mechanisms are listed and described', () => {
    const list = pkcs11.C_GetMechanismList(host.slot);
    expect(list).toEqual(
      expect.arrayContaining([pkcs11js.CKM_AES_KEY_GEN, pkcs11js.CKM_AES_CBC, pkcs11js.CKM_AES_CBC_PAD]),
    );
    expect(pkcs11.C_GetMechanismInfo(host.slot, pkcs11js.CKM_AES_CBC)).toMatchObject({
      minKeySize: 16,
      maxKeySize: 32,
    });
    expect(rvOf(() => pkcs11.C_GetMechanismInfo(host.slot, pkcs11js.CKM_DES3_CBC))).toBe('CKR_MECHANISM_INVALID');
  });
  test('functions that are not carried say so', () => {
    expect(rvOf(() => pkcs11.C_InitPIN(session, '1234'))).toBe('CKR_FUNCTION_NOT_SUPPORTED');
    expect(rvOf(() => pkcs11.C_SetPIN(session, '1234', '5678'))).toBe('CKR_FUNCTION_NOT_SUPPORTED');
  });
});

describe('5.6: sessions', () => {
  test('state and flags', () => {
    const readOnly = host.open(false);
    expect(pkcs11.C_GetSessionInfo(session)).toMatchObject({ state: 3, flags: 6 });
    expect(pkcs11.C_GetSessionInfo(readOnly)).toMatchObject({ state: 1, flags: 4 });
    pkcs11.C_CloseSession(readOnly);
    expect(rvOf(() => pkcs11.C_GetSessionInfo(readOnly))).toBe('CKR_SESSION_HANDLE_INVALID');
    expect(rvOf(() => pkcs11.C_Login(session, pkcs11js.CKU_USER, ''))).toBe('CKR_USER_ALREADY_LOGGED_IN');
  });
});

describe('5.8 and 5.9: encryption and decryption', () => {
  const cases: [string, pkcs11js.Mechanism, Buffer][] = [
    [
      'AES_ECB',
      { mechanism: pkcs11js.CKM_AES_ECB },
      hex('3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf'),
    ],
    [
      'AES_CBC',
      { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv },
      hex('7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2'),
    ],
  ];
  test.each(cases)(
    '%s gives the published result, whole and in parts, in the session and on the token',
    (name, mechanism, sealed) => {
      const onToken = [
        { type: pkcs11js.CKA_TOKEN, value: true },
        { type: pkcs11js.CKA_LABEL, value: `surface ${name}` },
      ];
      for (const key of [aesKey(value), aesKey(value, onToken)]) {
        pkcs11.C_EncryptInit(session, mechanism, key);
        expect(pkcs11.C_Encrypt(session, plain, Buffer.alloc(32))).toEqual(sealed);
        pkcs11.C_DecryptInit(session, mechanism, key);
        const parts = [
          pkcs11.C_DecryptUpdate(session, sealed.subarray(0, 20), Buffer.alloc(48)),
          pkcs11.C_DecryptUpdate(session, sealed.subarray(20), Buffer.alloc(48)),
          pkcs11.C_DecryptFinal(session, Buffer.alloc(48)),
        ];
        expect(Buffer.concat(parts)).toEqual(plain);
      }
    },
  );
  test('a buffer that is too small keeps the operation', () => {
    const key = aesKey(value);
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_ECB }, key);
    expect(rvOf(() => pkcs11.C_Encrypt(session, plain, Buffer.alloc(31)))).toBe('CKR_BUFFER_TOO_SMALL');
    expect(pkcs11.C_Encrypt(session, plain, Buffer.alloc(32))).toHaveLength(32);
    expect(rvOf(() => pkcs11.C_Encrypt(session, plain, Buffer.alloc(32)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  });
  test('GCM authenticates', () => {
    const key = aesKey(value);
    const parameter = {
      type: pkcs11js.CK_PARAMS_AES_GCM,
      iv: iv.subarray(0, 12),
      aad: Buffer.from('aad'),
      ivBits: 96,
      tagBits: 128,
    };
    const mechanism = { mechanism: pkcs11js.CKM_AES_GCM, parameter };
    pkcs11.C_EncryptInit(session, mechanism, key);
    const sealed = pkcs11.C_Encrypt(session, Buffer.from('secret'), Buffer.alloc(64));
    expect(sealed).toHaveLength(22);
    pkcs11.C_DecryptInit(session, mechanism, key);
    expect(String(pkcs11.C_Decrypt(session, sealed, Buffer.alloc(64)))).toBe('secret');
    sealed[0] = (sealed[0] ?? 0) ^ 1;
    pkcs11.C_DecryptInit(session, mechanism, key);
    expect(rvOf(() => pkcs11.C_Decrypt(session, sealed, Buffer.alloc(64)))).toBe('CKR_ENCRYPTED_DATA_INVALID');
  });
  test('a long message travels whole', () => {
    const key = aesKey(value);
    const long = Buffer.alloc(500_000, 0x77);
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv }, key);
    const sealed = pkcs11.C_Encrypt(session, long, Buffer.alloc(long.length));
    pkcs11.C_DecryptInit(session, { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv }, key);
    expect(pkcs11.C_Decrypt(session, sealed, Buffer.alloc(long.length)).equals(long)).toBe(true);
  });
});

describe('5.10 to 5.12: digests and MACs', () => {
  const data = Buffer.from('abc');
  test('SHA-256, whole and in parts', () => {
    const expected = createHash('sha256').update(data).digest();
    pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    expect(pkcs11.C_Digest(session, data, Buffer.alloc(32))).toEqual(expected);
    pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
    for (const byte of data) pkcs11.C_DigestUpdate(session, Buffer.of(byte));
    expect(pkcs11.C_DigestFinal(session, Buffer.alloc(32))).toEqual(expected);
  });
  test('HMAC-SHA-256 signs and verifies', () => {
    const key = pkcs11.C_CreateObject(session, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
      { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_GENERIC_SECRET },
      { type: pkcs11js.CKA_VALUE, value: Buffer.from('Jefe') },
    ]);
    const expected = createHmac('sha256', 'Jefe').update(data).digest();
    pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_HMAC }, key);
    expect(pkcs11.C_Sign(session, data, Buffer.alloc(32))).toEqual(expected);
    pkcs11.C_VerifyInit(session, { mechanism: pkcs11js.CKM_SHA256_HMAC }, key);
    expect(pkcs11.C_Verify(session, data, expected)).toBe(true);
    pkcs11.C_VerifyInit(session, { mechanism: pkcs11js.CKM_SHA256_HMAC }, key);
    expect(rvOf(() => pkcs11.C_Verify(session, data, Buffer.alloc(32)))).toBe('CKR_SIGNATURE_INVALID');
  });
});

describe('5.7: objects', () => {
  test('are found by attributes, in batches, without repetition', () => {
    const id = Buffer.from('surface');
    const keys = Array.from({ length: 25 }, () => aesKey(value, [{ type: pkcs11js.CKA_ID, value: id }]));
    pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_ID, value: id }]);
    const found: Buffer[] = [];
    for (;;) {
      const some = pkcs11.C_FindObjects(session, 10);
      if (some.length === 0) break;
      found.push(...some);
    }
    pkcs11.C_FindObjectsFinal(session);
    expect(found).toEqual(keys);
  });
  test('a readable value is read', () => {
    const key = aesKey(value, [
      { type: pkcs11js.CKA_SENSITIVE, value: false },
      { type: pkcs11js.CKA_EXTRACTABLE, value: true },
    ]);
    const [row] = pkcs11.C_GetAttributeValue(session, key, [{ type: pkcs11js.CKA_VALUE }]);
    expect(row?.value).toEqual(value);
  });
  test('a copy takes a label', () => {
    const copy = pkcs11.C_CopyObject(session, aesKey(value), [{ type: pkcs11js.CKA_LABEL, value: 'copy' }]);
    const [row] = pkcs11.C_GetAttributeValue(session, copy, [{ type: pkcs11js.CKA_LABEL }]);
    expect(String(row?.value)).toBe('copy');
  });
});

describe('5.15: random numbers', () => {
  test('fill what was asked', () => {
    const [one, other] = [Buffer.alloc(32), Buffer.alloc(32)];
    pkcs11.C_GenerateRandom(session, one);
    pkcs11.C_GenerateRandom(session, other);
    expect(one.equals(other)).toBe(false);
    pkcs11.C_SeedRandom(session, Buffer.from('seed'));
  });
});
