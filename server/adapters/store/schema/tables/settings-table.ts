// Settings of the service in the database: counters, how far background work has come, and what
// decides something (domain/decisions.ts).

import { ofNoTenant, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const settingsTables = {
  settings: plainTable({
    ...ofNoTenant,
    columns: {
      name: text({ key: true }),
      value: text(),
    },
    unauthenticated: 'counters and what work has come to',
    rows: 'written when the store is opened',
    pruned: { by: 'the removal of a node, and pruning.ts, what removed nodes have told' },
    copied: 'for trials, too',
  }),
  decisions: policyTable({
    ...ofNoTenant,
    columns: {
      id: text({ key: true }),
      value: text({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    beside: {},
    pruned: { never: 'one row for each name' },
    copied: 'for trials, too',
    changes: 'told',
  }),
};
