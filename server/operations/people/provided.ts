// Users whose roles the OpenID provider manages sign in only there. A password or passkey of DKE would keep working after the provider has removed
// the user.

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
      'the OpenID provider manages this user: passwords and passkeys cannot be set here',
      {
        hint: 'sign in at the OpenID provider; for a local user, an administrator must remove the subject first',
      },
    );
};
