// Approval requests: operations that wait under dual control until other people approve them.

import { z } from '@hono/zod-openapi';
import { approvalStates, governedKindNames } from '../../domain/approval.ts';
import { identifier, integrity, moment, pageOf, pageQuery, queryFlag, type RouteGroup } from './row.ts';

const identity = z.strictObject({ id: identifier, name: z.string() });
const state = z.enum(approvalStates);
const formerName = z
  .strictObject({
    kind: z.string(),
    id: identifier,
    name: z.string(),
    formerName: z.string(),
    until: moment,
    by: identity,
  })
  .openapi('FormerName');
const operation = z.enum(governedKindNames);

export const approvalRuleSchema = z
  .strictObject({
    vaultId: identifier,
    vaultName: z.string(),
    required: z.int().openapi({ description: 'How many must approve, in addition to the requester.' }),
    approvers: z.array(identifier).readonly().nullable().openapi({
      description:
        'Eligible approvers when the request was made. Null in requests of older versions: every user or token with approvals:decide.',
    }),
  })
  .openapi('ApprovalRule');

/** What `?dryRun=true` tells of what dual control says. */
export const approvalNeeds = z
  .strictObject({
    impact: z.record(z.string(), z.unknown()).readonly(),
    rules: z.array(approvalRuleSchema).readonly().openapi({ description: 'Empty: no approval is needed.' }),
  })
  .openapi('ApprovalNeeds');

export const dryRunQuery = z.strictObject({
  dryRun: queryFlag({ description: 'true: shows what would be done and who must approve, and changes nothing.' }),
});

export const approvalSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    operation,
    subject: z.strictObject({ kind: z.string(), id: identifier, name: z.string() }),
    parameters: z.record(z.string(), z.unknown()).readonly(),
    impact: z.record(z.string(), z.unknown()).readonly().openapi({
      description:
        'As it was at the time of the request. Of one request that waits (`get`), names, times of use, processes and copies are those of now.',
    }),
    changed: z.record(z.string(), z.unknown()).readonly().nullable().optional().openapi({
      description:
        'Of one request (`get`): what it would be now, if that is not what was asked for. An approval then ends the request as outdated. Empty: it is no longer possible. Null: nothing has changed.',
    }),
    formerNames: z.array(formerName).readonly().optional().openapi({
      description:
        'Of one request that waits (`get`): names of the last 90 days that the subject, the vaults of the rules and other things of the impact had, with who changed them when. Up to 20 of one thing, the last one and those that it had for the longest time, and 200 in all.',
    }),
    formerNamesOmitted: z.int().optional().openapi({
      description:
        'Of one request that waits (`get`): how many former names are left out, at least. A thing whose names were not all read counts as one.',
    }),
    mayDecide: z.boolean().optional().openapi({
      description: 'Of a list, and of one request (`get`): whether the caller can approve or reject it now.',
    }),
    able: z.array(identity).readonly().optional().openapi({
      description:
        'Of one request (`get`): who can approve it now. The requester, and tokens of the requester, cannot.',
    }),
    rules: z.array(approvalRuleSchema).readonly(),
    state: state.openapi({
      description:
        'approved: the requester completes it with the same call; outdated: the subject has changed since, and nothing was done',
    }),
    missing: z.int().openapi({ description: 'How many more must approve.' }),
    requestedBy: identity,
    requestedAt: moment,
    expiresAt: moment,
    endedAt: moment.nullable(),
    decisions: z
      .array(
        z.strictObject({
          by: identity,
          decision: z.enum(['approve', 'reject']),
          at: moment,
          comment: z.string().nullable(),
        }),
      )
      .readonly(),
    integrity,
  })
  .openapi('Approval');
export type Approval = z.output<typeof approvalSchema>;

const decision = z
  .strictObject({
    comment: z
      .string()
      .max(500)
      .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*$/u, 'must have no control characters')
      .optional()
      .openapi({ description: 'The reason, which is kept in the audit log.' }),
  })
  .openapi('Decision');

export const approvalRoutes = {
  list: {
    method: 'get',
    path: '/api/approvals',
    needs: 'approvals:read',
    tenancy: 'both',
    summary: 'List approval requests',
    description: 'Newest first.',
    query: pageQuery.extend({ state: state.optional(), subjectId: identifier.optional() }),
    answer: pageOf(approvalSchema),
  },
  get: {
    method: 'get',
    path: '/api/approvals/{id}',
    needs: 'approvals:read',
    tenancy: 'both',
    summary: 'Get an approval request',
    answer: approvalSchema,
  },
  approve: {
    method: 'post',
    path: '/api/approvals/{id}/approve',
    needs: 'approvals:decide',
    tenancy: 'both',
    whenDeleted: true,
    summary: 'Approve a request',
    description:
      'The last missing approval also carries out the operation, in the same transaction. Requesters cannot approve their own requests, and each approver counts once.',
    body: decision,
    answer: approvalSchema,
    changes: 'get',
  },
  reject: {
    method: 'post',
    path: '/api/approvals/{id}/reject',
    needs: 'approvals:decide',
    tenancy: 'both',
    whenDeleted: true,
    summary: 'Reject a request',
    description: 'One rejection ends the request.',
    body: decision,
    answer: approvalSchema,
    changes: 'get',
  },
  withdraw: {
    method: 'post',
    path: '/api/approvals/{id}/withdraw',
    needs: 'signed-in',
    whenDeleted: true,
    summary: 'Withdraw a request',
    description: 'Only the requester can do this.',
    answer: approvalSchema,
    changes: 'get',
  },
} as const satisfies RouteGroup;
