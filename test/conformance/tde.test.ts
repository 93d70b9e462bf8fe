// What a database does with the library, end to end: a master key by its label, data keys under it,
// and what must not happen.
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findAll } from '../support/graphene-calls.ts';
import { type Pkcs11Host, rvOf, startHost } from '../support/pkcs11-host.ts';

let host: Pkcs11Host;
let session: Buffer;
beforeAll(async () => {
  host = await startHost();
  session = host.open();
});
afterAll(() => host?.stop());

const label = 'ORACLE.TDE.HSM.MK.069F37D091A73D4F13BF2CE921EB2CF080';
const masterKey = (name: string, extra: pkcs11js.Template = []): pkcs11js.Template => [
  { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
  { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
  { type: pkcs11js.CKA_TOKEN, value: true },
  { type: pkcs11js.CKA_PRIVATE, value: true },
  { type: pkcs11js.CKA_LABEL, value: name },
  { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
  { type: pkcs11js.CKA_SENSITIVE, value: true },
  { type: pkcs11js.CKA_EXTRACTABLE, value: false },
  { type: pkcs11js.CKA_MODIFIABLE, value: false },
  { type: pkcs11js.CKA_ENCRYPT, value: true },
  { type: pkcs11js.CKA_DECRYPT, value: true },
  { type: pkcs11js.CKA_WRAP, value: true },
  { type: pkcs11js.CKA_UNWRAP, value: true },
  ...extra,
];
const generate = (name: string): Buffer =>
  host.pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, masterKey(name));
const find = (name: string): Buffer[] => {
  const found = findAll(host.pkcs11, session, [{ type: pkcs11js.CKA_LABEL, value: name }]);
  return found;
};
const cbc = (iv: Buffer): pkcs11js.Mechanism => ({ mechanism: pkcs11js.CKM_AES_CBC, parameter: iv });

describe('a master key', () => {
  test('is made, found by its label, and wraps data keys as raw CBC', () => {
    const { pkcs11 } = host;
    const key = generate(label);
    expect(find(label)).toEqual([key]);
    for (const length of [16, 32, 48, 64]) {
      const [iv, dataKey] = [Buffer.alloc(16, length), Buffer.alloc(length, 0x5a)];
      pkcs11.C_EncryptInit(session, cbc(iv), key);
      const wrapped = pkcs11.C_Encrypt(session, dataKey, Buffer.alloc(length));
      expect(wrapped).toHaveLength(length);
      pkcs11.C_DecryptInit(session, cbc(iv), key);
      expect(pkcs11.C_Decrypt(session, wrapped, Buffer.alloc(length))).toEqual(dataKey);
    }
  });

  test('tells what a database asks back, and never its value', () => {
    const [key] = find(label);
    const asked = [
      pkcs11js.CKA_SENSITIVE,
      pkcs11js.CKA_EXTRACTABLE,
      pkcs11js.CKA_WRAP,
      pkcs11js.CKA_UNWRAP,
      pkcs11js.CKA_ENCRYPT,
      pkcs11js.CKA_DECRYPT,
      pkcs11js.CKA_ALWAYS_SENSITIVE,
      pkcs11js.CKA_NEVER_EXTRACTABLE,
    ];
    const answers = host.pkcs11.C_GetAttributeValue(
      session,
      key as Buffer,
      asked.map((type) => ({ type })),
    );
    expect(answers.map(({ value }) => (value as Buffer)[0])).toEqual([1, 0, 1, 1, 1, 1, 1, 1]);
    expect(rvOf(() => host.pkcs11.C_GetAttributeValue(session, key as Buffer, [{ type: pkcs11js.CKA_VALUE }]))).toBe(
      'CKR_ATTRIBUTE_SENSITIVE',
    );
  });

  test('is not made twice under one label', () => {
    expect(rvOf(() => generate(label))).toBe('CKR_TEMPLATE_INCONSISTENT');
    expect(find(label)).toHaveLength(1);
  });

  test('is not there under another case of its label', () => {
    expect(find(label.toLowerCase())).toEqual([]);
  });

  test('stays fixed when it was made so', () => {
    const [key] = find(label);
    const change = [{ type: pkcs11js.CKA_LABEL, value: 'other' }];
    expect(rvOf(() => host.pkcs11.C_SetAttributeValue(session, key as Buffer, change))).toBe('CKR_ACTION_PROHIBITED');
  });

  test('that is destroyed is gone from every session at once', () => {
    const { pkcs11 } = host;
    const key = generate(`${label}00`);
    const other = host.open();
    pkcs11.C_EncryptInit(other, cbc(Buffer.alloc(16)), key);
    pkcs11.C_DestroyObject(session, key);
    expect(rvOf(() => pkcs11.C_Encrypt(other, Buffer.alloc(16), Buffer.alloc(16)))).toBe('CKR_KEY_HANDLE_INVALID');
    expect(rvOf(() => pkcs11.C_EncryptInit(other, cbc(Buffer.alloc(16)), key))).toBe('CKR_KEY_HANDLE_INVALID');
    expect(rvOf(() => pkcs11.C_DestroyObject(session, key))).toBe('CKR_OBJECT_HANDLE_INVALID');
    expect(find(`${label}00`)).toEqual([]);
  });
});

describe('metadata', () => {
  test('a data object is stored, found by its label and read back', () => {
    const { pkcs11 } = host;
    const name = `ORACLE.SECURITY.KM.ENCRYPTION.${Buffer.from('069F37D091A73D4F13BF2CE921EB2CF080').toString('hex').toUpperCase()}`;
    const object = pkcs11.C_CreateObject(session, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_DATA },
      { type: pkcs11js.CKA_TOKEN, value: true },
      { type: pkcs11js.CKA_PRIVATE, value: true },
      { type: pkcs11js.CKA_LABEL, value: name },
      { type: pkcs11js.CKA_VALUE, value: Buffer.from('metadata') },
    ]);
    expect(find(name)).toEqual([object]);
    const [row] = pkcs11.C_GetAttributeValue(session, object, [{ type: pkcs11js.CKA_VALUE }]);
    expect(String(row?.value)).toBe('metadata');
    pkcs11.C_DestroyObject(session, object);
    expect(find(name)).toEqual([]);
  });
});
