// Files that left the service are listed, and an operator confirms that they are destroyed: the
// service cannot see it. The confirmation stands in the audit log, and what waited for the file is
// concluded from it.

import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { OutsideCopy } from '../../domain/copies.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { byId, each, pageOf } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { CopyOperations } from './interface.ts';

const find = async (from: Pick<Repositories, 'outsideCopies'>, reach: TenantScope, id: string) => {
  const found = await from.outsideCopies.get(id);
  if (found === undefined || (reach !== everyTenant && found.tenantId !== reach))
    throw new ServiceError('not-found', 'copy not found');
  return found;
};

export const manageCopies = ({
  store,
  clock,
  erasure,
}: Pick<Ports, 'store' | 'clock' | 'erasure'>): CopyOperations => ({
  list: async ({ reach }, query) => {
    const tenantId = reach === everyTenant ? query.tenantId : reach;
    // A caller who asks for another tenant than their own gets an empty list.
    if (query.tenantId !== undefined && query.tenantId !== tenantId) return { items: [], next: null };
    return pageOf(query, (window) => store.read.outsideCopies.list({ ...query, tenantId }, window), byId);
  },
  get: ({ reach }, id) => find(store.read, reach, id),
  confirmDestroyed: async (actor: TenantActor, id, andOlder) => {
    const confirmed = await store.write(async (tx) => {
      const named = await find(tx, actor.reach, id);
      if (named.integrity !== 'ok')
        throw new ServiceError('key-tampered', `the row of the copy ${id} was changed from outside`, {
          hint: 'dke verify names every such row; compare the database with a backup (docs/faults.md)',
        });
      if (named.destroyedAt !== null) throw new ServiceError('conflict', 'this copy is already confirmed as destroyed');
      const all: OutsideCopy[] = [named];
      const { kind, tenantId } = named;
      if (andOlder)
        for await (const copy of each(
          (window) => tx.outsideCopies.list({ kind, left: true, tenantId: tenantId ?? undefined }, window),
          byId,
        ))
          if (copy.id !== id && copy.at <= named.at && copy.tenantId === tenantId) all.push(copy);
      const after: OutsideCopy[] = [];
      for (const copy of all) {
        // A copy whose row was changed from outside is answered unchanged, and not marked as
        // destroyed: nothing is concluded from such a row.
        if (copy.integrity !== 'ok') {
          after.push(copy);
          continue;
        }
        const destroyed: OutsideCopy = { ...copy, destroyedAt: clock.now() };
        await tx.outsideCopies.update(destroyed);
        await recordEvent(tx, 'copy.destroyed', actor, about('copy', copy), {
          copyKind: copy.kind,
          at: toRfc3339(copy.at),
          ...(copy.snapshotId === null ? {} : { snapshotId: copy.snapshotId }),
        });
        after.push(destroyed);
      }
      return after;
    });
    erasure.schedule();
    return confirmed;
  },
});
