// Vaults.

import { long, policyTable, rowMac, rowVersion, text } from './table.ts';

export const vaultsTables = {
  vaults: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ of: 'tenants' }),
      name: text(),
      kind: text(),
      state: text(),
      created_at: long(),
      row_mac: rowMac,
      /** Canonical JSON of the rule; null: none. */
      dual_control: text({ null: true }),
      /** How often its keys are to be rotated. */
      profile: text({ default: 'standard' }),
      row_version: rowVersion,
    },
    indexes: [
      { name: 'vaults_by_name', columns: ['tenant_id', 'name'] },
      { name: 'vaults_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    code: ['id', 'tenant_id', 'name', 'kind', 'state', 'created_at', 'dual_control', 'profile'],
    beside: {},
    snapshots: { marks: [] },
  }),
};
