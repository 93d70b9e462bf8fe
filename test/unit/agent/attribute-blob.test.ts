// The agent's own attributes, as the service keeps them: format 1 is forever.

import { describe, expect, test } from 'vitest';
import { decodeAttributes, encodeAttributes } from '../../../provider/agent/objects/attribute-blob.ts';
import type { AttributeValue } from '../../../provider/schema/types.ts';
import fc from '../../support/property.ts';

const value = fc.oneof(
  fc.boolean(),
  fc.nat(),
  fc.constant(-1),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.array(fc.nat(), { minLength: 1, maxLength: 5 }),
) as fc.Arbitrary<AttributeValue>;

describe('attribute blob', () => {
  test('what was encoded is decoded', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), value)), (entries) => {
        const attributes = new Map(entries);
        expect(decodeAttributes(encodeAttributes(attributes))).toEqual(
          new Map([...attributes].sort(([a], [b]) => a - b)),
        );
      }),
    );
  });
  test('a template inside keeps its attributes', () => {
    const inner = [{ type: 0x162, value: false, length: 1 }];
    const blob = encodeAttributes(new Map([[0x4000_0212, inner]]));
    expect(decodeAttributes(blob).get(0x4000_0212)).toEqual([{ type: 0x162, value: false, length: 1 }]);
  });
  test('format 1 has these bytes', () => {
    const blob = encodeAttributes(
      new Map<number, AttributeValue>([
        [0x102, Buffer.from('id')],
        [0x10c, false],
        [0x166, 0x1080],
        [0x4000_0600, [0x1082]],
      ]),
    );
    expect(blob.toString('hex')).toBe(
      '01' +
        '00000102030000000' +
        '26964' +
        '0000010c00' +
        '00000166020000000000001080' +
        '400006000400000001' +
        '0000000000001082',
    );
  });
  test('anything else is refused, and nothing hangs or crashes', () => {
    expect(() => decodeAttributes(Buffer.from([2]))).toThrow(RangeError);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeAttributes(Buffer.from([1, ...bytes]));
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
  test('an empty blob has no attributes', () => {
    expect(decodeAttributes(Buffer.alloc(0)).size).toBe(0);
  });
});
