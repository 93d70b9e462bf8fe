// Requests for approval: what dual control holds back until others agree.

import { z } from '@hono/zod-openapi';
import type { ApprovalState, GovernedKind } from '../../../domain/approval.ts';
import { identifier, integrity, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

const identity = z.strictObject({ id: identifier, name: z.string() });
const state = z.enum([
  'pending',
  'approved',
  'carried-out',
  'refused',
  'withdrawn',
  'expired',
  'outdated',
] satisfies ApprovalState[]);
const operation = z.enum([
  'master-key.destroy',
  'key.delete',
  'vault.delete',
  'application.move',
  'dual-control.change',
  'snapshot.export',
  'snapshot.restore',
  'tenant.delete',
  'tenant.purge',
] satisfies GovernedKind[]);

export const approvalRuleSchema = z
  .strictObject({
    vaultId: identifier,
    vaultName: z.string(),
    required: z.int().openapi({ description: 'How many must agree, beside the requester.' }),
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
    rules: z.array(approvalRuleSchema).readonly().openapi({ description: 'Empty: it would be done at once.' }),
  })
  .openapi('ApprovalNeeds');

export const dryRunQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ description: 'true: tells what would be done and who must agree, and changes nothing.' }),
});

export const approvalSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    operation,
    subject: z.strictObject({ kind: z.string(), id: identifier, name: z.string() }),
    parameters: z.record(z.string(), z.unknown()).readonly(),
    impact: z.record(z.string(), z.unknown()).readonly().openapi({ description: 'As it was when it was asked for.' }),
    rules: z.array(approvalRuleSchema).readonly(),
    state: state.openapi({
      description:
        'approved: the requester carries it out, by the same call; outdated: what it was about changed, nothing was done',
    }),
    missing: z.int().openapi({ description: 'How many more must agree.' }),
    requestedBy: identity,
    requestedAt: moment,
    expiresAt: moment,
    endedAt: moment.nullable(),
    decisions: z
      .array(
        z.strictObject({
          by: identity,
          decision: z.enum(['approve', 'refuse']),
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
      .openapi({ description: 'Why; the audit log keeps it.' }),
  })
  .openapi('Decision');

export const approvalRoutes = {
  list: {
    method: 'get',
    path: '/api/approvals',
    needs: 'approvals:read',
    summary: 'List requests for approval',
    description: 'Newest first.',
    query: pageQuery.extend({ state: state.optional(), subjectId: identifier.optional() }),
    answer: pageOf(approvalSchema),
  },
  get: {
    method: 'get',
    path: '/api/approvals/{id}',
    needs: 'approvals:read',
    summary: 'Get a request for approval',
    answer: approvalSchema,
  },
  approve: {
    method: 'post',
    path: '/api/approvals/{id}/approve',
    needs: 'approvals:decide',
    whenDeleted: true,
    summary: 'Agree to a request',
    description:
      'The last agreement that was missing carries the operation out, in the same transaction. Never the requester; each once.',
    body: decision,
    answer: approvalSchema,
    changes: 'get',
  },
  refuse: {
    method: 'post',
    path: '/api/approvals/{id}/refuse',
    needs: 'approvals:decide',
    whenDeleted: true,
    summary: 'Refuse a request',
    description: 'Ends it: one refusal is enough.',
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
    description: 'By the requester alone.',
    answer: approvalSchema,
    changes: 'get',
  },
} as const satisfies RouteGroup;
