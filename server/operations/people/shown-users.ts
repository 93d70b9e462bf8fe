// Users and sessions as they are shown: without hashes.

import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName, type UserView } from '../../domain/user.ts';
import type { StoredFactor, StoredSession, StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { failuresKey } from './lockout.ts';
import type { SessionView } from './people-operations.ts';

export const viewUser = async (
  { ring, clock }: Pick<Ports, 'ring' | 'clock'>,
  from: Repositories,
  { password: _, invitationHash: __, ...user }: StoredUser,
  factors?: readonly StoredFactor[],
): Promise<UserView> => {
  const failures = await from.failures.get(failuresKey(ring, 'user', foldUserName(user.name)));
  const now = clock.now();
  const lockedUntil = failures?.lockedUntil ?? null;
  return {
    ...user,
    factors: (factors ?? (await from.factors.list(user.id))).map(
      ({ data: _data, counter: _counter, integrity: _integrity, ...factor }) => factor,
    ),
    lockedUntil: lockedUntil !== null && lockedUntil > now ? lockedUntil : null,
    invitedUntil: user.invitedUntil !== null && user.invitedUntil > now ? user.invitedUntil : null,
  };
};

export const viewSession = async (
  from: Repositories,
  { hash: _, integrity: __, tenantId: ___, holder, ...session }: StoredSession,
): Promise<SessionView> => {
  const found =
    holder.kind === 'user'
      ? await from.users.get(everyTenant, holder.id)
      : await from.tokens.get(everyTenant, holder.id);
  return { ...session, holder: { ...holder, name: found?.name ?? '' } };
};
