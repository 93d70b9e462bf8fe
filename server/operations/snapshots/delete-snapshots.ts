// Snapshots are deleted, for some days in a way that can be undone, and then purged.

import { toRfc3339 } from '../../base/time.ts';
import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { listSnapshots } from './erase-destroyed.ts';
import { findSnapshot, requireFile } from './find-snapshot.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';

const day = 86_400_000;

export const deleteSnapshots = (
  { store, archive, deadlines }: Pick<Ports, 'store' | 'archive' | 'deadlines'>,
  settings: Pick<SnapshotSettings, 'keepCount' | 'keepDays' | 'undeleteDays'>,
) => {
  const remove = async (actor: Actor, id: string, reach: TenantScope): Promise<Snapshot> =>
    store.write(async (tx) => {
      const before = await findSnapshot(tx, id, ['available', 'missing'], reach);
      const deletedAt = await deadlines.latest();
      // There is no file to undelete: the person who deletes the snapshot confirms that it is
      // destroyed.
      if (before.state === 'missing') {
        const purged: Snapshot = { ...before, state: 'purged', deletedAt, purgedAt: deletedAt };
        await tx.snapshots.update(purged);
        await recordEvent(tx, 'snapshot.purged', actor, about('snapshot', before), { origin: before.origin });
        return purged;
      }
      const after: Snapshot = { ...before, state: 'deleted', deletedAt };
      await tx.snapshots.update(after);
      await recordEvent(tx, 'snapshot.deleted', actor, about('snapshot', before), {
        origin: before.origin,
        purgeAt: toRfc3339(deletedAt + settings.undeleteDays * day),
      });
      return after;
    });

  return {
    delete: (actor: TenantActor, id: string) => remove(actor, id, actor.reach),
    undelete: (actor: TenantActor, id: string): Promise<Snapshot> =>
      store.write(async (tx) => {
        const before = await findSnapshot(tx, id, ['deleted'], actor.reach);
        await requireFile(archive, id);
        const after: Snapshot = { ...before, state: 'available', deletedAt: null };
        await tx.snapshots.update(after);
        await recordEvent(tx, 'snapshot.undeleted', actor, about('snapshot', before), { origin: before.origin });
        return after;
      }),
    /**
     * Scheduled ones that are too many or too old are deleted, and what was deleted long enough ago
     * is purged.
     */
    tidy: async (actor: Actor): Promise<void> => {
      const now = await deadlines.now();
      const held = await listSnapshots(store.read, ['available']);
      const scheduled = Map.groupBy(
        held.filter(({ origin }) => origin === 'scheduled'),
        ({ tenantId }) => tenantId,
      );
      for (const own of scheduled.values()) {
        const newestFirst = own.toSorted((one, other) => other.createdAt - one.createdAt);
        for (const [at, snapshot] of newestFirst.entries()) {
          const tooMany = settings.keepCount !== null && at >= settings.keepCount;
          const tooOld = settings.keepDays !== null && now - snapshot.createdAt > settings.keepDays * day;
          // The newest one is never too old: it may be the last there is.
          if (tooMany || (tooOld && at > 0)) await remove(actor, snapshot.id, everyTenant);
        }
      }
      // Where the folder is away, files cannot be removed.
      if (!(await archive.reached())) return;
      const isDue = ({ deletedAt }: Snapshot): boolean =>
        deletedAt !== null && now - deletedAt >= settings.undeleteDays * day;
      for (const { id } of (await listSnapshots(store.read, ['deleted'])).filter(isDue)) {
        await store.write(async (tx) => {
          // The snapshot may have been undeleted in the meantime, and its file is needed then: the
          // file is removed in the unit of work that decides.
          const snapshot = await tx.snapshots.get(id);
          if (snapshot?.state !== 'deleted' || !isDue(snapshot)) return;
          await archive.remove(id);
          await tx.snapshots.update({ ...snapshot, state: 'purged', purgedAt: now, integrity: 'ok' });
          await recordEvent(tx, 'snapshot.purged', actor, about('snapshot', snapshot), { origin: snapshot.origin });
        });
      }
    },
  };
};
