// External key stores of the cloud.

import { type Connection, type ExternalKeyStore, neverLooked } from '../../../../domain/external-key-store.ts';
import type { Integrity } from '../../../../domain/vault.ts';
import { membersOf } from './members.ts';
import { long, policyTable, type RowOf, rowMac, rowVersion, text } from './table.ts';

export const externalKeyStoresTables = {
  external_key_stores: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      custom_key_store_id: text({ to: 'its name in the cloud' }),
      region: text(),
      endpoint_id: text({ of: 'endpoints' }),
      created_at: long(),
      connection: text(),
      row_mac: rowMac,
      /** Null: never. An index finds the store whose check is due. */
      looked_at: long({ null: true }),
      row_version: rowVersion,
    },
    unique: { name: 'external_key_stores_by_cloud', columns: ['tenant_id', 'custom_key_store_id', 'region'] },
    indexes: [
      { name: 'external_key_stores_of_tenant', columns: ['tenant_id', 'id'] },
      { name: 'external_key_stores_by_look', expression: '(coalesce(looked_at, 0)), id' },
    ],
    beside: { connection: 'what was seen of the cloud', looked_at: 'when the cloud was checked' },
    snapshots: {
      marks: ['connection', 'looked_at'],
      fixed: [],
      beside: { not: 'names one place in the world' },
      existing: 'replaced',
      reactivates: { nothing: 'names an endpoint' },
    },
    purge: 'by a step',
    search: {
      kind: 'external-key-store',
      terms: { name: 'name', custom_key_store_id: 'custom-key-store-id' },
      state: null,
    },
    statistics: { none: 'its endpoint is counted' },
    records: 'none',
    pruned: { by: 'people' },
    copied: 'for trials, too',
    changes: { not: 'read at each use' },
  }),
};

type Row<T extends keyof typeof externalKeyStoresTables> = RowOf<(typeof externalKeyStoresTables)[T]>;

/** An observation of a connection is not policy: text that cannot be read counts as none. */
const parseConnection = (text: string): Connection => {
  try {
    return { ...neverLooked, ...(JSON.parse(text) as Connection) };
  } catch {
    return neverLooked;
  }
};

const members = membersOf<ExternalKeyStore>()(externalKeyStoresTables.external_key_stores, 'connection', 'looked_at');

export const externalKeyStoreRow = (store: ExternalKeyStore) => ({
  ...members.toRow(store),
  connection: JSON.stringify(store.connection),
  looked_at: store.connection.checkedAt,
});

export const toExternalKeyStore = (row: Row<'external_key_stores'>, integrity: Integrity): ExternalKeyStore => ({
  ...members.fromRow(row),
  connection: parseConnection(row.connection),
  integrity,
});
