// Handlers of users.

import type { Operations } from '../../../operations/index.ts';
import { representPage } from '../represent.ts';
import { representInvited, representUser } from '../represent-people.ts';
import type { Handlers } from './handler.ts';

export const usersHandlers = ({ users }: Operations): Handlers['users'] => ({
  create: async ({ actor, grants: own, body }) => {
    const made = await users.create(actor, own, body);
    return { id: made.user.id, answer: representInvited(made) };
  },
  list: async ({ actor, query }) => representPage(await users.list(actor, query), representUser),
  get: async ({ actor, path }) => representUser(await users.get(actor, path.id)),
  update: async ({ actor, grants: own, path, body }) => representUser(await users.update(actor, own, path.id, body)),
  enable: async ({ actor, grants: own, path }) => representUser(await users.enable(actor, own, path.id)),
  disable: async ({ actor, grants: own, path }) => representUser(await users.disable(actor, own, path.id)),
  unlock: async ({ actor, grants: own, path }) => representUser(await users.unlock(actor, own, path.id)),
  resetPassword: async ({ actor, grants: own, path, body }) => {
    const made = await users.resetPassword(actor, own, path.id, body);
    return { id: made.user.id, answer: representInvited(made) };
  },
  removeFactors: async ({ actor, grants: own, path }) => representUser(await users.removeFactors(actor, own, path.id)),
  permissions: async ({ actor, path }) => {
    const { grants, rights } = await users.permissions(actor, path.id);
    return { grants, permissions: rights };
  },
  endSessions: async ({ actor, grants: own, path }) => ({ ended: await users.endSessions(actor, own, path.id) }),
  delete: async ({ actor, grants: own, path }) => representUser(await users.delete(actor, own, path.id)),
});
