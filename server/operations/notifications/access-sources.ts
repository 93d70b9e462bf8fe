// Who may do what: tokens that end, administrators that were created on the host, and rules of dual
// control.

import { serviceTenantId } from '../../base/ids.ts';
import type { Clock } from '../../base/time.ts';
import { toRfc3339 } from '../../base/time.ts';
import { mayApprove } from '../../domain/dual-control.ts';
import { type Condition, dayMs, notificationKinds } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Window } from '../../ports/window.ts';
import { countPeople, listIdentities } from '../access/identities.ts';
import { isRevokedByAnother } from '../access/recovered-tokens.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { recentRecords } from './recent-records.ts';
import type { NotificationSource } from './watch.ts';

/** Every item of a list by id. */
const all = <T extends { readonly id: string }>(list: (window: Window) => Promise<readonly T[]>): AsyncGenerator<T> =>
  each(list, byId, fewAtOnce);

export const accessSources = ({
  read,
  clock,
}: {
  readonly read: Repositories;
  readonly clock: Pick<Clock, 'now'>;
}): readonly NotificationSource[] => {
  const tokens = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const now = clock.now();
    for await (const token of all((window) => read.tokens.list(everyTenant, window))) {
      const { id, name, createdAt, expiresAt, revokedAt } = token;
      // A week after its end it is no longer of interest.
      if (expiresAt === null || revokedAt !== null || expiresAt < now - 7 * dayMs) continue;
      // One that was made for a day is not announced for a month.
      const life = expiresAt - createdAt;
      found.push({
        kind: 'token.expiring',
        tenantId: token.tenantId ?? serviceTenantId,
        subject: { kind: 'token', id, name },
        harmAt: expiresAt,
        leadDays: notificationKinds['token.expiring'].leadDays.filter((days) => days * dayMs * 3 <= life),
        details: { expiresAt: toRfc3339(expiresAt) },
      });
    }
    return found.filter(({ leadDays = [], harmAt }) => leadDays.length > 0 || (harmAt ?? 0) <= now);
  };

  /**
   * A way around every sign-in: all administrators hear of it, also of one whose token has expired
   * by now, or was revoked before the first check. It ends with a revocation by an identity that
   * the token has not given.
   */
  const recovered = async (): Promise<readonly Condition[]> => {
    const found = new Map<string, Condition>();
    for await (const event of recentRecords(read, 'administrator.recovered', clock.now())) {
      const { subjectId, at, actorName, details } = event;
      if (found.has(subjectId) || (await isRevokedByAnother(read, event))) continue;
      found.set(subjectId, {
        kind: 'administrator.recovered',
        tenantId: serviceTenantId,
        subject: { kind: 'token', id: subjectId, name: `${String(details.name)}, by ${actorName}` },
        harmAt: at,
        details: { ...details },
      });
    }
    return [...found.values()];
  };

  const dualControl = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const ableIn = new Map<string, Awaited<ReturnType<typeof listIdentities>>>();
    for await (const { id, name, tenantId, state, dualControl: rule } of all((window) =>
      read.vaults.list(everyTenant, window),
    )) {
      if (rule === null || state === 'deleted') continue;
      const able = ableIn.get(tenantId) ?? (await listIdentities(read, 'approvals:decide', tenantId, clock.now()));
      ableIn.set(tenantId, able);
      const approvers = countPeople(
        able.filter((each) => mayApprove(rule, each.id)),
        null,
      );
      if (approvers < rule.required)
        found.push({
          kind: 'dual-control.unsatisfiable',
          tenantId,
          subject: { kind: 'vault', id, name },
          harmAt: null,
          details: { required: rule.required, approvers },
        });
    }
    return found;
  };

  const approvals = async (): Promise<readonly Condition[]> =>
    (await read.approvals.listOpen()).map(({ id, kind, tenantId, subject, expiresAt, missing, requestedBy }) => ({
      kind: 'approval.pending',
      tenantId,
      subject: { kind: 'approval', id, name: subject.name },
      harmAt: expiresAt,
      details: { operation: kind, requestedBy: requestedBy.name, missing },
    }));

  return [
    { about: 'the end of tokens', kinds: ['token.expiring'], every: 'minute', look: tokens },
    { about: 'tokens made on the host', kinds: ['administrator.recovered'], every: 'minute', look: recovered },
    { about: 'dual control', kinds: ['dual-control.unsatisfiable'], every: 'minute', look: dualControl },
    { about: 'approval requests', kinds: ['approval.pending'], every: 'minute', look: approvals },
  ];
};
