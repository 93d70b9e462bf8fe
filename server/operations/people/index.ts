// People, put together.

import type { IdentityProvider, Passkeys } from '../../ports/identity.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Operations } from '../index.ts';
import { createClaimedRoles } from './claimed-roles.ts';
import { createFactors } from './factors.ts';
import type { PeopleOperations } from './interface.ts';
import { createLockout } from './lockout.ts';
import { createOpenIdOperations } from './open-id.ts';
import { createPasskeyOperations } from './passkeys.ts';
import { createProfile } from './profile.ts';
import { createSessions } from './sessions.ts';
import { createSignIn } from './sign-in.ts';
import { createUsers } from './users.ts';

export const createPeople = (
  ports: Pick<
    Ports,
    'store' | 'core' | 'ring' | 'clock' | 'usage' | 'people' | 'passwords' | 'identity' | 'log' | 'meter'
  > & {
    readonly passkeys: Passkeys;
    readonly provider: IdentityProvider | undefined;
  },
  authenticateAdmin: Operations['authenticateAdmin'],
): PeopleOperations => {
  const lockout = createLockout(ports);
  const claimedRoles = createClaimedRoles(ports);
  const sessions = createSessions(ports, authenticateAdmin, claimedRoles);
  const signIn = createSignIn(ports, sessions, lockout);
  const factors = createFactors(ports, sessions, signIn, lockout, claimedRoles);
  const passkeys = createPasskeyOperations(ports, sessions, signIn, factors, lockout);
  return {
    users: createUsers(ports, sessions),
    sessions: sessions.operations,
    signIn: {
      ...signIn.operations,
      secondFactor: (caller, given, from) =>
        'passkey' in given
          ? passkeys.giveSecond(caller, given.passkey, from)
          : factors.secondFactor(caller, given, from),
      hasPasskeys: () => ports.passkeys.available(),
    },
    factors: factors.operations,
    passkeys: passkeys.operations,
    openId: createOpenIdOperations(ports, sessions, signIn, lockout, claimedRoles),
    profile: createProfile(ports, sessions, signIn, lockout),
  };
};
