// Settings of the service in the database: counters, and how far background work has come.

import { plainTable, text } from './table.ts';

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
};
