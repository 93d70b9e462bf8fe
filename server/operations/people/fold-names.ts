// Names of users are found as they are folded (domain/user.ts). Rows of a version that folded some
// names otherwise are found by no spelling, so they are written again, once.

import { everyTenant } from '../../domain/tenant.ts';
import { foldUserName } from '../../domain/user.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each } from '../shared/paging.ts';

/** The way in which the names in the rows are folded: a new number folds them again. */
export const foldedNames = { setting: 'folded-names', version: '2' } as const;

export const foldNames = async (tx: Repositories): Promise<void> => {
  // Where two names have become one, its first owner is found by it. An administrator removes the
  // other.
  for await (const user of each((window) => tx.users.list(everyTenant, window), byId))
    if (user.integrity === 'ok' && (await tx.users.findByName(foldUserName(user.name))) === undefined)
      await tx.users.update(user);
  await tx.settings.set(foldedNames.setting, foldedNames.version);
};
