// The compiler's errors for an incomplete declaration (`npm run check`).
import { expect, test } from 'vitest';
import { long, policyTable, rowMac, rowVersion, text } from '../../../server/store/tables/table.ts';

const columns = { id: text({ key: true }), used_at: long({ null: true }), row_mac: rowMac, row_version: rowVersion };

test('a column is authenticated unless the declaration says why not', () => {
  const declare = (beside: { readonly used_at?: string }) =>
    policyTable({ columns, beside, snapshots: 'of no tenant' });
  expect(declare({ used_at: 'a mark of use' }).code).toEqual(['id']);
  expect(declare({}).code).toEqual(['id', 'used_at']);
});

test('what does not compile', () => {
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, beside: { used: 'a mark of use' }, snapshots: 'of no tenant' });
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, code: ['id', 'used'], beside: { used_at: 'a mark of use' }, snapshots: 'of no tenant' });
  // @ts-expect-error: it does not say whether snapshots carry the rows
  policyTable({ columns, beside: {} });
  const { row_mac: _, ...without } = columns;
  // @ts-expect-error: there is no place for the code
  const placeless = policyTable({ columns: without, beside: {}, snapshots: 'of no tenant' });
  expect(placeless.code).toEqual(['id', 'used_at']);
});
