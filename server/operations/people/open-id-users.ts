// Users of the OpenID provider, where a claim gives roles: added at their first sign-in, and
// without roles once the provider gives none.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { isName } from '../../domain/name.ts';
import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName, isEmail, isUserName } from '../../domain/user.ts';
import type { OpenIdPerson } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Ports } from '../../ports/ports.ts';
import { revokeTokensOf } from '../access/manage-tokens.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { type ClaimedRoles, isOwnedOtherwise, openIdActor, setRoles } from './claimed-roles.ts';
import type { SignInOrigin } from './people-operations.ts';

type UserPorts = Pick<Ports, 'store' | 'clock'>;

/** Its roles come with the sign-in. */
export const addOpenIdUser = async (
  { store, clock }: UserPorts,
  person: OpenIdPerson,
  from: SignInOrigin,
): Promise<StoredUser> => {
  const name = person.name !== null && isUserName(person.name) ? person.name : person.subject;
  if (!isUserName(name))
    throw new ServiceError('forbidden', 'the OpenID provider sends no name that is valid as a user name', {
      hint: 'an administrator can register the subject: dke user create NAME --subject SUBJECT',
    });
  const now = clock.now();
  const displayName = person.displayName?.slice(0, 128).trim().normalize('NFC') ?? '';
  const user: StoredUser = {
    id: newId(now),
    tenantId: null,
    name,
    displayName: isName(displayName) ? displayName : name,
    email: person.email !== null && isEmail(person.email) ? person.email : null,
    grants: [],
    state: 'active',
    hasPassword: false,
    mustChangePassword: false,
    passwordChangedAt: null,
    subject: person.subject,
    createdAt: now,
    lastSignInAt: null,
    password: null,
    invitationHash: null,
    invitedUntil: null,
    integrity: 'ok',
  };
  await store.write(async (tx) => {
    if ((await tx.users.findByName(foldUserName(name))) !== undefined)
      throw new ServiceError('forbidden', 'another user with this name already exists', {
        hint: 'an administrator can link that user: dke user change NAME --subject SUBJECT',
      });
    await tx.users.insert(user);
    await recordEvent(tx, 'user.created', openIdActor(from), about('user', { id: user.id, tenantId: null }), {
      name,
      roles: [],
      subject: person.subject,
    });
  });
  return user;
};

/**
 * The provider no longer gives this person a role: removes the roles, ends the sessions and revokes
 * the user's own API tokens.
 */
export const withdrawRoles = async (
  { store, clock }: UserPorts,
  claimedRoles: ClaimedRoles,
  userId: string,
  from: SignInOrigin,
): Promise<void> => {
  await store.write(async (tx) => {
    const user = await tx.users.get(everyTenant, userId);
    if (user === undefined || user.integrity !== 'ok' || user.state !== 'active') return;
    if (await isOwnedOtherwise(tx, user)) return;
    await claimedRoles.forget(tx, userId);
    // Revoking reads every token, so it is done once: a user without roles cannot create tokens.
    if (user.grants.length === 0) return;
    await setRoles(tx, user, [], from);
    await revokeTokensOf(tx, openIdActor(from), userId, clock.now());
  });
};
