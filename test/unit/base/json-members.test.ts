// Repeated members and lists that are too long are found in any JSON text, and only those.

import { expect, test } from 'vitest';
import { findJsonFault } from '../../../server/base/json-members.ts';
import fc from '../../support/property.ts';

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
  expect(findJsonFault(text, 100)).toEqual(name === undefined ? undefined : { repeated: name });
});

test('what JSON.stringify writes has none, and a member that is added twice is found', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, name) => {
      expect(findJsonFault(JSON.stringify(value, null, 1), 1_000)).toBeUndefined();
      const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      expect(findJsonFault(`{${member}, ${member}}`, 1_000)).toEqual({ repeated: name });
    }),
  );
});

test.each([
  ['[0,0,0]', undefined],
  ['[0,0,0,0]', 'too-many-items'],
  ['{"a":[[0,0,0],[0,0,0],{"b":",,,,,"}]}', undefined],
  ['[[0,[0,0,0,0]]]', 'too-many-items'],
  ['{"a":0,"b":0,"c":0,"d":0}', 'too-many-items'],
])('with at most three items, %s is %s', (text, fault) => {
  expect(findJsonFault(text, 3)).toBe(fault);
});
