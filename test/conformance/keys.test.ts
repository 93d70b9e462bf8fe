// PKCS#11 2.40, section 5.14 and its uses in 5.11 and 5.12, through the built library.
import { createPublicKey, verify } from 'node:crypto';
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

const publicKeyInfo = 0x129;
const data = Buffer.from('signed by a key that nobody sees');
const p256 = Buffer.from('06082a8648ce3d030107', 'hex');

/** The public half as others hold it. */
const nodeKey = (object: Buffer) => {
  const [row] = pkcs11.C_GetAttributeValue(session, object, [{ type: publicKeyInfo }]);
  return createPublicKey({ key: row?.value as Buffer, format: 'der', type: 'spki' });
};
const rsaPair = () =>
  pkcs11.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
    [
      { type: pkcs11js.CKA_MODULUS_BITS, value: 2048 },
      { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: Buffer.of(1, 0, 1) },
    ],
    [],
  );
const ecPair = () =>
  pkcs11.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11js.CKM_EC_KEY_PAIR_GEN },
    [{ type: pkcs11js.CKA_EC_PARAMS, value: p256 }],
    [],
  );

describe('5.14: C_GenerateKeyPair', () => {
  test('RSA: the pair signs and verifies', () => {
    const { publicKey, privateKey } = rsaPair();
    const mechanism = { mechanism: pkcs11js.CKM_SHA256_RSA_PKCS };
    pkcs11.C_SignInit(session, mechanism, privateKey);
    const signature = pkcs11.C_Sign(session, data, Buffer.alloc(256));
    expect(signature).toHaveLength(256);
    expect(verify('sha256', data, nodeKey(publicKey), signature)).toBe(true);
    pkcs11.C_VerifyInit(session, mechanism, publicKey);
    expect(pkcs11.C_Verify(session, data, signature)).toBe(true);
  });
  test('PSS: the parameter arrives', () => {
    const { publicKey, privateKey } = rsaPair();
    const parameter = {
      type: pkcs11js.CK_PARAMS_RSA_PSS,
      hashAlg: pkcs11js.CKM_SHA256,
      mgf: pkcs11js.CKG_MGF1_SHA256,
      saltLen: 32,
    };
    pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_RSA_PKCS_PSS, parameter }, privateKey);
    const signature = pkcs11.C_Sign(session, data, Buffer.alloc(256));
    const key = { key: nodeKey(publicKey), padding: 6, saltLength: 32 };
    expect(verify('sha256', data, key, signature)).toBe(true);
  });
  test('EC: whole and in parts, and a buffer that is too small keeps the operation', () => {
    const { publicKey, privateKey } = ecPair();
    const mechanism = { mechanism: pkcs11js.CKM_ECDSA_SHA256 };
    pkcs11.C_SignInit(session, mechanism, privateKey);
    for (const byte of data) pkcs11.C_SignUpdate(session, Buffer.of(byte));
    expect(rvOf(() => pkcs11.C_SignFinal(session, Buffer.alloc(63)))).toBe('CKR_BUFFER_TOO_SMALL');
    const signature = pkcs11.C_SignFinal(session, Buffer.alloc(64));
    expect(verify('sha256', data, { key: nodeKey(publicKey), dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
    signature[0] = (signature[0] ?? 0) ^ 1;
    pkcs11.C_VerifyInit(session, mechanism, publicKey);
    expect(rvOf(() => pkcs11.C_Verify(session, data, signature))).toBe('CKR_SIGNATURE_INVALID');
  });
  test('a private key shows nothing that is secret', () => {
    const { privateKey } = rsaPair();
    for (const type of [pkcs11js.CKA_PRIVATE_EXPONENT, pkcs11js.CKA_PRIME_1, pkcs11js.CKA_COEFFICIENT]) {
      expect(rvOf(() => pkcs11.C_GetAttributeValue(session, privateKey, [{ type }]))).toBe('CKR_ATTRIBUTE_SENSITIVE');
    }
  });
});

describe('5.14: C_WrapKey, C_UnwrapKey and C_DeriveKey', () => {
  const secretKey = (keyType: number, extra: pkcs11js.Template = []): pkcs11js.Template => [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: keyType },
    ...extra,
  ];
  const aes = (extra: pkcs11js.Template): Buffer =>
    pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      ...extra,
    ]);
  const extractable = [
    { type: pkcs11js.CKA_EXTRACTABLE, value: true },
    { type: pkcs11js.CKA_SENSITIVE, value: false },
  ];
  const keyValue = (object: Buffer): Buffer =>
    pkcs11.C_GetAttributeValue(session, object, [{ type: pkcs11js.CKA_VALUE }])[0]?.value as Buffer;

  test('a key goes out wrapped and comes back', () => {
    const wrapping = aes([{ type: pkcs11js.CKA_DECRYPT, value: false }]);
    const key = aes(extractable);
    const mechanism = { mechanism: pkcs11js.CKM_AES_KEY_WRAP };
    expect(rvOf(() => pkcs11.C_WrapKey(session, mechanism, wrapping, key, Buffer.alloc(39)))).toBe(
      'CKR_BUFFER_TOO_SMALL',
    );
    const wrapped = pkcs11.C_WrapKey(session, mechanism, wrapping, key, Buffer.alloc(64));
    expect(wrapped).toHaveLength(40);
    const back = pkcs11.C_UnwrapKey(session, mechanism, wrapping, wrapped, secretKey(pkcs11js.CKK_AES, extractable));
    expect(keyValue(back)).toEqual(keyValue(key));
  });
  test('a key of the token does not leave it wrapped', () => {
    const token = aes([
      { type: pkcs11js.CKA_TOKEN, value: true },
      { type: pkcs11js.CKA_LABEL, value: 'stays' },
      { type: pkcs11js.CKA_EXTRACTABLE, value: true },
    ]);
    const wrapping = aes([{ type: pkcs11js.CKA_DECRYPT, value: false }]);
    const mechanism = { mechanism: pkcs11js.CKM_AES_KEY_WRAP };
    expect(rvOf(() => pkcs11.C_WrapKey(session, mechanism, wrapping, token, Buffer.alloc(64)))).toBe(
      'CKR_KEY_NOT_WRAPPABLE',
    );
  });
  test('both sides of ECDH derive one key', () => {
    const [mine, yours] = [ecPair(), ecPair()];
    const derive = (privateKey: Buffer, publicKey: Buffer): Buffer => {
      const [row] = pkcs11.C_GetAttributeValue(session, publicKey, [{ type: pkcs11js.CKA_EC_POINT }]);
      const parameter = { type: pkcs11js.CK_PARAMS_EC_DH, kdf: pkcs11js.CKD_NULL, publicData: row?.value as Buffer };
      const template = secretKey(pkcs11js.CKK_GENERIC_SECRET, extractable);
      return pkcs11.C_DeriveKey(session, { mechanism: pkcs11js.CKM_ECDH1_DERIVE, parameter }, privateKey, template);
    };
    expect(keyValue(derive(mine.privateKey, yours.publicKey))).toEqual(
      keyValue(derive(yours.privateKey, mine.publicKey)),
    );
  });
});
