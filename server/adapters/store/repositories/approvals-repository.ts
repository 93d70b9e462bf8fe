// Approval requests. The whole row is authenticated: who has agreed is not to be written from
// outside.

import type { Kysely } from 'kysely';
import { canonicalJson } from '../../../base/bytes.ts';
import { ServiceError } from '../../../base/service-error.ts';
import type { Approval } from '../../../domain/approval.ts';
import type { SubjectKind } from '../../../domain/audit-event.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { approvalsTables } from '../schema/tables/approvals-table.ts';
import { membersOf } from '../schema/tables/members.ts';
import { alsoInScope, inScope } from './tenants-repository.ts';

type Document = Pick<Approval, 'parameters' | 'impact' | 'rules' | 'fingerprint' | 'decisions' | 'missing'> & {
  readonly subjectName: string;
  readonly requesterName: string;
};

const members = membersOf<Approval>()(
  approvalsTables.approvals,
  'subject_kind',
  'subject_id',
  'requested_by',
  'document',
);

const approvalRow = (approval: Approval) => {
  const { parameters, impact, rules, fingerprint, decisions, missing } = approval;
  const document: Document = {
    parameters,
    impact,
    rules,
    fingerprint,
    decisions,
    missing,
    subjectName: approval.subject.name,
    requesterName: approval.requestedBy.name,
  };
  return {
    ...members.toRow(approval),
    subject_kind: approval.subject.kind,
    subject_id: approval.subject.id,
    requested_by: approval.requestedBy.id,
    document: canonicalJson(document),
  };
};

/**
 * What is shown of a row that was changed from outside: its document may be anything, and decides
 * nothing.
 */
const nothing: Document = {
  parameters: {},
  impact: {},
  rules: [],
  fingerprint: '',
  decisions: [],
  missing: 0,
  subjectName: '',
  requesterName: '',
};

const toApproval = (row: Schema['approvals'], integrity: Approval['integrity']): Approval => {
  const { subjectName, requesterName, ...document } =
    integrity === 'ok' ? (JSON.parse(row.document) as Document) : nothing;
  return {
    ...members.fromRow(row),
    subject: { kind: row.subject_kind as SubjectKind, id: row.subject_id, name: subjectName },
    ...document,
    requestedBy: { id: row.requested_by, name: requesterName },
    integrity,
  };
};

export const createApprovalRepository = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['approvals'] => {
  const read = (row: Schema['approvals']): Approval => toApproval(row, policyRows.integrity('approvals', { ...row }));
  return {
    get: async (tenant, id) => {
      const row = await inScope(db.selectFrom('approvals').selectAll().where('id', '=', id), tenant).executeTakeFirst();
      return row && read(row);
    },
    list: async (tenant, { state, subjectId }, { after, limit }) => {
      const scoped = subjectId === undefined ? inScope : alsoInScope;
      let query = scoped(db.selectFrom('approvals').selectAll().orderBy('id', 'desc').limit(limit), tenant);
      if (state !== undefined) query = query.where('state', '=', state);
      if (subjectId !== undefined) query = query.where('subject_id', '=', subjectId);
      if (after !== undefined) query = query.where('id', '<', after);
      return (await query.execute()).map(read);
    },
    listOpen: async () =>
      (
        await db
          .selectFrom('approvals')
          .selectAll()
          .where('state', 'in', ['pending', 'approved'])
          .orderBy('id')
          .execute()
      ).map(read),
    insert: async (approval) => {
      await policyRows.insert('approvals', approvalRow(approval));
    },
    update: async (approval) => {
      if (approval.integrity !== 'ok')
        throw new ServiceError('key-tampered', 'the stored approval request was changed from outside', {
          hint: 'repeat the request; do not approve or withdraw this one',
        });
      await policyRows.update('approvals', approvalRow(approval));
    },
  };
};
