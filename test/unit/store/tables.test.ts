// The compiler's errors for an incomplete declaration (`npm run check`).
import { expect, test } from 'vitest';
import { long, policyTable, rowMac, rowVersion, text } from '../../../server/store/tables/table.ts';

const columns = { id: text({ key: true }), used_at: long({ null: true }), row_mac: rowMac, row_version: rowVersion };

const purge = { kept: 'for a test' };

test('a column is authenticated unless the declaration says why not', () => {
  const declare = (beside: { readonly used_at?: string }) =>
    policyTable({ columns, beside, snapshots: 'of no tenant', purge });
  expect(declare({ used_at: 'a mark of use' }).code).toEqual(['id']);
  expect(declare({}).code).toEqual(['id', 'used_at']);
});

test('what does not compile', () => {
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside: { used: 'a mark of use' }, snapshots: 'of no tenant', purge });
  policyTable({
    columns,
    // @ts-expect-error: there is no column of this name
    code: ['id', 'used'],
    beside: { used_at: 'a mark of use' },
    snapshots: 'of no tenant',
    purge,
  });
  // @ts-expect-error: it does not say whether snapshots carry the rows
  policyTable({ columns, beside: {}, purge });
  // @ts-expect-error: it does not say what a purge does with the rows
  policyTable({ columns, beside: {}, snapshots: 'of no tenant' });
  const purged = { columns, beside: {}, snapshots: 'of no tenant' } as const;
  // @ts-expect-error: there is no column of this name
  policyTable({ ...purged, purge: { removed: 'used' } });
  const { row_mac: _, ...without } = columns;
  // @ts-expect-error: there is no place for the code
  const placeless = policyTable({ columns: without, beside: {}, snapshots: 'of no tenant', purge });
  expect(placeless.code).toEqual(['id', 'used_at']);
});
