// Users whose roles the OpenID provider manages sign in only there. A password or passkey of DKE
// would keep working after the provider has removed the user.

import { ServiceError } from '../../base/service-error.ts';
import type { IdentityProvider } from '../../ports/identity.ts';
import type { StoredUser } from '../../ports/people.ts';

/**
 * 'validation' for a token that would work for too long after the provider has removed its user.
 */
export const refuseLongToken = (
  provider: IdentityProvider | undefined,
  { subject }: Pick<StoredUser, 'subject'>,
  lifetimeMs: number,
): void => {
  if (provider?.managesRoles !== true || subject === null || lifetimeMs <= provider.tokenMs) return;
  throw new ServiceError(
    'validation',
    `the OpenID provider manages this user: a token must expire within ${provider.tokenMs / 3_600_000} hours`,
    { hint: 'choose an earlier expiry; oidc.token_hours in dke.toml sets the limit' },
  );
};

/**
 * Whether a token of this user has worked for longer than the provider's users may have one. It may
 * have been created before the provider managed its owner.
 */
export const isTokenOverdue = (
  provider: IdentityProvider | undefined,
  { subject }: Pick<StoredUser, 'subject'>,
  createdAt: number,
  now: number,
): boolean => provider?.managesRoles === true && subject !== null && now >= createdAt + provider.tokenMs;

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
