// Takes a user's password away and invites the user to set a new one.

import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { StoredUser } from '../../ports/people.ts';
import { revokeTokensOf } from '../access/manage-tokens.ts';
import { refuseOwnSecret } from '../access/provider-managed-users.ts';
import type { ChangeUser } from './change-user.ts';
import { deliver, requireMailable } from './mail-invitation.ts';
import type { UserOperations } from './people-operations.ts';
import { endSessionsOf, invite, recordUser, type UserPorts } from './user-records.ts';
import { findNamingVault, refuseLast, refuseNamedApprover, refuseOneself, requireLasting } from './user-rules.ts';

export const resetPassword =
  (ports: UserPorts, change: ChangeUser): UserOperations['resetPassword'] =>
  async (actor, own, id, { revokeTokens = false, deliver: how = 'show' } = {}) => {
    const invitation = invite(ports);
    const naming = await findNamingVault(ports.store.read, id);
    const user = await change(actor, own, id, async (tx, before) => {
      refuseOneself(actor, id, 'reset their own password');
      refuseOwnSecret(ports.provider, before);
      requireLasting(own, before.grants);
      await refuseNamedApprover(tx, id, naming);
      if (before.state !== 'active')
        throw new ServiceError('conflict', 'the user is disabled', { hint: 'enable them first' });
      await refuseLast(tx, before);
      requireMailable(ports, before.email, how);
      const after: StoredUser = {
        ...before,
        password: null,
        hasPassword: false,
        invitationHash: invitation.hash,
        invitedUntil: invitation.expiresAt,
      };
      await tx.users.update(after);
      const sessionsEnded = await endSessionsOf(tx, id);
      if (revokeTokens) await revokeTokensOf(tx, actor, id, ports.clock.now());
      await recordUser(tx, 'invitation.issued', actor, after, {
        name: after.name,
        expiresAt: toRfc3339(invitation.expiresAt),
        sessionsEnded,
        delivery: how,
      });
      return after;
    });
    return { user, ...(await deliver(ports, how, invitation, user)) };
  };
