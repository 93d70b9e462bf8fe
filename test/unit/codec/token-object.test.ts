// The token object has one declaration on its way (contract/tde-objects.ts). A member that is added
// there or in the domain and forgotten elsewhere does not compile here, or fails here.
import { expect, test } from 'vitest';
import { viewOf } from '../../../provider/agent/objects/object-view.ts';
import {
  type Answers,
  decodeAnswer,
  encodeAnswer,
  type Heads,
  type TdeRoute,
  type TokenObject,
} from '../../../server/contract/tde.ts';
import type { NewTokenObject, TokenObjectChange, VisibleObject } from '../../../server/operations/index.ts';

/** `true` if two types have the same members and A can be assigned to B; otherwise `never`. */
type SameMembers<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? (A extends B ? true : never) : never;
const isSame: readonly [
  SameMembers<Heads['createObject'], NewTokenObject>,
  SameMembers<NewTokenObject, Heads['createObject']>,
  SameMembers<Omit<Heads['updateObject'], 'replacesValue'>, TokenObjectChange>,
  SameMembers<TokenObjectChange, Omit<Heads['updateObject'], 'replacesValue'>>,
] = [true, true, true, true];

/** The members of an object that the service does not send to the agent. */
const unsent = {
  tenantId: 'a tenant',
  groupId: 'a group',
  applicationId: 'an application',
  wrappedSensitive: true,
  rules: null,
  integrity: 'ok',
} satisfies Pick<VisibleObject, Exclude<keyof VisibleObject, keyof TokenObject>>;

const sent = {
  handle: 7,
  id: '0196f0c4-5b7e-7c3a-9d2e-1f0a2b3c4d5e',
  class: 'secret-key',
  label: 'bGFiZWw=',
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt', 'decrypt'],
  sensitive: true,
  extractable: false,
  alwaysSensitive: true,
  neverExtractable: true,
  modifiable: true,
  destroyable: true,
  local: true,
  private: true,
  checkValue: 'AAEC',
  publicKey: null,
  attributes: '',
  createdAt: Date.parse('2026-11-27T10:00:00.123Z'),
  state: 'active',
  owned: true,
  version: 7,
  admits: ['encrypt'],
} as const satisfies Required<TokenObject>;
const object: VisibleObject = { ...unsent, ...sent };
const wire = encodeAnswer('getObject', object);
/** Between the two is JSON. */
const received = (head: object): unknown => JSON.parse(JSON.stringify(head));

test('an object arrives with all members that the contract declares, and with no other', () => {
  expect(isSame).toEqual([true, true, true, true]);
  expect(Object.keys(wire).sort()).toEqual(Object.keys(sent).sort());
  expect(decodeAnswer('getObject', received(wire))).toEqual(sent);
  const { admits: _, ...unchecked } = sent;
  expect(decodeAnswer('getObject', received(encodeAnswer('getObject', unchecked)))).toEqual(unchecked);
});

test('the agent uses every member', () => {
  const used = new Set<string | symbol>();
  const observed = new Proxy(sent, {
    get: (object, name) => {
      used.add(name);
      return Reflect.get(object, name);
    },
  });
  viewOf(observed);
  // `version` and `admits` are for the cache of answers; the others are for `dke agent --check`.
  expect(Object.keys(sent).filter((name) => !used.has(name))).toEqual(['createdAt', 'state', 'version', 'admits']);
});

test.each<[TdeRoute, object, object]>([
  ['generateKey', object, sent],
  ['createObject', object, sent],
  ['updateObject', object, sent],
  ['generateKeyPair', { privateKey: object, publicKey: null }, { privateKey: sent, publicKey: null }],
  ['findObjects', { objects: [object, object], more: false }, { objects: [sent, sent], more: false }],
  ['unwrap', { object }, { object: sent }],
  ['derive', { object: null }, { object: null }],
])('%s answers with objects in the same form', (route, answer, expected) => {
  expect(decodeAnswer(route, received(encodeAnswer(route, answer as Answers[typeof route])))).toEqual(expected);
});

test('a key that was destroyed meanwhile is called soft-deleted', () => {
  expect(encodeAnswer('getObject', { ...sent, state: 'destroyed' }).state).toBe('soft-deleted');
});

test('members that only a newer service sends are ignored, and its new words are accepted', () => {
  const newer = { ...wire, algorithm: 'ml-kem', usages: ['encrypt', 'encapsulate'], since: 3 };
  expect(decodeAnswer('getObject', newer)).toEqual({ ...sent, algorithm: 'ml-kem', usages: newer.usages });
  expect(decodeAnswer('encrypt', { more: 1 })).toEqual({});
});

test.each([
  ['no object', null, 'the head: must be an object'],
  ['a list', [], 'the head: must be an object'],
  ['a handle that is not a handle', { ...wire, handle: 2 ** 31 }, 'handle: must be an integer from 1 to 2147483647'],
  ['a missing member', { ...wire, owned: undefined }, 'owned: must be true or false'],
  ['a class that is not a word', { ...wire, class: 7 }, 'class: must be a word such as secret-key'],
  ['attributes that are not Base64', { ...wire, attributes: '*' }, 'attributes: has other characters than permitted'],
  [
    'a time that does not exist',
    { ...wire, createdAt: '2026-99-01T00:00:00Z' },
    'createdAt: must be a time (RFC 3339)',
  ],
  ['usages that are not a list', { ...wire, usages: 'encrypt' }, 'usages: must be a list of at most 64'],
])('%s is refused by the name of the member, without its value', (_, head, message) => {
  expect(() => decodeAnswer('getObject', head)).toThrow(expect.objectContaining({ code: 'validation', message }));
});
