// Repeated members are found in any JSON text, and only those.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { repeatedMember } from '../../../server/base/json-members.ts';

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":{"b":1,"b":1}}', 'b'],
  ['[{"a":1},{"c":[],"c" : 1}]', 'c'],
  [String.raw`{"a":1,"\u0061":2}`, 'a'],
  [String.raw`{"\"":1,"\"":2}`, '"'],
  ['{"a":"x","b":{"a":1},"c":[{"a":2},{"a":3}]}', undefined],
  [String.raw`{"a":"\"a\":1,","b":"{\"a\":1,\"a\":1}"}`, undefined],
  ['"a"', undefined],
  ['[]', undefined],
])('in %s it is %s', (text, name) => {
  expect(repeatedMember(text)).toBe(name);
});

test('what JSON.stringify writes has none, and a member that is added twice is found', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, name) => {
      expect(repeatedMember(JSON.stringify(value, null, 1))).toBeUndefined();
      const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      expect(repeatedMember(`{${member}, ${member}}`)).toBe(name);
    }),
  );
});
