// API tokens.

import { long, policyTable, rowMac, rowVersion, text } from './table.ts';

export const apiTokensTables = {
  api_tokens: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants', null: true }),
      kind: text(),
      name: text(),
      grants: text(),
      hash: text({ unique: true }),
      created_at: long(),
      expires_at: long({ null: true }),
      revoked_at: long({ null: true }),
      last_used_at: long({ null: true }),
      row_mac: rowMac,
      /** The user whose token it is; null: the service's. */
      owner_id: text({ null: true }),
      row_version: rowVersion,
    },
    indexes: [{ name: 'api_tokens_of_tenant', columns: ['tenant_id', 'id'] }],
    code: ['id', 'tenant_id', 'kind', 'name', 'grants', 'hash', 'created_at', 'expires_at', 'revoked_at', 'owner_id'],
    beside: { last_used_at: 'a mark of use' },
    snapshots: { without: "the service's own: they do not come back with a tenant" },
  }),
};
