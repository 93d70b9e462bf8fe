// The compiler's errors for an incomplete declaration (`npm run check`): a table that says nothing
// of what becomes of its rows is in no list by accident, because it does not compile.
import { expect, test } from 'vitest';
import {
  besideThings,
  long,
  plainTable,
  policyTable,
  rowMac,
  rowVersion,
  text,
} from '../../../server/adapters/store/schema/tables/table.ts';

const columns = { id: text({ key: true }), used_at: long({ null: true }), row_mac: rowMac, row_version: rowVersion };

/** A complete declaration of a sample table, next to its columns. */
const sample = {
  snapshots: 'of no tenant',
  purge: { kept: 'for a test' },
  search: { not: 'for a test' },
  statistics: { none: 'for a test' },
  records: 'none',
  pruned: { never: 'for a test' },
  copied: 'with the store',
  changes: { not: 'for a test' },
} as const;
const beside = {};

test('a column is authenticated unless the declaration says why not', () => {
  const declare = (beside: { readonly used_at?: string }) => policyTable({ columns, beside, ...sample });
  expect(declare({ used_at: 'a mark of use' }).code).toEqual(['id']);
  expect(declare({}).code).toEqual(['id', 'used_at']);
});

test('without any of its properties a table does not compile', () => {
  const { snapshots: _snapshots, ...withoutSnapshots } = sample;
  // @ts-expect-error: it does not say whether snapshots carry the rows
  policyTable({ columns, beside, ...withoutSnapshots });
  const { purge: _purge, ...withoutPurge } = sample;
  // @ts-expect-error: it does not say what a purge does with the rows
  policyTable({ columns, beside, ...withoutPurge });
  const { search: _search, ...withoutSearch } = sample;
  // @ts-expect-error: it does not say by what search finds the rows
  policyTable({ columns, beside, ...withoutSearch });
  const { statistics: _statistics, ...withoutStatistics } = sample;
  // @ts-expect-error: it does not say whether a tenant is said to contain the rows
  policyTable({ columns, beside, ...withoutStatistics });
  const { records: _records, ...withoutRecords } = sample;
  // @ts-expect-error: it does not say which key records the rows own
  policyTable({ columns, beside, ...withoutRecords });
  const { pruned: _pruned, ...withoutPruned } = sample;
  // @ts-expect-error: it does not say which rows the clock removes
  policyTable({ columns, beside, ...withoutPruned });
  const { copied: _copied, ...withoutCopied } = sample;
  // @ts-expect-error: it does not say where copies of the store have the rows
  policyTable({ columns, beside, ...withoutCopied });
  const { changes: _changes, ...withoutChanges } = sample;
  // @ts-expect-error: it does not say whether other nodes hear of changes
  policyTable({ columns, beside, ...withoutChanges });
  const figures = { columns, unauthenticated: 'for a test', ...besideThings, snapshots: sample.snapshots } as const;
  // @ts-expect-error: the same of a table without authentication codes
  plainTable({ ...figures, pruned: sample.pruned });
  // @ts-expect-error: the same of a table without authentication codes
  plainTable({ ...figures, purge: sample.purge });
  expect(plainTable({ ...figures, purge: sample.purge, pruned: sample.pruned }).records).toBe('none');
});

test('what snapshots carry says what a restore does with it', () => {
  const carried = {
    marks: ['used_at'],
    fixed: [],
    beside: 'copied',
    existing: 'replaced',
    reactivates: { nothing: 'for a test' },
  } as const;
  const { fixed: _fixed, ...withoutFixed } = carried;
  // @ts-expect-error: it does not say which columns never change
  policyTable({ columns, beside, ...sample, snapshots: withoutFixed });
  const { beside: _beside, ...withoutBeside } = carried;
  // @ts-expect-error: it does not say whether a copy of the tenant has the rows
  policyTable({ columns, beside, ...sample, snapshots: withoutBeside });
  const { existing: _existing, ...withoutExisting } = carried;
  // @ts-expect-error: it does not say what becomes of a row that is there
  policyTable({ columns, beside, ...sample, snapshots: withoutExisting });
  const { reactivates: _reactivates, ...withoutReactivates } = carried;
  // @ts-expect-error: it does not say what of it decides who may use keys
  policyTable({ columns, beside, ...sample, snapshots: withoutReactivates });
  expect(policyTable({ columns, beside, ...sample, snapshots: carried }).snapshots).toEqual(carried);
});

test('a column with an id says of which table, or what it names', () => {
  const silent = { ...columns, owner_id: text() };
  // @ts-expect-error: it does not say whose id it has
  policyTable({ columns: silent, beside, ...sample });
  const named = { ...columns, owner_id: text({ to: 'a person' }), vault_id: text({ of: 'vaults', null: true }) };
  expect(policyTable({ columns: named, beside, ...sample }).code).toContain('owner_id');
});

test('a column that does not exist does not compile', () => {
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, ...sample, beside: { used: 'a mark of use' } });
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside, ...sample, code: ['id', 'used'] });
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside, ...sample, purge: { removed: 'used' } });
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside, ...sample, pruned: { past: { used: 1 } } });
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside, ...sample, search: { as: 'used', by: 'id', field: 'id' } });
  const { row_mac: _, ...without } = columns;
  // @ts-expect-error: there is no place for the code
  const placeless = policyTable({ columns: without, beside, ...sample });
  expect(placeless.code).toEqual(['id', 'used_at']);
});
