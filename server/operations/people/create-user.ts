// Creates a user, who is invited to set a password unless the OpenID provider knows them.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import { lastingGrants } from '../../domain/access.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName, isUserName } from '../../domain/user.ts';
import type { StoredUser } from '../../ports/people.ts';
import { completeGrants, nameGrant } from '../access/grants.ts';
import { checkName } from '../shared/names.ts';
import { deliver, requireMailable } from './mail-invitation.ts';
import type { UserOperations } from './people-operations.ts';
import { viewUser } from './shown-users.ts';
import { invite, recordUser, type UserPorts } from './user-records.ts';
import { checkEmail, checkGrants, checkSubject, requireLasting, requireSubjectRight } from './user-rules.ts';

export const createUser =
  (ports: UserPorts): UserOperations['create'] =>
  async (actor, own, input) => {
    const { store, clock } = ports;
    const { name, displayName = name, email = null, subject = null, deliver: how = 'show' } = input;
    if (!isUserName(name))
      throw new ServiceError(
        'validation',
        'a user name must be 1 to 64 letters, digits and . _ @ + -, and begin with a letter or digit',
        {
          hint: 'use letters of one script, without those that look like other ones (ı, ɡ): for example ada.lovelace',
        },
      );
    checkName(displayName);
    checkEmail(email);
    checkSubject(subject);
    if (subject !== null) requireSubjectRight(lastingGrants(own));
    const grants = completeGrants(actor, input.grants);
    const now = clock.now();
    if (subject === null) requireMailable(ports, email, how);
    const invitation = subject === null ? invite(ports) : null;
    const user: StoredUser = {
      id: newId(now),
      tenantId: actor.reach === everyTenant ? null : actor.reach,
      name,
      displayName,
      email,
      grants,
      state: 'active',
      hasPassword: false,
      mustChangePassword: false,
      passwordChangedAt: null,
      subject,
      createdAt: now,
      lastSignInAt: null,
      password: null,
      invitationHash: invitation?.hash ?? null,
      invitedUntil: invitation?.expiresAt ?? null,
      integrity: 'ok',
    };
    const view = await store.write(async (tx) => {
      await checkGrants(tx, grants, own);
      requireLasting(own, grants);
      if ((await tx.users.findByName(foldUserName(name))) !== undefined)
        throw new ServiceError('conflict', 'a user with this name already exists', {
          hint: 'names are compared without regard to case',
        });
      if (subject !== null && (await tx.users.findBySubject(subject)) !== undefined)
        throw new ServiceError('conflict', 'a user with this subject already exists', {
          hint: 'a subject can belong to only one user: run dke user list to find it',
        });
      await tx.users.insert(user);
      await recordUser(tx, 'user.created', actor, user, {
        name,
        roles: grants.map(nameGrant),
        ...(subject === null ? {} : { subject }),
      });
      if (invitation !== null)
        await recordUser(tx, 'invitation.issued', actor, user, {
          name,
          expiresAt: toRfc3339(invitation.expiresAt),
          delivery: how,
        });
      return viewUser(ports, tx, user, []);
    });
    if (invitation === null) return { user: view, invitation: null, mailed: null };
    return { user: view, ...(await deliver(ports, how, invitation, view)) };
  };
