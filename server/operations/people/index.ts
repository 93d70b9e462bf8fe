// People, put together.

import { attemptRate, createOriginRates } from '../../base/origin-rates.ts';
import type { IdentityProvider, Passkeys } from '../../ports/identity.ts';
import type { Ports } from '../../ports/ports.ts';
import type { AuthenticationOperations } from '../access/access-operations.ts';
import { createAttempts } from './attempts.ts';
import { createClaimedRoles } from './claimed-roles.ts';
import { createDeviceSignIn } from './device-sign-in.ts';
import { createFactors } from './factors.ts';
import { createLockout } from './lockout.ts';
import { createOneTimePasswords } from './one-time-passwords.ts';
import { createOpenIdOperations } from './open-id.ts';
import { createPasskeyOperations } from './passkeys.ts';
import type { PeopleOperations } from './people-operations.ts';
import { createProfile } from './profile.ts';
import { createRecoveryCodes } from './recovery-codes.ts';
import { createRedeem } from './redeem-invitation.ts';
import { createSecondFactor } from './second-factor.ts';
import { createSessions } from './session-secrets.ts';
import { createSignIn } from './sign-in.ts';
import { createSignInByPassword } from './sign-in-by-password.ts';
import { createUsers } from './users.ts';

export const createPeople = (
  ports: Pick<
    Ports,
    'store' | 'core' | 'ring' | 'clock' | 'usage' | 'people' | 'passwords' | 'identity' | 'log' | 'meter' | 'mailer'
  > & {
    readonly passkeys: Passkeys;
    readonly provider: IdentityProvider | undefined;
  },
  authenticateAdmin: AuthenticationOperations['authenticateAdmin'],
): PeopleOperations => {
  const lockout = createLockout(ports);
  const attempts = createAttempts(ports);
  const claimedRoles = createClaimedRoles(attempts);
  const sessions = createSessions(ports, authenticateAdmin, claimedRoles);
  const signIn = createSignIn(ports, sessions);
  const factors = createFactors(ports, sessions, claimedRoles);
  const oneTimePasswords = createOneTimePasswords(ports, sessions, factors);
  const recoveryCodes = createRecoveryCodes(ports, sessions);
  const giveSecondFactor = createSecondFactor(ports, {
    ...{ sessions, signIn, lockout, factors, oneTimePasswords, recoveryCodes },
  });
  const passkeys = createPasskeyOperations(ports, attempts, sessions, signIn, factors, lockout);
  return {
    users: createUsers(ports, sessions),
    sessions: sessions.operations,
    signIn: {
      ...createOriginRates(ports.clock, attemptRate),
      byPassword: createSignInByPassword(ports, { signIn, lockout }),
      redeem: createRedeem(ports, { sessions, signIn }),
      secondFactor: (caller, given, from) =>
        'passkey' in given ? passkeys.giveSecond(caller, given.passkey, from) : giveSecondFactor(caller, given, from),
      hasPasskeys: () => ports.passkeys.available(),
    },
    factors: { ...factors.operations, ...oneTimePasswords.operations, ...recoveryCodes.operations },
    passkeys: passkeys.operations,
    openId: createOpenIdOperations(ports, attempts, sessions, signIn, claimedRoles),
    deviceSignIn: createDeviceSignIn(ports, attempts, sessions),
    profile: createProfile(ports, sessions, signIn, lockout),
  };
};
