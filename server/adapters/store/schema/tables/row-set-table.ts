// The set of policy rows (row-set-table.ts).

import { integer, long, ofNoTenant, plainTable, text } from './table.ts';

export const rowSetTables = {
  /**
   * At most one row: the newest version, the masked sum over all policy rows, and its
   * authentication code (row-set-table.ts).
   */
  row_set: plainTable({
    ...ofNoTenant,
    columns: {
      id: integer({ key: true }),
      version: long(),
      sum: text(),
      tag: text(),
    },
    unauthenticated: 'has an authentication code of its own',
    pruned: { never: 'one row' },
  }),
};
