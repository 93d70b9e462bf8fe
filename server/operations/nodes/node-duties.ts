// Work that one node does for all. A node has a duty for a few seconds, by its own monotonic clock,
// and renews it as it continues with its work: a process that hangs loses it although its
// connections stay open, and so does one whose work for the duty makes no progress. Another node
// takes it over when it has seen no renewal for as long, by its own clock; so no two clocks are
// compared. Each owner has a higher fencing number than the one before: what an owner writes too
// late fails in its unit of work.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import { type Duty, duties } from '../../domain/node.ts';
import type { Log } from '../../ports/log.ts';
import type { DutyHold, DutyRow, NodeLink } from '../../ports/node-link.ts';
import type { Store } from '../../ports/store.ts';

export const leaseMs = 10_000;
/** Work that has neither ended, nor written, nor asked for its duty for so long is stuck. */
export const stuckAfterMs = 900_000;

/** Work under way. */
interface Performance {
  readonly hold: DutyHold;
  progressAt: number;
  over: boolean;
}

/** What the work of a duty throws when another node has it now. Nothing was changed. */
export class DutyLost extends ServiceError {
  constructor(duty: Duty) {
    super('unavailable', `another node has taken over the job ${duty}: nothing was changed`);
  }
}

export interface NodeDuties {
  holds(duty: Duty): boolean;
  /**
   * Runs `work` when this node has the duty: its units of work fail once another node has it.
   * Undefined: it has not.
   */
  perform<T>(duty: Duty, work: () => Promise<T>): Promise<T | undefined>;
  /** The duty that this work is part of; undefined: none. */
  current(): DutyHold | undefined;
  /** A store in which units of work of a duty fail once another node has the duty. */
  fence(store: Store): Store;
  /**
   * Renews what this node has and may have, gives up what it may not have, and takes what no node
   * renews. Answers what it has from now on.
   */
  tend(mayHave: (duty: Duty) => boolean): Promise<readonly Duty[]>;
  holders(): Promise<ReadonlyMap<string, readonly Duty[]>>;
  giveUpAll(): Promise<void>;
}

export const createNodeDuties = (
  link: Pick<NodeLink, 'renewDuties' | 'takeDuty' | 'giveUpDuty'>,
  { clock, log }: { readonly clock: Pick<Clock, 'monotonic'>; readonly log: Pick<Log, 'info' | 'warn'> },
  nodeId: string,
): NodeDuties => {
  const held = new Map<Duty, { readonly hold: DutyHold; until: number }>();
  /** Since when each row is as it is. */
  const seen = new Map<Duty, { readonly mark: string; readonly at: number }>();
  const running = new Set<Performance>();
  const contexts = new AsyncLocalStorage<Performance>();

  const current = (): Performance | undefined => {
    const performance = contexts.getStore();
    // Work that it started and that continues after its end is not part of it.
    return performance === undefined || performance.over ? undefined : performance;
  };
  const progress = (): void => {
    const performance = current();
    if (performance !== undefined) performance.progressAt = clock.monotonic();
  };
  const holds = (duty: Duty): boolean => {
    progress();
    const own = held.get(duty);
    return own !== undefined && clock.monotonic() < own.until;
  };
  const isStuck = (duty: Duty): boolean =>
    [...running].some(({ hold, progressAt }) => hold.duty === duty && clock.monotonic() - progressAt > stuckAfterMs);
  const giveUp = async (duty: Duty): Promise<void> => {
    const own = held.get(duty);
    held.delete(duty);
    if (own !== undefined) await link.giveUpDuty(own.hold);
  };
  const sinceWhen = (row: DutyRow): number => {
    const mark = `${row.nodeId} ${row.fence} ${row.renewals}`;
    const before = seen.get(row.duty);
    if (before?.mark === mark) return before.at;
    const at = clock.monotonic();
    seen.set(row.duty, { mark, at });
    return at;
  };
  /** Given up, of this node's last run, or renewed by no node for a lease. */
  const isFree = (row: DutyRow | undefined): boolean => {
    if (row === undefined) return true;
    const since = sinceWhen(row);
    return row.nodeId === null || row.nodeId === nodeId || clock.monotonic() - since >= leaseMs;
  };

  return {
    holds,
    perform: async (duty, work) => {
      const own = held.get(duty);
      if (own === undefined || !holds(duty)) return undefined;
      const performance: Performance = { hold: own.hold, progressAt: clock.monotonic(), over: false };
      running.add(performance);
      try {
        return await contexts.run(performance, work);
      } finally {
        performance.over = true;
        running.delete(performance);
      }
    },
    current: () => current()?.hold,
    fence: (store) => ({
      ...store,
      write: async (work, options) => {
        const performance = current();
        if (performance === undefined) return store.write(work, options);
        const value = await store.write(async (tx) => {
          if (!(await tx.nodes.hasDuty(performance.hold))) throw new DutyLost(performance.hold.duty);
          return work(tx);
        }, options);
        progress();
        return value;
      },
    }),
    tend: async (mayHave) => {
      for (const duty of held.keys()) if (!mayHave(duty)) await giveUp(duty);
      const renewing = [...held].flatMap(([duty, { hold }]) => (isStuck(duty) ? [] : [hold]));
      // The lease begins before the others can see that it was renewed.
      const began = clock.monotonic();
      const { rows, renewed } = await link.renewDuties(renewing);
      const byDuty = new Map(rows.map((row) => [row.duty, row]));
      const taken: Duty[] = [];
      for (const duty of duties) {
        const [row, own] = [byDuty.get(duty), held.get(duty)];
        if (own !== undefined && renewed.has(duty)) {
          // The lease had expired before this renewal: the duty's interrupted work is resumed.
          if (own.until < began) taken.push(duty);
          own.until = began + leaseMs;
        }
        if (own !== undefined && (row?.nodeId !== nodeId || row.fence !== own.hold.fence)) {
          held.delete(duty);
          log.warn('another node has taken over a job of this node', { duty });
        }
        const free = isFree(row);
        if (!free || held.has(duty) || !mayHave(duty) || isStuck(duty)) continue;
        const asked = clock.monotonic();
        const fence = await link.takeDuty(row ?? { duty, nodeId: null, fence: 0, renewals: 0 }, nodeId);
        if (fence === undefined) continue;
        held.set(duty, { hold: { duty, nodeId, fence }, until: asked + leaseMs });
        log.info('this node has taken over a job', { duty });
        taken.push(duty);
      }
      return taken;
    },
    holders: async () => {
      const { rows } = await link.renewDuties([]);
      const owned = rows.flatMap(({ duty, nodeId: owner }) => (owner === null ? [] : [{ duty, owner }]));
      return new Map(
        [...Map.groupBy(owned, ({ owner }) => owner)].map(([id, own]) => [id, own.map(({ duty }) => duty)]),
      );
    },
    giveUpAll: async () => {
      for (const duty of [...held.keys()]) await giveUp(duty);
    },
  };
};

/** A server with a store of its own has every duty. */
export const allDuties: NodeDuties = {
  holds: () => true,
  perform: (_duty, work) => work(),
  current: () => undefined,
  fence: (store) => store,
  tend: () => Promise.resolve([]),
  holders: () => Promise.resolve(new Map()),
  giveUpAll: () => Promise.resolve(),
};
