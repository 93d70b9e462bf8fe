// The exact text under the authentication code of a row of each policy table: rows that are stored
// must stay valid, so its bytes never change. A new table adds an entry; an existing entry is never
// edited.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { authenticationCode, policyColumns, rowIntegrity } from '../../../server/adapters/store/rows/row-codes.ts';
import type { RowJob } from '../../../server/base/row-jobs.ts';
import recorded from './row-codes.json' with { type: 'json' };

type Table = keyof typeof policyColumns;
const tables = Object.keys(policyColumns) as readonly Table[];
/** Columns by their place in the recorded text: every fourth value is a number. */
const valueAt = (column: string, at: number): unknown => (at % 4 === 3 ? at : `${column} ${at}`);

test('every policy table is recorded', () => {
  expect(Object.keys(recorded).toSorted()).toEqual(tables.toSorted());
});

describe.each(tables)('%s', (table) => {
  const text = (row: Readonly<Record<string, unknown>>): unknown =>
    JSON.parse(authenticationCode((encoded) => encoded, table, row, 1));
  const full = Object.fromEntries(policyColumns[table].map((column, at) => [column, valueAt(column, at)]));

  test('with a value in every column', () => {
    expect(text({ ...full, row_version: 0 })).toEqual(recorded[table].unversioned);
    expect(text({ ...full, row_version: 7 })).toEqual(recorded[table].versioned);
  });

  test('with no value where there may be none', () => {
    const empty = Object.fromEntries(policyColumns[table].map((column) => [column, null]));
    expect(text({ ...empty, id: 'one', row_version: 7 })).toEqual(recorded[table].empty);
  });
});

test('null is a value in the layout that new rows have, and no two rows have one text', () => {
  const row = { id: 'one', tenant_id: 't', group_id: 'g', name: 'n', app_id: 'a', state: 'enabled', created_at: 1 };
  const value = '{"certificates":[],"networks":["10.0.0.0/8"]}';
  const limited = { ...row, compatibility: null, callers: value, row_version: 7 };
  const moved = { ...row, compatibility: value, callers: null, row_version: 7 };
  const code = (of: Readonly<Record<string, unknown>>, layout?: 1 | 2): string =>
    authenticationCode((text) => text, 'tde_applications', of, layout);
  expect(code(limited)).not.toBe(code(moved));
  expect(code(limited)).toContain('{"layout":4,"version":7}');
  const integrity = (of: Readonly<Record<string, unknown>>, mac: string): string =>
    rowIntegrity((text) => text, 'tde_applications', { ...of, row_mac: mac });
  expect(integrity(limited, code(limited))).toBe('ok');
  expect(integrity(moved, code(limited))).toBe('tampered');
  // A row of the former layout, too, in which both have one text.
  expect(code(limited, 1)).toBe(code(moved, 1));
  expect(integrity(limited, code(limited, 1))).toBe('ok');
  expect(integrity(moved, code(limited, 1))).toBe('tampered');
});

test('a copy of another column is in the text where it differs, and in no earlier layout', () => {
  const own = { id: 'one', tenant_id: 't', group_id: 'g', name: 'n', app_id: 'a', state: 'enabled', created_at: 1 };
  const row = { ...own, compatibility: null, callers: null, row_version: 7 };
  const code = (of: Readonly<Record<string, unknown>>, layout?: 1 | 2 | 3): string =>
    authenticationCode((text) => text, 'tde_applications', of, layout);
  const integrity = (label: string, mac: string, version = 7): string =>
    rowIntegrity((text) => text, 'tde_applications', {
      ...{ ...row, token_label: label, row_version: version, row_mac: mac },
    });
  const [same, other] = [code({ ...row, token_label: 'n' }), code({ ...row, token_label: 'm' })];
  // A row from before the column was there, to which the migration has given the copy.
  expect(same).toBe(code(row));
  expect(other).toContain('{"token_label":"m"}');
  expect(integrity('n', same)).toBe('ok');
  expect(integrity('m', other)).toBe('ok');
  for (const label of ['m', '', 'x']) expect(integrity(label, same)).toBe('tampered');
  for (const label of ['n', '', 'x']) expect(integrity(label, other)).toBe('tampered');
  for (const layout of [1, 2] as const) {
    expect(integrity('n', code(row, layout))).toBe('ok');
    expect(integrity('m', code(row, layout))).toBe('tampered');
  }
  const without = code({ ...row, row_version: 0 });
  expect(integrity('n', without, 0)).toBe('ok');
  expect(integrity('m', without, 0)).toBe('tampered');
});

test('a column that came later is in no text of an earlier layout, and has no value in a row of one', () => {
  const own = Object.fromEntries(policyColumns.tde_objects.map((column) => [column, null]));
  const row = { ...own, id: 'one', rules: null, content: null, row_version: 7 };
  const code = (of: Readonly<Record<string, unknown>>, layout?: 1 | 2 | 3 | 4): string =>
    authenticationCode((text) => text, 'tde_objects', of, layout);
  const integrity = (of: Readonly<Record<string, unknown>>, mac: string): string =>
    rowIntegrity((text) => text, 'tde_objects', { ...of, row_mac: mac });
  const content = Buffer.from('sealed');
  const digest = createHash('sha256').update(content).digest('hex');
  const withValue = { ...row, content, content_digest: digest };
  expect(code(withValue)).toContain('{"layout":4,"version":7}');
  expect(code(withValue, 3)).toContain('{"layout":3,"version":7}');
  expect(code(withValue, 2)).toBe(code({ ...row, content }, 2));
  for (const layout of [1, 2, 3] as const) expect(integrity({ ...row, content }, code(row, layout))).toBe('ok');
  // A row of an earlier layout is not one that has a digest, nor the other way round.
  for (const layout of [1, 2] as const) expect(integrity(withValue, code(row, layout))).toBe('tampered');
  expect(integrity({ ...row, content }, code(withValue))).toBe('tampered');
});

test('a value beside the code is the one whose digest is under it; one that was not read says nothing', () => {
  const own = Object.fromEntries(policyColumns.tde_objects.map((column) => [column, null]));
  const content = Buffer.from('sealed');
  const digest = createHash('sha256').update(content).digest('hex');
  const row = { ...own, id: 'one', content_digest: digest, row_version: 7 };
  const integrity = (of: Readonly<Record<string, unknown>>): string =>
    rowIntegrity((text) => text, 'tde_objects', {
      ...of,
      row_mac: authenticationCode((text) => text, 'tde_objects', row),
    });
  expect(integrity({ ...row, content })).toBe('ok');
  expect(integrity(row)).toBe('ok');
  for (const other of [Buffer.from('older'), Buffer.alloc(0), null, 'sealed'])
    expect(integrity({ ...row, content: other })).toBe('tampered');
});

test('the text is canonical JSON', () => {
  const row = { id: 'é', name: 'a"b', public_key: '', created_at: 1, removed_at: null, row_version: 2 };
  const text = (layout?: 1): string => authenticationCode((encoded) => encoded, 'recovery_keys', row, layout);
  expect(text(1)).toBe('["recovery_keys","é","a\\"b","",1,null,{"version":2}]');
  expect(text()).toBe('["recovery_keys","é","a\\"b","",1,null,{"layout":4,"version":2}]');
});

test('a code is under the key of rows, and one of an earlier layout under the row key itself', () => {
  const row = { id: 'one', name: 'a', public_key: '', created_at: 1, removed_at: null, row_version: 2 };
  const jobs = ([1, 2, 3, 4] as const).map((layout) =>
    authenticationCode((_, job) => job, 'recovery_keys', row, layout),
  );
  expect(jobs).toEqual(['earlier', 'earlier', 'earlier', 'dke row codes 1']);
  // The text of the newest layout under the row key is not a code.
  const under = (job: RowJob) => (text: string, asked: RowJob) => (asked === job ? text : 'none');
  const code = authenticationCode(under('dke row codes 1'), 'recovery_keys', row);
  expect(rowIntegrity(under('dke row codes 1'), 'recovery_keys', { ...row, row_mac: code })).toBe('ok');
  expect(rowIntegrity(under('earlier'), 'recovery_keys', { ...row, row_mac: code })).toBe('tampered');
});
