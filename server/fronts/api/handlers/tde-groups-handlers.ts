// Handlers of groups of databases.

import type { Operations } from '../../../operations/index.ts';
import { representGroup, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const tdeGroupsHandlers = ({ tdeGroups }: Operations): Handlers['tdeGroups'] => ({
  create: async ({ actor, body }) => {
    const group = await tdeGroups.create(actor, body);
    return { id: group.id, answer: representGroup(group) };
  },
  list: async ({ actor, query }) => representPage(await tdeGroups.list(actor, query), representGroup),
  rename: async ({ actor, path, query, body }) => {
    if (query.dryRun !== true) return representGroup(await tdeGroups.rename(actor, path.id, body));
    const plan = await tdeGroups.planRename(actor, path.id, body);
    return { ...representGroup(await tdeGroups.get(actor, path.id)), plan };
  },
  get: async ({ actor, path }) => representGroup(await tdeGroups.get(actor, path.id)),
});
