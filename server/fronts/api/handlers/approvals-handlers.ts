// Handlers of approval requests, and how one is represented: the answer of every operation that
// waits is one.

import { toRfc3339 } from '../../../base/time.ts';
import type { Approval as ApprovalAnswer } from '../../../contract/api/approvals-routes.ts';
import type { Approval } from '../../../domain/approval.ts';
import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const representApproval = (approval: Approval): ApprovalAnswer => ({
  id: approval.id,
  tenantId: approval.tenantId,
  operation: approval.kind,
  subject: approval.subject,
  parameters: approval.parameters,
  impact: approval.impact,
  rules: approval.rules,
  state: approval.state,
  missing: approval.missing,
  requestedBy: approval.requestedBy,
  requestedAt: toRfc3339(approval.requestedAt),
  expiresAt: toRfc3339(approval.expiresAt),
  endedAt: approval.endedAt === null ? null : toRfc3339(approval.endedAt),
  decisions: approval.decisions.map((each) => ({ ...each, at: toRfc3339(each.at) })),
  integrity: approval.integrity,
});

export const approvalsHandlers = ({ approvals }: Operations): Handlers['approvals'] => ({
  list: async ({ actor, query }) =>
    representPage(await approvals.list(actor, query), (approval) => ({
      ...representApproval(approval),
      mayDecide: approval.mayDecide,
    })),
  get: async ({ actor, path }) => {
    const approval = await approvals.get(actor, path.id);
    const { changed, formerNamesOmitted, mayDecide, able } = approval;
    const formerNames = approval.formerNames.map((each) => ({ ...each, until: toRfc3339(each.until) }));
    return { ...representApproval(approval), changed, formerNames, formerNamesOmitted, mayDecide, able };
  },
  approve: async ({ actor, path, body }) =>
    representApproval(await approvals.approve(actor, path.id, body.comment ?? null)),
  reject: async ({ actor, path, body }) =>
    representApproval(await approvals.reject(actor, path.id, body.comment ?? null)),
  withdraw: async ({ actor, path }) => representApproval(await approvals.withdraw(actor, path.id)),
});
