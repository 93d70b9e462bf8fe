// Snapshots, the recovery keys that they are sealed to, their exports and openings.

import { integer, long, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

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
      // How many keys are erased from the file; what `counts` says of it is of earlier versions.
      erased: integer({ null: true }),
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
      'erased',
    ],
    codeSinceVersions: ['state', 'deleted_at', 'purged_at'],
    codeSinceLayout: { erased: 3 },
    beside: {
      size: 'what is known of the file, which is signed',
      counts: 'what is known of the file, which is signed; how many keys are erased from it has a column of its own',
      verification: 'what is known of the file, which is signed',
      verified_at: 'what is known of the file, which is signed',
      failure: 'what is known of the file, which is signed',
    },
    snapshots: { without: 'about snapshots' },
    purge: { kept: 'the erasure run takes the keys out of their files' },
  }),
  /** As earlier versions kept exports: the first start moves them to outside_copies. */
  snapshot_exports: plainTable({
    columns: {
      id: text({ key: true }),
      snapshot_id: text({ of: 'snapshots' }),
      at: long(),
      actor_id: text(),
      actor_name: text(),
    },
    indexes: [{ name: 'snapshot_exports_by_snapshot', columns: ['snapshot_id', 'id'] }],
    unauthenticated: 'empty since they have authentication codes elsewhere',
    snapshots: { without: 'about snapshots' },
    purge: { kept: 'empty' },
  }),
  /**
   * Files that left the service (domain/copies.ts). Without references: they outlive snapshot and
   * tenant.
   */
  outside_copies: policyTable({
    columns: {
      id: text({ key: true }),
      kind: text(),
      tenant_id: text({ null: true }),
      snapshot_id: text({ null: true }),
      at: long(),
      actor_id: text(),
      actor_name: text(),
      state_from: long(),
      state_until: long(),
      state_size: long({ null: true }),
      erased_until: long({ null: true }),
      erased_size: long({ null: true }),
      oldest_root_epoch: integer({ null: true }),
      root_epoch: integer({ null: true }),
      destroyed_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [
      { name: 'outside_copies_by_tenant', columns: ['tenant_id', 'id'] },
      { name: 'outside_copies_by_kind', columns: ['kind', 'id'] },
      { name: 'outside_copies_by_snapshot', columns: ['snapshot_id', 'id'] },
      { name: 'outside_copies_left', columns: ['id'], where: '"destroyed_at" is null' },
    ],
    beside: {},
    snapshots: { without: 'about files elsewhere' },
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
    records: { classes: ['snapshot-opening'], each: { tenant: 'the service' } },
    snapshots: { without: 'of their ten minutes' },
    purge: { kept: 'for ten minutes' },
  }),
};
