// The authentication code of a row: over every policy column, and over a later one (tags, the key
// that a copy is of) only where it has a value.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { authenticationCode, policyColumns, rowIntegrity } from '../../../server/adapters/store/rows/row-codes.ts';

const authenticate = (text: string): string => createHmac('sha256', 'a test').update(text).digest('hex');
const row = Object.fromEntries(
  policyColumns.keys.map((column, at) => [column, at % 3 === 0 ? null : `${column} ${at}`]),
);
const withTags = (tags: string | null) => ({ ...row, tags, copy_of: null });
const codeOf = (of: Readonly<Record<string, unknown>>): string => authenticationCode(authenticate, 'keys', of);

test('a key that was stored before there were tags and copies is what it was', () => {
  const values = policyColumns.keys
    .filter((column) => column !== 'tags' && column !== 'copy_of')
    .map((column) => row[column]);
  const stored = authenticate(JSON.stringify(['keys', ...values]));
  expect(rowIntegrity(authenticate, 'keys', { ...withTags(null), row_mac: stored })).toBe('ok');
});

test('tags that are given, taken away, or others are noticed', () => {
  const codes = [null, '["pci"]', '["pci","old"]', '[]', 'null'].map((tags) => codeOf(withTags(tags)));
  expect(new Set(codes).size).toBe(codes.length);
  for (const tags of ['["pci"]', '[]'])
    expect(rowIntegrity(authenticate, 'keys', { ...withTags(tags), row_mac: codeOf(withTags(null)) })).toBe('tampered');
  expect(rowIntegrity(authenticate, 'keys', { ...withTags(null), row_mac: codeOf(withTags('["pci"]')) })).toBe(
    'tampered',
  );
});

test('no other column can be emptied', () => {
  const full = Object.fromEntries(policyColumns.keys.map((column) => [column, column]));
  for (const column of policyColumns.keys)
    expect([column, codeOf({ ...full, [column]: null }) === codeOf(full)]).toEqual([column, false]);
});
