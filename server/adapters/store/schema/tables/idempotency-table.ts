// What requests under an `Idempotency-Key` created, for a day.

import { besideThings, day, long, policyTable, rowMac, rowVersion, text } from './table.ts';

export const idempotencyTables = {
  idempotency_keys: policyTable({
    ...besideThings,
    columns: {
      /** Digest of the caller and of the key: the key itself is not stored. */
      id: text({ key: true }),
      fingerprint: text(),
      request_id: text({ to: 'a request' }),
      run: text(),
      created_at: long(),
      location: text({ null: true }),
      body: text({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'idempotency_keys_by_age', columns: ['created_at'] }],
    beside: {},
    snapshots: { without: 'requests of their day' },
    purge: { kept: 'for a day, and sealed' },
    pruned: { past: { created_at: day } },
  }),
};
