// An invitation and a password to come: the user gets the password, and a session.

import { ServiceError } from '../../base/service-error.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { looksLikeBearer } from '../access/bearer.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { checkPassword } from './passwords.ts';
import type { SignInOperations } from './people-operations.ts';
import { type Sessions, userActor } from './session-secrets.ts';
import type { SignIn, SignInPorts } from './sign-in.ts';
import { holderOf } from './start-session.ts';

export const createRedeem =
  (
    { store, ring, clock, passwords }: Pick<SignInPorts, 'store' | 'ring' | 'clock' | 'passwords'>,
    { sessions, signIn: { refuse } }: { readonly sessions: Sessions; readonly signIn: SignIn },
  ): SignInOperations['redeem'] =>
  async (invitation, password, from) => {
    try {
      const hashes = looksLikeBearer('invitation', invitation)
        ? [ring.hashToken('invitation', invitation), ...ring.formerHashes('invitation', invitation)]
        : [];
      const users = await Promise.all(hashes.map((hash) => store.read.users.findByInvitation(hash)));
      const user = users.find((found) => found !== undefined);
      const holds =
        user !== undefined &&
        user.integrity === 'ok' &&
        user.state === 'active' &&
        user.invitedUntil !== null &&
        user.invitedUntil > clock.now();
      if (!holds) {
        await refuse(
          { method: 'invitation', reason: user === undefined ? 'unknown' : 'expired', user },
          undefined,
          from,
        );
        throw new ServiceError('unauthenticated', 'the invitation is not valid', {
          hint: 'invitations are single-use and expire: ask an administrator for a new one',
        });
      }
      checkPassword(password, user.name);
      const stored = await passwords.hash(password, from.peer);
      const actor = userActor(user, from);
      const made = await store.write(async (tx) => {
        const current = await tx.users.get(everyTenant, user.id);
        if (current === undefined || current.invitationHash !== user.invitationHash || current.state !== 'active')
          throw new ServiceError('unauthenticated', 'the invitation was already used');
        await tx.users.update({
          ...current,
          password: stored,
          hasPassword: true,
          passwordChangedAt: clock.now(),
          mustChangePassword: false,
          invitationHash: null,
          invitedUntil: null,
        });
        const sessionsEnded = await tx.sessions.removeOf({ kind: 'user', id: user.id }, null);
        await recordEvent(tx, 'password.changed', actor, about('user', user), {
          name: user.name,
          by: 'invitation',
          sessionsEnded,
        });
        await tx.users.touch(user.id, clock.now());
        const how = { method: 'invitation', proved: 1 } as const;
        return sessions.insert(tx, holderOf(user), how, from, actor);
      });
      sessions.forget();
      return await sessions.open(made, from);
    } finally {
      password.fill(0);
    }
  };
