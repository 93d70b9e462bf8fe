// Templates: PKCS#11 2.40, section 4.1.1 and the footnotes of its table 10.
import { describe, expect, test } from 'vitest';
import type { Origin } from '../../../provider/agent/objects/attribute-rules.ts';
import { changes, newObject } from '../../../provider/agent/objects/template.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { returnValueName } from '../../../provider/schema/return-values.ts';
import { type Attribute, type AttributeValue, CryptokiError } from '../../../provider/schema/types.ts';
import { template } from '../../support/template.ts';

const generate: Origin = { how: 'generate', mechanism: CKM.AES_KEY_GEN, keyType: CKK.AES, objectClass: CKO.SECRET_KEY };
const create: Origin = { how: 'create' };
const aes = [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.AES],
  [CKA.VALUE, Buffer.alloc(32)],
] as const;

const outcome = (work: () => unknown): string => {
  try {
    work();
    return 'CKR_OK';
  } catch (error) {
    if (error instanceof CryptokiError) return returnValueName(error.rv);
    throw error;
  }
};
const generating = (...rows: (readonly [number, AttributeValue])[]): string =>
  outcome(() => newObject(template([CKA.VALUE_LEN, 32], ...rows), generate, true));
const creating = (...rows: (readonly [number, AttributeValue])[]): string =>
  outcome(() => newObject(template(...rows), create, true));

describe('a generated key', () => {
  const { attributes, length } = newObject(template([CKA.VALUE_LEN, 32]), generate, true);
  test('is sensitive and not extractable by default, and both permanently', () => {
    expect(attributes.get(CKA.SENSITIVE)).toBe(true);
    expect(attributes.get(CKA.EXTRACTABLE)).toBe(false);
    expect(attributes.get(CKA.ALWAYS_SENSITIVE)).toBe(true);
    expect(attributes.get(CKA.NEVER_EXTRACTABLE)).toBe(true);
  });
  test('is local, and knows its mechanism, class, type and length', () => {
    expect(attributes.get(CKA.LOCAL)).toBe(true);
    expect(attributes.get(CKA.KEY_GEN_MECHANISM)).toBe(CKM.AES_KEY_GEN);
    expect(attributes.get(CKA.CLASS)).toBe(CKO.SECRET_KEY);
    expect(attributes.get(CKA.KEY_TYPE)).toBe(CKK.AES);
    expect(length).toBe(32);
  });
  test('that may be extracted was not always sensitive', () => {
    const rows = template([CKA.VALUE_LEN, 16], [CKA.SENSITIVE, false], [CKA.EXTRACTABLE, true]);
    const made = newObject(rows, generate, true).attributes;
    expect(made.get(CKA.ALWAYS_SENSITIVE)).toBe(false);
    expect(made.get(CKA.NEVER_EXTRACTABLE)).toBe(false);
  });
  test('is private when on the token, and in a session when a user is logged in', () => {
    const isPrivate = (token: boolean, loggedIn: boolean) =>
      newObject(template([CKA.VALUE_LEN, 16], [CKA.TOKEN, token]), generate, loggedIn).attributes.get(CKA.PRIVATE);
    expect([isPrivate(true, false), isPrivate(false, true), isPrivate(false, false)]).toEqual([true, true, false]);
  });
  test('needs a length', () => {
    expect(outcome(() => newObject([], generate, true))).toBe('CKR_TEMPLATE_INCOMPLETE');
  });
  test.each([0, 1, 15, 17, 31, 33, 64, 2 ** 40])('of %i bytes is refused', (bytes) => {
    expect(outcome(() => newObject(template([CKA.VALUE_LEN, bytes]), generate, true))).toBe(
      'CKR_ATTRIBUTE_VALUE_INVALID',
    );
  });
  test.each<[string, number, AttributeValue, string]>([
    ['VALUE', CKA.VALUE, Buffer.alloc(32), 'CKR_TEMPLATE_INCONSISTENT'],
    ['another class', CKA.CLASS, CKO.DATA, 'CKR_TEMPLATE_INCONSISTENT'],
    ['another key type', CKA.KEY_TYPE, CKK.GENERIC_SECRET, 'CKR_TEMPLATE_INCONSISTENT'],
    ['LOCAL', CKA.LOCAL, true, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['ALWAYS_SENSITIVE', CKA.ALWAYS_SENSITIVE, true, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['NEVER_EXTRACTABLE', CKA.NEVER_EXTRACTABLE, true, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['KEY_GEN_MECHANISM', CKA.KEY_GEN_MECHANISM, CKM.AES_KEY_GEN, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['UNIQUE_ID', CKA.UNIQUE_ID, Buffer.from('x'), 'CKR_ATTRIBUTE_READ_ONLY'],
    ['TRUSTED true', CKA.TRUSTED, true, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['an attribute of public keys', CKA.MODULUS_BITS, 2048, 'CKR_TEMPLATE_INCONSISTENT'],
    ['an attribute that does not exist', 0x8abc_0001, Buffer.from('x'), 'CKR_ATTRIBUTE_TYPE_INVALID'],
    ['a date that is none', CKA.START_DATE, Buffer.from('2026-1-1'), 'CKR_ATTRIBUTE_VALUE_INVALID'],
    ['its own class', CKA.CLASS, CKO.SECRET_KEY, 'CKR_OK'],
    ['a date', CKA.START_DATE, Buffer.from('20260101'), 'CKR_OK'],
    ['no date', CKA.END_DATE, Buffer.alloc(0), 'CKR_OK'],
    ['TRUSTED false', CKA.TRUSTED, false, 'CKR_OK'],
  ])('with %s', (_name, type, value, rv) => {
    expect(generating([type, value])).toBe(rv);
  });
});

describe('a created key', () => {
  test('was never always sensitive, nor never extractable, nor made here', () => {
    const { attributes } = newObject(template(...aes), create, true);
    expect([CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL].map((type) => attributes.get(type))).toEqual([
      false,
      false,
      false,
    ]);
    expect(attributes.get(CKA.KEY_GEN_MECHANISM)).toBe(-1);
  });
  test('does not keep its value among the attributes', () => {
    const made = newObject(template(...aes), create, true);
    expect(made.attributes.has(CKA.VALUE)).toBe(false);
    expect(made.value).toHaveLength(32);
  });
  test.each([0, 1, 2])('is refused without row %i', (missing) => {
    expect(creating(...aes.filter((_row, i) => i !== missing))).toBe('CKR_TEMPLATE_INCOMPLETE');
  });
  test.each<[string, readonly (readonly [number, AttributeValue])[], string]>([
    ['whose value is too short', [...aes.slice(0, 2), [CKA.VALUE, Buffer.alloc(31)]], 'CKR_ATTRIBUTE_VALUE_INVALID'],
    ['of a type that is not held here', [aes[0], [CKA.KEY_TYPE, CKK.DES3], aes[2]], 'CKR_ATTRIBUTE_VALUE_INVALID'],
    ['of a class that is not made here', [[CKA.CLASS, CKO.HW_FEATURE]], 'CKR_ATTRIBUTE_VALUE_INVALID'],
    ['with another VALUE_LEN', [...aes, [CKA.VALUE_LEN, 16]], 'CKR_TEMPLATE_INCONSISTENT'],
    ['with its own VALUE_LEN', [...aes, [CKA.VALUE_LEN, 32]], 'CKR_OK'],
    [
      'with two labels',
      [...aes, [CKA.LABEL, Buffer.from('a')], [CKA.LABEL, Buffer.from('b')]],
      'CKR_TEMPLATE_INCONSISTENT',
    ],
  ])('%s', (_name, rows, rv) => {
    expect(creating(...rows)).toBe(rv);
  });
  test.each<[string, Attribute]>([
    ['without a value', { type: CKA.LABEL, value: null, length: -1 }],
    ['a CK_BBOOL of two bytes', { type: CKA.ENCRYPT, value: true, length: 2 }],
    ['a CK_ULONG of four bytes', { type: CKA.KEY_TYPE, value: CKK.AES, length: 4 }],
  ])('an attribute: %s', (_name, attribute) => {
    const rows = template(...aes).filter(({ type }) => type !== attribute.type);
    expect(outcome(() => newObject([...rows, attribute], create, true))).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  });
});

describe('a data object', () => {
  test('needs nothing but its class, and is public unless asked otherwise', () => {
    const { attributes, length } = newObject(template([CKA.CLASS, CKO.DATA]), create, true);
    expect(length).toBeNull();
    expect(attributes.get(CKA.PRIVATE)).toBe(false);
    expect(attributes.has(CKA.SENSITIVE)).toBe(false);
  });
  test('has no attributes of keys', () => {
    expect(creating([CKA.CLASS, CKO.DATA], [CKA.ENCRYPT, true])).toBe('CKR_TEMPLATE_INCONSISTENT');
  });
});

describe('changes', () => {
  const current = newObject(
    template([CKA.VALUE_LEN, 32], [CKA.SENSITIVE, false], [CKA.EXTRACTABLE, true], [CKA.TOKEN, false]),
    generate,
    true,
  ).attributes;
  const strict = newObject(template([CKA.VALUE_LEN, 32], [CKA.COPYABLE, false]), generate, true).attributes;
  const set = (rows: Attribute[], by: 'set' | 'copy' = 'set', object = current): string =>
    outcome(() => changes(rows, object, by));

  test.each<[string, number, AttributeValue, string]>([
    ['LABEL', CKA.LABEL, Buffer.from('new'), 'CKR_OK'],
    ['ENCRYPT', CKA.ENCRYPT, false, 'CKR_OK'],
    ['SENSITIVE to true', CKA.SENSITIVE, true, 'CKR_OK'],
    ['EXTRACTABLE to false', CKA.EXTRACTABLE, false, 'CKR_OK'],
    ['TOKEN', CKA.TOKEN, true, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['PRIVATE', CKA.PRIVATE, false, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['CLASS', CKA.CLASS, CKO.DATA, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['VALUE', CKA.VALUE, Buffer.alloc(32), 'CKR_ATTRIBUTE_READ_ONLY'],
    ['LOCAL', CKA.LOCAL, false, 'CKR_ATTRIBUTE_READ_ONLY'],
    ['an attribute of data objects', CKA.APPLICATION, Buffer.from('x'), 'CKR_TEMPLATE_INCONSISTENT'],
  ])('C_SetAttributeValue: %s', (_name, type, value, rv) => {
    expect(set(template([type, value]))).toBe(rv);
  });
  test('SENSITIVE never goes back, nor EXTRACTABLE up, by setting or by copying', () => {
    for (const by of ['set', 'copy'] as const) {
      expect(set(template([CKA.SENSITIVE, false]), by, strict)).toBe('CKR_ATTRIBUTE_READ_ONLY');
      expect(set(template([CKA.EXTRACTABLE, true]), by, strict)).toBe('CKR_ATTRIBUTE_READ_ONLY');
    }
  });
  test('a copy may be on the token and cannot become public', () => {
    expect(set(template([CKA.TOKEN, true]), 'copy')).toBe('CKR_OK');
    expect(set(template([CKA.PRIVATE, false]), 'copy')).toBe('CKR_ATTRIBUTE_READ_ONLY');
    expect(set(template([CKA.COPYABLE, true]), 'copy', strict)).toBe('CKR_ATTRIBUTE_READ_ONLY');
  });
  test('what is already so is not a change, unless C_SetAttributeValue names what may never change', () => {
    expect(changes(template([CKA.TOKEN, false], [CKA.LABEL, Buffer.alloc(0)]), current, 'copy').size).toBe(0);
    expect(changes(template([CKA.LABEL, Buffer.alloc(0)]), current, 'set').size).toBe(0);
    expect(() => changes(template([CKA.TOKEN, false]), current, 'set')).toThrow('CKA_TOKEN');
  });
});
