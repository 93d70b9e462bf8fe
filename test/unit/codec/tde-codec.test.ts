// The codec of heads: its refusals, the member that each names, and that no message contains a
// value.
import { expect, test } from 'vitest';
import {
  always,
  bytes,
  either,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  union,
} from '../../../server/contract/tde-codec.ts';

const head = object({
  count: integer(1, 3),
  data: bytes(4),
  kind: oneOf(['a', 'b']),
  note: optional(nullable(bytes(2))),
  parts: list(flag, 2),
});
const good = { count: 2, data: 'AAEC', kind: 'a', parts: [true] };

test('what is encoded is decoded to the same value; absent members stay absent', () => {
  const value = { count: 2, data: Buffer.from([0, 1, 2]), kind: 'a', parts: [true] } as const;
  expect(head.encode(value)).toEqual(good);
  expect(head.decode(head.encode(value), '')).toEqual(value);
  expect(head.decode({ ...good, note: null }, '')).toEqual({ ...value, note: null });
});

test.each([
  ['a list', [], 'the head: must be an object'],
  ['null', null, 'the head: must be an object'],
  ['a missing member', { ...good, count: undefined }, 'count: must be an integer from 1 to 3'],
  ['no member', {}, 'count: is missing'],
  ['an unknown member', { ...good, more: 1 }, 'the head: has an unknown member'],
  ['a member of every object', { ...good, constructor: 1 }, 'the head: has an unknown member'],
  ['a number that is too large', { ...good, count: 4 }, 'count: must be an integer from 1 to 3'],
  ['a fraction', { ...good, count: 1.5 }, 'count: must be an integer from 1 to 3'],
  ['too many bytes', { ...good, data: 'AAECAwQFBgc=' }, 'data: must be a text of at most 8 characters'],
  ['text that is not Base64', { ...good, data: 'se*r' }, 'data: has other characters than permitted'],
  ['another word', { ...good, kind: 'secret' }, 'kind: must be one of a, b'],
  ['a list that is too long', { ...good, parts: [true, true, true] }, 'parts: must be a list of at most 2'],
  ['an item of another type', { ...good, parts: [true, 1] }, 'parts.1: must be true or false'],
])('%s is refused by the name of the member, without its value', (_, wire, message) => {
  expect(() => head.decode(wire, '')).toThrow(expect.objectContaining({ code: 'validation', message }));
});

test('a member that does not travel is added by the decoder and refused from outside', () => {
  const signature = object({ prehashed: always(true) });
  expect(signature.encode({ prehashed: true })).toEqual({});
  expect(signature.decode({}, '')).toEqual({ prehashed: true });
  expect(() => signature.decode({ prehashed: false }, '')).toThrow('the head: has an unknown member');
});

test('the tag of a union decides which members there are', () => {
  const cipher = union('algorithm', { ecb: {}, cbc: { iv: bytes(16) } });
  expect(cipher.decode({ algorithm: 'cbc', iv: 'AA==' }, '')).toEqual({ algorithm: 'cbc', iv: Buffer.from([0]) });
  expect(() => cipher.decode({ algorithm: 'ecb', iv: 'AA==' }, '')).toThrow('the head: has an unknown member');
  for (const algorithm of ['toString', '__proto__', undefined, 1])
    expect(() => cipher.decode({ algorithm }, 'cipher')).toThrow('cipher.algorithm: must be one of ecb, cbc');
  const padded = either('padding', union('padding', { oaep: {} }), cipher);
  expect(padded.decode({ padding: 'oaep' }, '')).toEqual({ padding: 'oaep' });
  expect(padded.decode({ algorithm: 'ecb' }, '')).toEqual({ algorithm: 'ecb' });
  expect(() => padded.decode({ padding: 'none', algorithm: 'ecb' }, '')).toThrow('padding: must be one of oaep');
});
