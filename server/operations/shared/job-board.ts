// What the service does by the clock, as people see it: when each job ran last on this node, how it
// ended, and when it is next. In memory: after a restart every job runs again within its interval,
// and a node that does not do a job names the one that does (decision 67).
//
// Nothing from outside reaches it. The text of a failure is that of the log, cut to a length, and
// only those who may see the state of the whole platform are shown it.

import type { Clock } from '../../base/time.ts';
import type { Duty } from '../../domain/node.ts';

const longestMessage = 300;

export interface JobPlan {
  /** The duty that it is part of: one node does it for all. */
  readonly duty: Duty;
  /** Null: at the times that `next` says. */
  readonly everyMs: number | null;
  readonly next?: () => number | null;
}

export interface JobState {
  readonly name: string;
  readonly duty: Duty;
  readonly everyMs: number | null;
  /** On this node, since it started; null: not yet. */
  readonly startedAt: number | null;
  readonly durationMs: number | null;
  readonly succeededAt: number | null;
  /** Since when each run has failed. */
  readonly failure: { readonly since: number; readonly message: string } | null;
  readonly running: boolean;
  /** Null: this node does not know. */
  readonly nextAt: number | null;
}

export interface JobBoard {
  /** Puts a job on the board. The answer does one run of it, and throws what `work` throws. */
  add(name: string, plan: JobPlan): <T>(work: () => Promise<T>) => Promise<T>;
  jobs(): readonly JobState[];
}

export const createJobBoard = (clock: Pick<Clock, 'now' | 'monotonic'>): JobBoard => {
  const states = new Map<string, { plan: JobPlan; state: Omit<JobState, 'nextAt'> }>();
  return {
    add: (name, plan) => {
      const { duty, everyMs } = plan;
      const kept = {
        plan,
        state: {
          ...{ name, duty, everyMs, running: false },
          ...{ startedAt: null, durationMs: null, succeededAt: null, failure: null },
        } as Omit<JobState, 'nextAt'>,
      };
      states.set(name, kept);
      const change = (to: Partial<JobState>): void => {
        kept.state = { ...kept.state, ...to };
      };
      return async (work) => {
        const from = clock.monotonic();
        change({ startedAt: clock.now(), running: true });
        const ended = (): Partial<JobState> => ({ running: false, durationMs: Math.round(clock.monotonic() - from) });
        try {
          const done = await work();
          change({ ...ended(), succeededAt: clock.now(), failure: null });
          return done;
        } catch (error) {
          const message = (error instanceof Error ? error.message : String(error)).slice(0, longestMessage);
          change({ ...ended(), failure: { since: kept.state.failure?.since ?? clock.now(), message } });
          throw error;
        }
      };
    },
    jobs: () =>
      [...states.values()].map(({ plan: { everyMs, next }, state }) => ({
        ...state,
        nextAt: next?.() ?? (everyMs === null || state.startedAt === null ? null : state.startedAt + everyMs),
      })),
  };
};
