// The audit log and its Merkle tree.

import type { AuditEvent } from '../../../../domain/audit-event.ts';
import { readDocument } from '../documents.ts';
import { membersOf } from './members.ts';
import { bytes, integer, long, ofNoTenant, plainTable, type RowOf, text } from './table.ts';

export const auditTables = {
  audit_events: plainTable({
    columns: {
      sequence: long({ key: true }),
      at: long(),
      kind: text(),
      actor_kind: text(),
      actor_id: text({ to: 'who acted' }),
      actor_name: text(),
      peer: text({ null: true }),
      tenant_id: text({ to: 'a tenant that may be gone' }),
      subject_kind: text(),
      subject_id: text({ to: 'a thing of any kind' }),
      request_id: text({ to: 'a request' }),
      details: text(),
      leaf_hash: bytes(),
    },
    indexes: [
      { name: 'audit_by_kind', columns: ['kind', 'sequence'] },
      { name: 'audit_by_subject', columns: ['subject_id', 'sequence'] },
      { name: 'audit_by_actor', columns: ['actor_id', 'sequence'] },
      { name: 'audit_by_request', columns: ['request_id', 'sequence'] },
      { name: 'audit_events_of_tenant', columns: ['tenant_id', 'sequence'] },
      { name: 'audit_by_kind_of_tenant', columns: ['tenant_id', 'kind', 'sequence'] },
    ],
    plans: { audit_events_by_scope: "coalesce(tenant_id, '')" },
    unauthenticated: 'leaves of the tree that checkpoints sign',
    snapshots: { without: "the log is one, and the service's own" },
    purge: { kept: 'the log is one, and its records are evidence' },
    search: { not: 'its own indexes find them' },
    statistics: { none: 'of the log' },
    records: 'none',
    pruned: { never: 'evidence' },
    copied: 'with the store',
    changes: { not: 'read at each use' },
  }),
  /** One row: how many records there are. A writer locks it until its transaction ends. */
  audit_head: plainTable({
    ...ofNoTenant,
    columns: {
      id: integer({ key: true }),
      size: long(),
    },
    rows: () => [{ id: 1, size: 0 }],
    unauthenticated: 'the size of the tree that checkpoints sign',
    pruned: { never: 'of the log' },
  }),
  /**
   * Nodes of the log's Merkle tree above the leaves, on every eighth level: each is the root of a
   * tile of 256 hashes of the stored level below.
   */
  audit_nodes: plainTable({
    ...ofNoTenant,
    columns: {
      level: integer(),
      position: long(),
      hash: bytes(),
    },
    primaryKey: { name: 'audit_nodes_pk', columns: ['level', 'position'] },
    unauthenticated: 'nodes of the tree that checkpoints sign',
    pruned: { never: 'of the log' },
  }),
  audit_checkpoints: plainTable({
    ...ofNoTenant,
    columns: {
      size: long({ key: true }),
      at: long(),
      note: text(),
    },
    unauthenticated: 'signed',
    pruned: { never: 'of the log' },
  }),
};

type Row<T extends keyof typeof auditTables> = RowOf<(typeof auditTables)[T]>;

export const auditEventMembers = membersOf<AuditEvent>()(auditTables.audit_events, 'details', 'leaf_hash');

export const toAuditEvent = (row: Row<'audit_events'>): AuditEvent => ({
  ...auditEventMembers.fromRow(row),
  // The verification of the log finds records that are no longer a document. The list shows them
  // without it.
  details: readDocument<AuditEvent['details']>(row.details, {}, {}),
});
