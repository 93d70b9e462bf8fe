// Templates for tests, written as rows.
import type { Attribute, AttributeValue } from '../../provider/schema/types.ts';

/** A template from types and values. */
export const template = (...rows: readonly (readonly [number, AttributeValue])[]): Attribute[] =>
  rows.map(([type, value]) => ({
    type,
    value,
    length: typeof value === 'boolean' ? 1 : value instanceof Uint8Array ? value.length : 8,
  }));
