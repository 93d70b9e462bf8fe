// Tenants, and the keys under which their records are sealed.

import { besideThings, bytes, integer, long, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const tenantsTables = {
  tenants: policyTable({
    columns: {
      id: text({ key: true }),
      name: text(),
      state: text(),
      created_at: long(),
      suspended_at: long({ null: true }),
      deleted_at: long({ null: true }),
      purge_at: long({ null: true }),
      purged_at: long({ null: true }),
      unrecoverable_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
      cleared_at: long({ null: true }),
    },
    codeSinceLayout: { cleared_at: 3 },
    indexes: [
      // The name of a purged tenant is free again.
      { name: 'tenants_by_name', columns: ['name'], unique: true, where: `"state" != 'purged'` },
    ],
    beside: {},
    snapshots: { without: 'restored into one that is there, or made for it' },
    purge: { kept: 'its own tombstone' },
    search: { not: 'few: each is read' },
    statistics: { none: 'itself' },
    records: 'none',
    pruned: { never: 'tombstones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
  tenant_keks: plainTable({
    ...besideThings,
    columns: {
      tenant_id: text({ to: 'a tenant that may be gone' }),
      epoch: integer(),
      root_epoch: integer(),
      record: bytes(),
    },
    primaryKey: { name: 'tenant_keks_pk', columns: ['tenant_id', 'epoch'] },
    unauthenticated: 'records authenticate themselves',
    snapshots: { without: 'a tenant that is restored gets a fresh one' },
    purge: 'by a step',
    pruned: { by: 'what makes newer ones' },
    copied: 'for trials, too',
    changes: 'told',
  }),
};
