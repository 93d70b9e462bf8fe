// Requests that wait for approval.

import { day, long, policyTable, rowMac, rowVersion, text } from './table.ts';

export const approvalsTables = {
  approvals: policyTable({
    columns: {
      id: text({ key: true }),
      tenant_id: text({ to: 'a tenant that may be gone' }),
      kind: text(),
      subject_kind: text(),
      subject_id: text({ to: 'a thing of any kind' }),
      state: text(),
      requested_by: text(),
      requested_at: long(),
      expires_at: long(),
      ended_at: long({ null: true }),
      /** Canonical JSON of what is only read as a whole. */
      document: text(),
      row_mac: rowMac,
      row_version: rowVersion,
    },
    indexes: [
      { name: 'approvals_by_state', columns: ['tenant_id', 'state', 'id'] },
      { name: 'approvals_by_subject', columns: ['subject_id', 'id'] },
      { name: 'approvals_of_tenant', columns: ['tenant_id', 'id'] },
    ],
    plans: { approvals_by_scope: "coalesce(tenant_id, '')" },
    beside: {},
    snapshots: { without: 'requests of their day' },
    purge: { kept: 'evidence, as the audit log is' },
    search: { not: 'by their ids alone: each is read' },
    statistics: { none: 'of their day' },
    records: 'none',
    pruned: { past: { ended_at: 400 * day }, idsFrom: 'an earlier time', most: 100 },
    copied: 'with the store',
    changes: { not: 'read at each use' },
  }),
};
