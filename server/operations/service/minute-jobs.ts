// Checks that run once a minute, one after another. A job that fails is reported and tried again
// with the next minute.

import type { Fleet } from '../../ports/fleet.ts';
import type { Ports } from '../../ports/ports.ts';
import type { JobBoard } from '../shared/job-board.ts';

const everyMs = 60_000;
/** After the start, so that what was so in the meantime is known soon. */
const firstMs = 2_000;

export interface MinuteJobs {
  start(): void;
  stop(): Promise<void>;
}

/** `jobs`: by what they are about. */
export const createMinuteJobs = (
  { log, fleet }: Pick<Ports, 'log'> & { readonly fleet: Pick<Fleet, 'perform'> },
  jobs: Readonly<Record<string, () => Promise<void>>>,
  board: Pick<JobBoard, 'add'>,
): MinuteJobs => {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let stopped = false;
  const runs = Object.entries(jobs).map(
    ([about, job]) => [about, job, board.add(about, { duty: 'schedules', everyMs })] as const,
  );
  const run = async (): Promise<void> => {
    for (const [about, job, once] of runs) {
      if (stopped) return;
      await once(job).catch((error: unknown) => log.error(`${about} could not be checked`, { error }));
    }
  };
  const next = (afterMs: number): void => {
    timer = setTimeout(() => {
      // One node does it for all.
      running = fleet.perform('schedules', run).finally(() => {
        if (!stopped) next(everyMs);
      });
    }, afterMs);
    timer.unref();
  };
  return {
    start: () => next(firstMs),
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
};
