// Users, as administrators manage them. They manage only users whose roles they could give:
// otherwise a person who resets passwords could act as any user.

import { effectivePermissions } from '../../domain/access.ts';
import { foldUserName } from '../../domain/user.ts';
import type { StoredUser } from '../../ports/people.ts';
import { byId, pageOf } from '../shared/paging.ts';
import { createChangeUser, updateUser } from './change-user.ts';
import { createUser } from './create-user.ts';
import { failuresKey } from './lockout.ts';
import type { UserOperations } from './people-operations.ts';
import { resetPassword } from './reset-password.ts';
import type { Sessions } from './session-secrets.ts';
import { viewUser } from './shown-users.ts';
import { endSessionsOf, recordUser, removeFactorsOf, type UserPorts, withoutPerson } from './user-records.ts';
import {
  findNamingVault,
  findUser,
  refuseLast,
  refuseNamedApprover,
  refuseOneself,
  requireLasting,
} from './user-rules.ts';

export const createUsers = (ports: UserPorts, sessions: Sessions): UserOperations => {
  const { store, ring } = ports;
  const change = createChangeUser(ports, sessions);
  return {
    create: createUser(ports),
    update: updateUser(ports, change),
    resetPassword: resetPassword(ports, change),

    list: async ({ reach }, query) => {
      const page = await pageOf(query, (window) => store.read.users.list(reach, window), byId);
      const factors = Map.groupBy(await store.read.factors.listOf(page.items.map(byId)), ({ userId }) => userId);
      const items = [];
      for (const user of page.items) items.push(await viewUser(ports, store.read, user, factors.get(user.id) ?? []));
      return { items, next: page.next };
    },
    get: async ({ reach }, id) => viewUser(ports, store.read, await findUser(store.read, reach, id)),

    enable: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        if (before.state === 'active') return before;
        requireLasting(own, before.grants);
        const after: StoredUser = { ...before, state: 'active' };
        await tx.users.update(after);
        await recordUser(tx, 'user.enabled', actor, after, { name: after.name });
        return after;
      }),

    disable: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        if (before.state === 'disabled') return before;
        refuseOneself(actor, id, 'disable themselves');
        await refuseLast(tx, before);
        const after: StoredUser = { ...before, state: 'disabled' };
        await tx.users.update(after);
        const sessionsEnded = await endSessionsOf(tx, id);
        await recordUser(tx, 'user.disabled', actor, after, { name: before.name, sessionsEnded });
        return after;
      }),

    unlock: (actor, own, id) =>
      change(actor, own, id, async (tx, user) => {
        const key = failuresKey(ring, 'user', foldUserName(user.name));
        if ((await tx.failures.get(key)) === undefined) return user;
        await tx.failures.remove(key);
        await recordUser(tx, 'user.unlocked', actor, user, { name: user.name });
        return user;
      }),

    removeFactors: async (actor, own, id) => {
      const naming = await findNamingVault(store.read, id);
      return change(actor, own, id, async (tx, user) => {
        refuseOneself(actor, id, 'remove all their own second factors');
        requireLasting(own, user.grants);
        await refuseNamedApprover(tx, id, naming);
        for (const { kind, name, confirmedAt } of await tx.factors.list(id))
          if (kind !== 'recovery-code' && confirmedAt !== null)
            await recordUser(tx, 'second-factor.removed', actor, user, {
              name: user.name,
              kind,
              factor: name,
              by: 'administrator',
            });
        await removeFactorsOf(tx, id);
        await endSessionsOf(tx, id);
        return user;
      });
    },

    delete: (actor, own, id) =>
      change(actor, own, id, async (tx, before) => {
        refuseOneself(actor, id, 'delete themselves');
        await refuseLast(tx, before);
        const after = withoutPerson(before);
        await tx.users.update(after);
        await removeFactorsOf(tx, id);
        const sessionsEnded = await endSessionsOf(tx, id);
        await recordUser(tx, 'user.deleted', actor, after, { name: before.name, sessionsEnded });
        return after;
      }),

    permissions: async ({ reach }, id) => {
      const { grants, state } = await findUser(store.read, reach, id);
      return { grants, rights: state === 'active' ? effectivePermissions(grants) : [] };
    },

    endSessions: async (actor, own, id) => {
      let ended = 0;
      await change(actor, own, id, async (tx, user) => {
        ended = await endSessionsOf(tx, id);
        if (ended > 0) await recordUser(tx, 'session.ended', actor, user, { name: user.name, by: 'administrator' });
        return user;
      });
      return ended;
    },
  };
};
