// Users whose roles the OpenID provider manages sign in there only: what signs in here by itself would work after the provider has removed them.

import { ServiceError } from '../../base/errors.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';

/** 'conflict' for a user who may have no password and no passkey. */
export const refuseOwnSecret = (
  provider: IdentityProvider | undefined,
  { subject }: Pick<StoredUser, 'subject'>,
): void => {
  if (provider?.managesRoles === true && subject !== null)
    throw new ServiceError(
      'conflict',
      'the OpenID provider manages this user, who has no password and no passkey here',
      {
        hint: 'sign in at the OpenID provider; to make a local user of it, an administrator removes the subject first',
      },
    );
};
