// Templates for tests, written as rows.
import { CKA } from '../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../provider/schema/constants.ts';
import type { Attribute, AttributeValue } from '../../provider/schema/types.ts';

export type Row = readonly [number, AttributeValue];

/** A template from types and values. */
export const template = (...rows: readonly Row[]): Attribute[] =>
  rows.map(([type, value]) => ({
    type,
    value,
    length: typeof value === 'boolean' ? 1 : value instanceof Uint8Array ? value.length : 8,
  }));

/** Where keys of a test are, and whether that is the token: most rules apply to both. */
export const places = [
  ['session', false],
  ['token', true],
] as const;

/** What every AES key is made with that is not generated. */
export const aesRows: Row[] = [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.AES],
];
