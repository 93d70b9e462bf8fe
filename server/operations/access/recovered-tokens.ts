// Administrator tokens that were created on the host: who tells that one of them is expected must
// not act by that token. A thief of its value can create other tokens and users, and can invite an
// existing user again, so that all of these count as the token itself.

import type { AuditEvent, AuditKind } from '../../domain/audit-event.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Repositories } from '../../ports/store.ts';
import { each } from '../shared/paging.ts';
import { decidingRecord } from '../shared/tree-of-log.ts';

type Log = Pick<Repositories, 'audit'>;

/** Records by which an actor gives the use of an identity, or gives it more rights. */
const givingKinds = [
  'token.created',
  'user.created',
  'user.changed',
  'user.enabled',
  'invitation.issued',
  'password.changed',
  'second-factor.removed',
] as const satisfies readonly AuditKind[];

const sequenceOf = ({ sequence }: Pick<AuditEvent, 'sequence'>): string => String(sequence);

/**
 * Whether an identity is the token, or has been given by it since: itself, or by what the token has
 * given, over any number of steps. The order is that of the log, which no clock changes.
 */
const isGivenBy = async (
  { audit }: Log,
  recovered: Pick<AuditEvent, 'subjectId' | 'sequence'>,
  id: string,
  seen = new Set<string>(),
): Promise<boolean> => {
  if (id === recovered.subjectId) return true;
  if (seen.has(id)) return false;
  seen.add(id);
  for (const kind of givingKinds) {
    const given = each(
      ({ after = sequenceOf(recovered), limit }) =>
        audit.list(everyTenant, { subjectId: id, kind, order: 'oldest' }, { after, limit }),
      sequenceOf,
    );
    for await (const { actorId } of given)
      if (actorId !== id && (await isGivenBy({ audit }, recovered, actorId, seen))) return true;
  }
  return false;
};

/**
 * Whether a caller has a token that was created on the host, or what that token has given: the
 * caller may not acknowledge the notification about it.
 */
export const actsByRecovered = async ({ audit }: Log, tokenId: string, callerId: string): Promise<boolean> => {
  const [recovered] = await audit.list(
    everyTenant,
    { subjectId: tokenId, kind: 'administrator.recovered', order: 'newest' },
    { limit: 1 },
  );
  return callerId === tokenId || (recovered !== undefined && (await isGivenBy({ audit }, recovered, callerId)));
};

/**
 * Whether another identity has revoked the token, by a record that is under the root of the log: a
 * record, or the row of the token, that was changed from outside says nothing.
 */
export const isRevokedByAnother = async (
  { audit, tokens }: Log & Pick<Repositories, 'tokens'>,
  recovered: Pick<AuditEvent, 'subjectId' | 'sequence'>,
): Promise<boolean> => {
  const token = await tokens.get(everyTenant, recovered.subjectId);
  if (token?.integrity !== 'ok' || token.revokedAt === null) return false;
  const revoked = await decidingRecord(audit, {
    subjectId: recovered.subjectId,
    kind: 'token.revoked',
    order: 'newest',
  });
  return revoked != null && !(await isGivenBy({ audit }, recovered, revoked.actorId));
};
