// The compiler's errors for an incomplete declaration (`npm run check`).
import { expect, test } from 'vitest';
import { long, policyTable, rowMac, rowVersion, text } from '../../../server/store/tables/table.ts';

const columns = { id: text({ key: true }), used_at: long({ null: true }), row_mac: rowMac, row_version: rowVersion };

test('a column that is neither authenticated nor listed as unauthenticated does not compile', () => {
  const whole = policyTable({ columns, code: ['id'], beside: { used_at: 'a mark of use' }, snapshots: 'of no tenant' });
  expect(Object.keys(whole.beside)).toEqual(['used_at']);
  // @ts-expect-error: used_at is missing
  expect(policyTable({ columns, code: ['id'], beside: {}, snapshots: 'of no tenant' }).beside).toEqual({});
  // @ts-expect-error: there is no column of this name
  policyTable({ columns, code: ['id', 'used'], beside: { used_at: 'a mark of use' }, snapshots: 'of no tenant' });
  // @ts-expect-error: it does not say whether snapshots carry the rows
  policyTable({ columns, code: ['id', 'used_at'], beside: {} });
  const { row_mac: _, ...without } = columns;
  // @ts-expect-error: there is no place for the code
  policyTable({ columns: without, code: ['id', 'used_at'], beside: {}, snapshots: 'of no tenant' });
});
