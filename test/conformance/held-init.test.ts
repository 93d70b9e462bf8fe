// A database uses one key for message after message; from the second one on the library holds each Init back until its
// operation follows (PROTOCOL.md, "Held Init"). Whatever a caller does then must give what it gives without that.
import { createCipheriv } from 'node:crypto';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';

let host: Pkcs11Host;
let pkcs11: pkcs11js.PKCS11;
let session: Buffer;
let key: Buffer;
beforeAll(async () => {
  host = await startHost();
  ({ pkcs11 } = host);
  session = host.open();
});
afterAll(() => host?.stop());

const value = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
const data = Buffer.alloc(48, 7);
const cbc = (filling = 0): pkcs11js.Mechanism => ({
  mechanism: pkcs11js.CKM_AES_CBC,
  parameter: Buffer.alloc(16, filling),
});
const expected = (filling: number): Buffer => {
  const cipher = createCipheriv('aes-128-cbc', value, Buffer.alloc(16, filling)).setAutoPadding(false);
  return Buffer.concat([cipher.update(data), cipher.final()]);
};
const makeKey = (isPrivate = false): Buffer =>
  pkcs11.C_CreateObject(session, [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
    { type: pkcs11js.CKA_PRIVATE, value: isPrivate },
    { type: pkcs11js.CKA_ENCRYPT, value: true },
    { type: pkcs11js.CKA_DECRYPT, value: true },
    { type: pkcs11js.CKA_VALUE, value },
  ]);
const encrypt = (filling: number, target = session): Buffer => {
  pkcs11.C_EncryptInit(target, cbc(filling), key);
  return pkcs11.C_Encrypt(target, data, Buffer.alloc(64));
};

beforeEach(() => {
  key = makeKey();
  encrypt(0);
});

test('every message has its own IV', () => {
  for (const filling of [1, 2, 1]) expect(encrypt(filling)).toEqual(expected(filling));
});

test('two Inits in a row are one too many, and the first one counts', () => {
  pkcs11.C_EncryptInit(session, cbc(1), key);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(2), key))).toBe('CKR_OPERATION_ACTIVE');
  expect(pkcs11.C_Encrypt(session, data, Buffer.alloc(64))).toEqual(expected(1));
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
});

test('a destroyed key is refused by the next Init', () => {
  pkcs11.C_DestroyObject(session, key);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(), key))).toBe('CKR_KEY_HANDLE_INVALID');
});

test('a key destroyed between Init and operation ends the operation, also from another session', () => {
  const other = host.open();
  pkcs11.C_EncryptInit(session, cbc(), key);
  pkcs11.C_DestroyObject(other, key);
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).not.toBe('CKR_OK');
  pkcs11.C_CloseSession(other);
});

test('a key that loses its permission is refused by the next Init', () => {
  pkcs11.C_SetAttributeValue(session, key, [{ type: pkcs11js.CKA_ENCRYPT, value: false }]);
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(), key))).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
});

test('an operation in parts goes on where its Init left off', () => {
  pkcs11.C_EncryptInit(session, cbc(5), key);
  const first = pkcs11.C_EncryptUpdate(session, data.subarray(0, 16), Buffer.alloc(32));
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(5), key))).toBe('CKR_OPERATION_ACTIVE');
  const second = pkcs11.C_EncryptUpdate(session, data.subarray(16), Buffer.alloc(48));
  pkcs11.C_EncryptFinal(session, Buffer.alloc(16));
  expect(Buffer.concat([first, second])).toEqual(expected(5));
  expect(encrypt(6)).toEqual(expected(6));
});

test('encryption and decryption in one session do not disturb each other', () => {
  for (const filling of [1, 2, 3]) {
    pkcs11.C_EncryptInit(session, cbc(filling), key);
    pkcs11.C_DecryptInit(session, cbc(filling), key);
    const sealed = pkcs11.C_Encrypt(session, data, Buffer.alloc(64));
    expect(pkcs11.C_Decrypt(session, sealed, Buffer.alloc(64))).toEqual(data);
  }
});

test('a session that is closed takes its Init along', () => {
  const other = host.open();
  encrypt(1, other);
  pkcs11.C_EncryptInit(other, cbc(1), key);
  pkcs11.C_CloseSession(other);
  expect(rvOf(() => pkcs11.C_Encrypt(other, data, Buffer.alloc(64)))).toBe('CKR_SESSION_HANDLE_INVALID');
  expect(encrypt(2)).toEqual(expected(2));
});

// Last, because it logs out.
test('C_Logout ends what runs on a private key, and the next Init finds none', () => {
  key = makeKey(true);
  encrypt(1);
  pkcs11.C_EncryptInit(session, cbc(1), key);
  pkcs11.C_Logout(session);
  expect(rvOf(() => pkcs11.C_Encrypt(session, data, Buffer.alloc(64)))).toBe('CKR_OPERATION_NOT_INITIALIZED');
  expect(rvOf(() => pkcs11.C_EncryptInit(session, cbc(1), key))).toBe('CKR_KEY_HANDLE_INVALID');
});
