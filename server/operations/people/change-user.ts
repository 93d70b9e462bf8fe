// One change of a user: by an administrator who may manage them, with its record. Sessions end when
// what the user may do has changed.

import { ServiceError } from '../../base/service-error.ts';
import { type Grant, lastingGrants } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { UserView } from '../../domain/user.ts';
import type { StoredUser } from '../../ports/people.ts';
import type { Repositories } from '../../ports/store.ts';
import { completeGrants, nameGrant } from '../access/grants.ts';
import { checkName } from '../shared/names.ts';
import type { UserOperations } from './people-operations.ts';
import type { Sessions } from './session-secrets.ts';
import { viewUser } from './shown-users.ts';
import { endSessionsOf, recordUser, type UserPorts } from './user-records.ts';
import {
  checkEmail,
  checkGrants,
  checkSubject,
  findManaged,
  findNamingVault,
  isSupreme,
  refuseAwaitedApprover,
  refuseLast,
  refuseNamedApprover,
  refuseOneself,
  requireLasting,
  requireSubjectRight,
} from './user-rules.ts';

export type ChangeUser = (
  actor: TenantActor,
  own: readonly Grant[],
  id: string,
  work: (tx: Repositories, before: StoredUser) => Promise<StoredUser>,
) => Promise<UserView>;

/** What sessions were believed to be is forgotten. */
export const createChangeUser =
  (ports: UserPorts, sessions: Sessions): ChangeUser =>
  async (actor, own, id, work) => {
    const view = await ports.store.write(async (tx) =>
      viewUser(ports, tx, await work(tx, await findManaged(tx, actor, own, id))),
    );
    sessions.forget();
    return view;
  };

export const updateUser =
  ({ store }: Pick<UserPorts, 'store'>, change: ChangeUser): UserOperations['update'] =>
  async (actor, own, id, { displayName, email, subject, mustChangePassword, grants: given }) => {
    checkEmail(email);
    checkSubject(subject);
    const grants = completeGrants(actor, given);
    const naming = await findNamingVault(store.read, id);
    return change(actor, own, id, async (tx, before) => {
      // One of before there were today's rules stays.
      if (displayName !== before.displayName) checkName(displayName);
      const sameRoles =
        JSON.stringify(before.grants.map(nameGrant).sort()) === JSON.stringify(grants.map(nameGrant).sort());
      if (!sameRoles) {
        refuseOneself(actor, id, 'change their own roles');
        await checkGrants(tx, grants, own);
        requireLasting(own, grants);
        if (!isSupreme(grants)) await refuseLast(tx, before);
      }
      if (subject !== before.subject) {
        requireSubjectRight(lastingGrants(own));
        await refuseNamedApprover(tx, id, naming);
        await refuseAwaitedApprover(tx, id);
      }
      if (subject !== null && subject !== before.subject && (await tx.users.findBySubject(subject)) !== undefined)
        throw new ServiceError('conflict', 'a user with this subject already exists', {
          hint: 'a subject can belong to only one user: run dke user list to find it',
        });
      const after: StoredUser = { ...before, displayName, email, subject, mustChangePassword, grants };
      const changed = (['displayName', 'email', 'subject', 'mustChangePassword'] as const).filter(
        (member) => before[member] !== after[member],
      );
      if (changed.length === 0 && sameRoles) return before;
      await tx.users.update(after);
      const ends = !sameRoles || before.subject !== subject;
      const sessionsEnded = ends ? await endSessionsOf(tx, id) : 0;
      await recordUser(tx, 'user.changed', actor, after, {
        name: after.name,
        changed: [...changed, ...(sameRoles ? [] : ['roles'])],
        ...(sameRoles ? {} : { roles: grants.map(nameGrant) }),
        sessionsEnded,
      });
      return after;
    });
  };
