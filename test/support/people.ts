// A user who has chosen a password, in a service of this process.
import type { ServiceErrorCode } from '../../server/base/service-error.ts';
import type { Grant, Role } from '../../server/domain/access.ts';
import { type Approval, ApprovalNeeded } from '../../server/domain/approval.ts';
import type { UserView } from '../../server/domain/user.ts';
import type { Operations } from '../../server/operations/index.ts';
import type { SignInOrigin, StartedSession } from '../../server/operations/people/people-operations.ts';
import { administrator } from './open-service.ts';

export const everything: readonly Grant[] = [{ role: 'administrator', scope: null, tenantId: null }];
export const goodPassword = 'a sentence that nobody guesses';
/** Passwords are passed as bytes, which the receiver wipes. */
export const bytesOf = (text: string): Buffer => Buffer.from(text, 'utf8');

let addresses = 0;
/** From an address of its own, so that no test waits for another's attempts. */
export const originOf = (more: Partial<SignInOrigin> = {}): SignInOrigin => {
  addresses += 1;
  const peer = `10.1.${addresses >> 8}.${addresses & 255}`;
  return { requestId: 'call-1', peer, agent: 'a browser', before: undefined, ...more };
};

export const inviteUser = async (
  { users }: Pick<Operations, 'users'>,
  name: string,
  role: Role = 'auditor',
): Promise<{ readonly user: UserView; readonly invitation: string }> => {
  const { user, invitation } = await users.create(administrator, everything, {
    name,
    grants: [{ role, scope: null, tenantId: null }],
  });
  if (invitation === null) throw new Error('the user was not invited');
  return { user, invitation: invitation.token };
};

/**
 * The session in which the password was chosen. An auditor cannot change anything, so no second
 * factor is required.
 */
export const makeUser = async (
  operations: Pick<Operations, 'users' | 'signIn'>,
  name: string,
  role: Role = 'auditor',
): Promise<{ readonly user: UserView; readonly session: StartedSession }> => {
  const { user, invitation } = await inviteUser(operations, name, role);
  return { user, session: await operations.signIn.redeem(invitation, bytesOf(goodPassword), originOf()) };
};

/** The code of the error that work ends with. */
export const errorOf = async (work: Promise<unknown>): Promise<ServiceErrorCode> => {
  try {
    await work;
  } catch (error) {
    return (error as { code: ServiceErrorCode }).code;
  }
  throw new Error('it did not fail');
};

/** The approval request of the pending work. */
export const waits = async (work: Promise<unknown>): Promise<Approval> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof ApprovalNeeded) return error.request;
    throw error;
  }
  throw new Error('it did not wait');
};
