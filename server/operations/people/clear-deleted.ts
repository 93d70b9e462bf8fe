// Users that an earlier version deleted kept their name and e-mail address: they are removed once,
// a user at a time. A check that is cut off continues with those that are left. A row that was
// changed from outside stays as it is; `dke verify` names it.

import { newId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { byId, each } from '../shared/paging.ts';
import { endSessionsOf, isWithoutPerson, recordUser, removeFactorsOf, withoutPerson } from './user-records.ts';

export const clearDeletedUsers =
  ({ store, clock }: Pick<Ports, 'store' | 'clock'>) =>
  async (): Promise<void> => {
    for await (const { id } of each(store.read.users.listUncleared, byId))
      await store.write(async (tx) => {
        const user = await tx.users.get(everyTenant, id);
        if (user?.state !== 'deleted' || user.integrity !== 'ok') return;
        // Another node may have done it since the list was read.
        if (isWithoutPerson(user)) return;
        await tx.users.update(withoutPerson(user));
        await removeFactorsOf(tx, id);
        await endSessionsOf(tx, id);
        await recordUser(tx, 'user.cleared', serviceActor(newId(clock.now())), user, {});
      });
  };
