// Snapshots by the clock: one of each tenant at the times of the configuration file, and once an
// hour what is too old goes.

import { newId } from '../../base/ids.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { JobBoard } from '../shared/job-board.ts';
import type { makeSnapshot } from './make-snapshot.ts';
import type { manageSnapshots } from './manage-snapshots.ts';

/** Calls back at the times of a cron expression; app/service.ts gives it. */
export type Timetable = (
  expression: string,
  due: () => Promise<void>,
) => { readonly next: () => number | null; stop(): void };

export interface SnapshotSchedule {
  start(): void;
  /** Milliseconds since the epoch; null: none is made by the clock. */
  next(): number | null;
  /** One of each tenant now. */
  run(): Promise<readonly Snapshot[]>;
  stop(): Promise<void>;
}

const tidyEveryMs = 3_600_000;

export const scheduleSnapshots = (
  { store, clock, log, fleet }: Pick<Ports, 'store' | 'clock' | 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  make: ReturnType<typeof makeSnapshot>,
  manage: Pick<ReturnType<typeof manageSnapshots>, 'tidy' | 'settings'>,
  timetable: Timetable,
  board: Pick<JobBoard, 'add'>,
): SnapshotSchedule => {
  let job: ReturnType<Timetable> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<unknown> = Promise.resolve();
  const actor = () => serviceActor(newId(clock.now()));
  const run = async (onFailure: (error: unknown) => void = () => undefined): Promise<readonly Snapshot[]> => {
    const made: Snapshot[] = [];
    for (const { id, state } of await store.read.tenants.list()) {
      if (state !== 'active' && state !== 'suspended') continue;
      try {
        made.push(await make(actor(), id, 'scheduled'));
      } catch (error) {
        log.error('a scheduled snapshot could not be created', { tenantId: id, error });
        onFailure(error);
      }
    }
    await manage.tidy(actor());
    return made;
  };
  const tidyOnce = board.add('old snapshots', { duty: 'schedules', everyMs: tidyEveryMs });
  const next = (): number | null => job?.next() ?? null;
  const runOnce =
    manage.settings().schedule === null
      ? undefined
      : board.add('scheduled snapshots', { duty: 'schedules', everyMs: null, next });
  /** A run in which a snapshot failed is one that failed, when the others are made. */
  const makeAll = async (): Promise<void> => {
    const failures: unknown[] = [];
    await run((error) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  };
  const tidy = (): void => {
    running = running
      .then(() => fleet.perform('schedules', () => tidyOnce(() => manage.tidy(actor()))))
      .catch((error: unknown) => log.error('old snapshots could not be removed', { error }));
  };
  return {
    start: () => {
      const { schedule } = manage.settings();
      if (schedule !== null)
        job = timetable(schedule, async () => {
          // One node does it for all.
          const due = (): Promise<unknown> =>
            // Each failure is in the log.
            fleet.perform('schedules', () => runOnce?.(makeAll).catch(() => undefined) ?? Promise.resolve());
          running = running.then(due, due);
          await running;
        });
      timer = setInterval(tidy, tidyEveryMs);
      timer.unref();
      tidy();
    },
    next,
    run: () => run(),
    stop: async () => {
      job?.stop();
      clearInterval(timer);
      await running.catch(() => undefined);
    },
  };
};
