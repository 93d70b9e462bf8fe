// Settings of the service in the database: counters, how far background work has come, and what decides something (domain/decisions.ts).

import { plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const settingsTables = {
  settings: plainTable({
    columns: {
      name: text({ key: true }),
      value: text(),
    },
    unauthenticated: 'counters and what work has come to',
    snapshots: 'of no tenant',
    purge: { kept: 'of no tenant' },
  }),
  decisions: policyTable({
    columns: {
      id: text({ key: true }),
      value: text({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    beside: {},
    snapshots: 'of no tenant',
    purge: { kept: 'of no tenant' },
  }),
};
