// Snapshots, the recovery keys that they are sealed to, their exports and openings.

import { long, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const snapshotsTables = {
  recovery_keys: policyTable({
    columns: {
      id: text({ key: true }),
      name: text(),
      public_key: text(),
      created_at: long(),
      removed_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    beside: {},
    snapshots: 'of no tenant',
    purge: { kept: 'of no tenant' },
  }),
  /** Without a reference to the tenant: a record of an export outlives the tenant. */
  snapshots: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text(),
      origin: text(),
      state: text(),
      created_at: long(),
      audit_size: long(),
      size: long({ null: true }),
      counts: text({ null: true }),
      recovery_key_ids: text(),
      signer: text({ null: true }),
      verification: text({ null: true }),
      verified_at: long({ null: true }),
      deleted_at: long({ null: true }),
      purged_at: long({ null: true }),
      failure: text({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [
      { name: 'snapshots_by_tenant', columns: ['tenant_id', 'id'] },
      { name: 'snapshots_by_state_of_tenant', columns: ['tenant_id', 'state', 'id'] },
      { name: 'snapshots_by_state', columns: ['state', 'id'] },
    ],
    code: [
      'id',
      'tenant_id',
      'origin',
      'created_at',
      'audit_size',
      'recovery_key_ids',
      'signer',
      'state',
      'deleted_at',
      'purged_at',
    ],
    codeSinceVersions: ['state', 'deleted_at', 'purged_at'],
    beside: {
      size: 'what is known of the file, which is signed',
      counts: 'what is known of the file, which is signed',
      verification: 'what is known of the file, which is signed',
      verified_at: 'what is known of the file, which is signed',
      failure: 'what is known of the file, which is signed',
    },
    snapshots: { without: 'about snapshots' },
    purge: { kept: 'the erasure run takes the keys out of their files' },
  }),
  snapshot_exports: plainTable({
    columns: {
      id: text({ key: true }),
      snapshot_id: text({ of: 'snapshots' }),
      at: long(),
      actor_id: text(),
      actor_name: text(),
    },
    indexes: [{ name: 'snapshot_exports_by_snapshot', columns: ['snapshot_id', 'id'] }],
    unauthenticated: 'for people; the audit log has them',
    snapshots: { without: 'about snapshots' },
    purge: { kept: 'names the copies that are elsewhere' },
  }),
  snapshot_openings: plainTable({
    columns: {
      id: text({ key: true }),
      snapshot_id: text({ of: 'snapshots' }),
      actor_id: text(),
      expires_at: long(),
    },
    unauthenticated: 'bound into the record of its key',
    records: { classes: ['snapshot-opening'] },
    snapshots: { without: 'of their ten minutes' },
    purge: { kept: 'for ten minutes' },
  }),
};
