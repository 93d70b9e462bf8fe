// Everything that a service does by the clock. A new job has its row here, or its line in
// `minuteTasks`.
//
// | job                        | interval                       | runs on                             |
// |----------------------------|--------------------------------|-------------------------------------|
// | housekeeping               | 200 ms; it prunes every minute | every node; one node prunes         |
// | external key stores        | `externalKeyStores.probeSeconds` of the configuration | one node     |
// | minute jobs                | 60 s, one after another        | one node                            |
// | delivery of notifications  | when there is something new    | one node                            |
// | scheduled snapshots        | `snapshots.schedule`; old ones are removed every hour | one node     |
// | forwarding of the logs     | when there is something new    | one node                            |
// | event loop delay           | 20 ms                          | every node                          |
//
// A node's heartbeat and its duties belong to the fleet (operations/nodes), and erasure runs are
// asked for by what they follow (operations/root/schedule-erasure.ts). What people see of the jobs
// is on the board (operations/shared/job-board.ts).

import { Cron } from 'croner';
import type { Timetable } from '../operations/snapshots/schedule-snapshots.ts';
import type { Log } from '../ports/log.ts';
import type { Lifecycle } from './lifecycle.ts';

interface Job {
  start?(): unknown;
  stop(): unknown;
}

/** What is done once a minute, in this order: by what it is about. */
export const minuteTasks = (tasks: {
  readonly deadlines: { advance(): Promise<void> };
  readonly store: { checkFile(): Promise<void> };
  readonly approvals: { expire(): Promise<void> };
  readonly retention: { run(): Promise<void> };
  readonly clearDeletedUsers: () => Promise<void>;
  readonly recoverMissing: () => Promise<void>;
  readonly notifications: { check(): Promise<void> };
  readonly requestMinutes: { run(): Promise<void> };
}): Readonly<Record<string, () => Promise<void>>> => ({
  // First: the others decide by it what they destroy.
  'the clock': tasks.deadlines.advance,
  'the file of the database': () => tasks.store.checkFile(),
  'approval requests': tasks.approvals.expire,
  'deleted tenants': tasks.retention.run,
  'deleted users': tasks.clearDeletedUsers,
  'missing snapshots': tasks.recoverMissing,
  notifications: () => tasks.notifications.check(),
  'the request log': tasks.requestMinutes.run,
});

export interface Jobs {
  readonly erasure: { stop(): unknown };
  readonly housekeeping: Job;
  readonly externalKeyStores: Job;
  readonly minuteJobs: Job;
  readonly requestMinutes: { stop(): unknown };
  readonly delivery: { start(): void; stop(graceMs: number): Promise<void> };
  readonly snapshots: Job;
  readonly meter: Job;
}

/**
 * How long messages and files that are under way may take when the service stops: each part of the
 * service, and all of them together.
 */
const [partGraceMs, stopGraceMs] = [1_000, 1_500] as const;

/** What a part may take of the time that is left since the first one has asked. */
export type StopGrace = () => number;
export const createStopGrace = (): StopGrace => {
  let until: number | undefined;
  return () => {
    const now = performance.now();
    until ??= now + stopGraceMs;
    return Math.min(partGraceMs, Math.max(0, until - now));
  };
};

/**
 * Starts the jobs. They stop in reverse order: what makes work stops before what carries it out.
 */
export const startJobs = async (lifecycle: Lifecycle, jobs: Jobs, grace: StopGrace): Promise<void> => {
  await lifecycle.start('the meter', jobs.meter);
  await lifecycle.start('housekeeping', jobs.housekeeping);
  // An erasure run is only stopped here: it writes until it has ended, and the next start requests
  // it again.
  await lifecycle.start('the erasure run', jobs.erasure);
  await lifecycle.start('the delivery of notifications', {
    start: () => jobs.delivery.start(),
    stop: () => jobs.delivery.stop(grace()),
  });
  await lifecycle.start('the jobs of every minute', jobs.minuteJobs);
  await lifecycle.start('the hashes of the request log', jobs.requestMinutes);
  await lifecycle.start('the checks of external key stores', jobs.externalKeyStores);
  await lifecycle.start('scheduled snapshots', jobs.snapshots);
};

export const createTimetable =
  (log: Log): Timetable =>
  (expression, due) => {
    const job = new Cron(
      expression,
      {
        timezone: 'UTC',
        protect: true,
        unref: true,
        catch: (error: unknown) => log.error('scheduled snapshots failed', { error }),
      },
      due,
    );
    return { next: () => job.nextRun()?.getTime() ?? null, stop: () => job.stop() };
  };
