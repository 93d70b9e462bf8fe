// Snapshots, put together.

import { ServiceError } from '../../base/service-error.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findDefaultTenant } from '../shared/find.ts';
import type { JobBoard } from '../shared/job-board.ts';
import { findSnapshot } from './find-snapshot.ts';
import { makeSnapshot } from './make-snapshot.ts';
import { manageSnapshots } from './manage-snapshots.ts';
import { createOpenings } from './openings.ts';
import { restoreSnapshot } from './restore-snapshot.ts';
import { type SnapshotSchedule, scheduleSnapshots, type Timetable } from './schedule-snapshots.ts';
import type { SnapshotFolder } from './snapshot-folder.ts';
import type { SnapshotSettings } from './snapshot-settings.ts';
import type { SnapshotOperations } from './snapshots-operations.ts';
import { verifySnapshot } from './verify-snapshot.ts';

export interface Snapshots {
  readonly operations: SnapshotOperations;
  readonly schedule: SnapshotSchedule;
  /** Before anything is made. */
  settle(): Promise<void>;
}

export const createSnapshots = (
  ports: Ports,
  approvals: Approvals,
  settings: SnapshotSettings,
  folder: SnapshotFolder,
  timetable: Timetable,
  board: Pick<JobBoard, 'add'>,
): Snapshots => {
  const { store } = ports;
  const make = makeSnapshot(ports);
  const manage = manageSnapshots(ports, approvals, settings);
  const openings = createOpenings(ports);
  const verify = verifySnapshot(ports);
  const restore = restoreSnapshot(ports, approvals, settings);
  const schedule = scheduleSnapshots(ports, make, manage, timetable, board);
  return {
    schedule,
    // What another folder has is another node's to settle.
    settle: async () => {
      if (await folder.reached()) await manage.settle();
    },
    operations: {
      create: async (actor, tenantId) => {
        await folder.require();
        if (actor.reach === everyTenant)
          return make(actor, tenantId ?? (await findDefaultTenant(store.read)).id, 'requested');
        if (tenantId !== null && tenantId !== actor.reach) throw new ServiceError('not-found', 'tenant not found');
        return make(actor, actor.reach, 'requested');
      },
      list: manage.list,
      get: manage.get,
      exports: manage.exports,
      delete: manage.delete,
      undelete: manage.undelete,
      export: manage.export,
      import: manage.import,
      beginOpening: openings.begin,
      verify: async (actor, id, answer) => {
        await folder.require();
        // Opening a snapshot is a right for the whole platform, whichever tenant is acted in.
        await findSnapshot(store.read, id, undefined, answer === null ? actor.reach : everyTenant);
        const key = answer === null ? null : await openings.take(actor, id, answer.openingId, answer.sealedKey);
        return verify(actor, id, key);
      },
      restore: async (actor, id, answer, request) => {
        await folder.require();
        return restore(actor, id, await openings.take(actor, id, answer.openingId, answer.sealedKey), request);
      },
      schedule: () => Promise.resolve({ settings, next: schedule.next() }),
      ofKey: manage.ofKey,
    },
  };
};
