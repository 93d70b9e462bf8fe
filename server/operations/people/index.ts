// People, put together.

import type { Ports } from '../../ports/ports.ts';
import type { Operations } from '../index.ts';
import type { PeopleOperations } from './face.ts';
import { createFactors } from './factors.ts';
import { createLockout } from './lockout.ts';
import { createProfile } from './profile.ts';
import { createSessions } from './sessions.ts';
import { createSignIn } from './sign-in.ts';
import { createUsers } from './users.ts';

export const createPeople = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'clock' | 'usage' | 'people' | 'passwords' | 'identity' | 'log'>,
  authenticateAdmin: Operations['authenticateAdmin'],
): PeopleOperations => {
  const lockout = createLockout(ports);
  const sessions = createSessions(ports, authenticateAdmin);
  const signIn = createSignIn(ports, sessions, lockout);
  const factors = createFactors(ports, sessions, signIn, lockout);
  return {
    users: createUsers(ports, sessions),
    sessions: sessions.operations,
    signIn: { ...signIn.operations, secondFactor: factors.secondFactor },
    factors: factors.operations,
    profile: createProfile(ports, sessions, signIn, lockout),
  };
};
