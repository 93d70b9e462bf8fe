// A user's name and password. A user who is not there costs the same work and gets the same answer
// as one whose password is another.

import { ServiceError } from '../../base/service-error.ts';
import { foldUserName } from '../../domain/user.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Lockout } from './lockout.ts';
import type { SignInOperations } from './people-operations.ts';
import type { SignIn, SignInPorts } from './sign-in.ts';

/** Why the audit log says that it was refused. The caller is told none of it. */
const reasonOf = (user: StoredUser | undefined): string => {
  if (user === undefined) return 'unknown-user';
  if (user.integrity !== 'ok') return 'tampered';
  if (user.state !== 'active') return 'disabled';
  return user.password === null ? 'no-password' : 'wrong-password';
};

export const createSignInByPassword =
  (
    { store, passwords }: Pick<SignInPorts, 'store' | 'passwords'>,
    { signIn: { refuse, admit }, lockout }: { readonly signIn: SignIn; readonly lockout: Lockout },
  ): SignInOperations['byPassword'] =>
  async (name, password, from) => {
    try {
      const folded = foldUserName(name);
      const attempt = await lockout.begin(folded, from.peer);
      const user = await store.read.users.findByName(folded);
      const sound = user !== undefined && user.integrity === 'ok' && user.state === 'active';
      const verdict = await passwords.verify(password, sound ? user.password : null, from.peer);
      if (!sound || verdict === 'wrong') {
        await refuse({ method: 'password', reason: reasonOf(user), user }, attempt, from);
        throw new ServiceError('unauthenticated', 'the user name or password is wrong', {
          hint: 'an administrator can send you an invitation to set a new password',
        });
      }
      const outdated = verdict === 'outdated' ? await passwords.hash(password, from.peer) : undefined;
      return await admit(user, { method: 'password', proved: 1 }, attempt, from, async (tx, current) => {
        if (outdated === undefined) return current;
        const after = { ...current, password: outdated };
        await tx.users.update(after);
        return after;
      });
    } finally {
      password.fill(0);
    }
  };
