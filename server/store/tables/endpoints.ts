// XKS endpoints, their credentials, diagnoses and latencies.

import { integer, long, plainTable, policyTable, rowMac, rowVersion, text } from './table.ts';

export const endpointsTables = {
  endpoints: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      prefix: text({ unique: true }),
      vault_id: text({ of: 'vaults' }),
      key_id: text({ of: 'keys' }),
      state: text(),
      settings: text(),
      created_at: long(),
      row_mac: rowMac,
      /** When its key was last used through it. */
      last_used_at: long({ null: true }),
      row_version: rowVersion,
    },
    indexes: [
      { name: 'endpoints_by_key', columns: ['key_id'] },
      { name: 'endpoints_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    code: ['id', 'tenant_id', 'name', 'prefix', 'vault_id', 'key_id', 'state', 'settings', 'created_at'],
    beside: { last_used_at: 'a mark of use' },
    snapshots: { marks: ['last_used_at'] },
  }),
  endpoint_credentials: policyTable({
    columns: {
      id: text({ key: true }),
      endpoint_id: text({ of: 'endpoints' }),
      access_key_id: text({ unique: true }),
      created_at: long(),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [{ name: 'endpoint_credentials_by_endpoint', columns: ['endpoint_id'] }],
    code: ['id', 'endpoint_id', 'access_key_id', 'created_at'],
    beside: { last_used_at: 'a mark of use' },
    snapshots: { marks: ['last_used_at'] },
  }),
  diagnoses: plainTable({
    columns: {
      id: text({ key: true }),
      endpoint_id: text({ of: 'endpoints' }),
      at: long(),
      results: text(),
      request_ids: text(),
    },
    indexes: [{ name: 'diagnoses_by_endpoint', columns: ['endpoint_id', 'id'] }],
    unauthenticated: 'results for people',
    snapshots: { without: 'results of their day' },
  }),
  /** Figures by the minute. */
  xks_latency: plainTable({
    columns: {
      minute: integer(),
      endpoint_id: text(),
      node: text(),
      counts: text(),
      errors: integer(),
    },
    primaryKey: { name: 'xks_latency_key', columns: ['minute', 'endpoint_id', 'node'] },
    unauthenticated: 'figures',
    snapshots: { without: 'figures of their day' },
  }),
};
