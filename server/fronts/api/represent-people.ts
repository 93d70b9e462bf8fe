// People and their sessions, from the service's own records to the contract's: see represent.ts.

import { toRfc3339 } from '../../base/time.ts';
import type { OpenSession } from '../../contract/api/session-routes.ts';
import type { Session } from '../../contract/api/sign-in-routes.ts';
import type { InvitedUser, User } from '../../contract/api/users-routes.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { UserView } from '../../domain/user.ts';
import type { Operations } from '../../operations/index.ts';
import type { DeliveredInvitation, SessionCaller, SessionView } from '../../operations/people/people-operations.ts';
import type { Caller } from './authenticate.ts';

const momentOrNull = (at: number | null): string | null => (at === null ? null : toRfc3339(at));

export const representUser = (user: UserView): User => ({
  id: user.id,
  tenantId: user.tenantId,
  name: user.name,
  displayName: user.displayName,
  email: user.email,
  grants: user.grants,
  state: user.state,
  hasPassword: user.hasPassword,
  mustChangePassword: user.mustChangePassword,
  passwordChangedAt: momentOrNull(user.passwordChangedAt),
  subject: user.subject,
  factors: user.factors.map(({ id, kind, name, createdAt, confirmedAt, lastUsedAt }) => ({
    id,
    kind,
    name,
    createdAt: toRfc3339(createdAt),
    confirmedAt: momentOrNull(confirmedAt),
    lastUsedAt: momentOrNull(lastUsedAt),
  })),
  lockedUntil: momentOrNull(user.lockedUntil),
  invitedUntil: momentOrNull(user.invitedUntil),
  createdAt: toRfc3339(user.createdAt),
  lastSignInAt: momentOrNull(user.lastSignInAt),
  integrity: user.integrity,
});

export const representInvited = ({
  user,
  invitation,
  mailed,
}: { readonly user: UserView } & DeliveredInvitation): InvitedUser => ({
  user: representUser(user),
  mailed,
  invitation:
    invitation === null
      ? null
      : { token: invitation.token, expiresAt: toRfc3339(invitation.expiresAt), url: invitation.url },
});

/** `caller`: the session of the request; null: a token's. */
export const representOpenSession =
  (caller: Pick<SessionCaller, 'sessionId'> | null) =>
  (session: SessionView): OpenSession => ({
    id: session.id,
    current: session.id === caller?.sessionId,
    holder: session.holder,
    method: session.method,
    secondFactor: session.proved === 2,
    createdAt: toRfc3339(session.createdAt),
    usedAt: toRfc3339(session.usedAt),
    expiresAt: toRfc3339(session.expiresAt),
    peer: session.peer,
    agent: session.agent,
  });

/** Who acts, and what they may do. */
export const representSession = (
  { actor, grants, session }: Omit<Caller, 'actor'> & { readonly actor: TenantActor },
  access: Operations['access'],
): Session => ({
  id: actor.id,
  kind: actor.kind === 'user' ? 'user' : 'token',
  name: actor.name,
  tenantId: actor.tenantId,
  grants,
  permissions: access.effective(grants),
  missing: session?.missing ?? null,
  expiresAt: momentOrNull(session?.expiresAt ?? null),
});
