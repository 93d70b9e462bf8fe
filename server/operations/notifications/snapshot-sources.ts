// What people are told about snapshots: there is none, the last one failed, it is old, or none was
// opened with a recovery key.

import { serviceTenantId } from '../../base/ids.ts';
import type { Clock } from '../../base/time.ts';
import { toRfc3339 } from '../../base/time.ts';
import { type Condition, dayMs } from '../../domain/notification.ts';
import type { Repositories } from '../../ports/store.ts';
import { listSnapshots } from '../snapshots/erase-destroyed.ts';
import { lastOpenedAt } from '../snapshots/last-opening.ts';
import type { NotificationSource } from './watch.ts';

const snapshotDays = 7;
/** With a recovery key: the first snapshot, and then again. */
const firstOpeningDays = 7;
const openingDays = 183;

/** `schedule`: by which snapshots are made; null: none is made by the clock. */
export const snapshotSources = (
  { read, clock }: { readonly read: Repositories; readonly clock: Pick<Clock, 'now'> },
  schedule: string | null,
): readonly NotificationSource[] => {
  /** What has no backup. */
  const noSnapshots = async (): Promise<readonly Condition[]> => {
    const live = (await read.recoveryKeys.list()).filter(({ removedAt }) => removedAt === null);
    const none = (tenantId: string, name: string, reason: string): Condition => ({
      kind: 'snapshot.none',
      tenantId,
      subject: { kind: 'tenant', id: tenantId, name },
      harmAt: null,
      details: { reason },
    });
    // A schedule that makes none.
    if (schedule !== null && live.length === 0)
      return [none(serviceTenantId, 'any tenant', 'there is a schedule but no recovery key')];
    const held = new Set((await listSnapshots(read, ['available'])).map(({ tenantId }) => tenantId));
    const found: Condition[] = [];
    for (const { id, name, state, createdAt } of await read.tenants.list()) {
      const isLive = state === 'active' || state === 'suspended';
      if (!isLive || held.has(id) || createdAt > clock.now() - dayMs) continue;
      if ((await read.tenants.contents(id)).keys > 0)
        found.push(none(id, name, live.length === 0 ? 'there is no recovery key' : 'none was created'));
    }
    return found;
  };

  const snapshots = async (): Promise<readonly Condition[]> => {
    const found: Condition[] = [];
    const made = await listSnapshots(read, ['available', 'failed', 'missing']);
    for (const [tenantId, own] of Map.groupBy(made, (each) => each.tenantId)) {
      const [last] = own.toSorted((one, other) => other.createdAt - one.createdAt);
      if (last === undefined) continue;
      const subject = { kind: 'snapshot', id: last.id, name: toRfc3339(last.createdAt) };
      if (last.state !== 'available' || last.verification?.valid === false)
        found.push({
          kind: 'snapshot.failed',
          tenantId,
          subject,
          harmAt: null,
          details: { state: last.state, reason: last.failure ?? last.verification?.finding ?? null },
        });
      const sound = own.filter(({ state, verification }) => state === 'available' && verification?.valid !== false);
      const openedAt = await lastOpenedAt(read, tenantId, own);
      const dueAt =
        openedAt === null
          ? Math.min(...sound.map(({ createdAt }) => createdAt)) + firstOpeningDays * dayMs
          : openedAt + openingDays * dayMs;
      if (sound.length > 0 && dueAt <= clock.now()) {
        const name = (await read.tenants.stored(tenantId))?.name ?? tenantId;
        found.push({
          kind: 'snapshot.unopened',
          tenantId,
          subject: { kind: 'tenant', id: tenantId, name },
          harmAt: dueAt,
          details: { openedAt: openedAt === null ? null : toRfc3339(openedAt) },
        });
      }
      const [newest] = sound.toSorted((one, other) => (other.verifiedAt ?? 0) - (one.verifiedAt ?? 0));
      const verified = newest?.verifiedAt ?? 0;
      if (newest !== undefined && verified < clock.now() - snapshotDays * dayMs)
        found.push({
          kind: 'snapshot.old',
          tenantId,
          subject: { kind: 'snapshot', id: newest.id, name: toRfc3339(newest.createdAt) },
          harmAt: verified + snapshotDays * dayMs,
          details: { verifiedAt: newest.verifiedAt === null ? null : toRfc3339(newest.verifiedAt) },
        });
    }
    return found;
  };

  return [
    {
      about: 'snapshots',
      kinds: ['snapshot.failed', 'snapshot.old', 'snapshot.unopened'],
      every: 'minute',
      look: snapshots,
    },
    { about: 'what has no snapshot', kinds: ['snapshot.none'], every: 'minute', look: noSnapshots },
  ];
};
