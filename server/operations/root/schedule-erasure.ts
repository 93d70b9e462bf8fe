// When erasure runs run: soon after destructions, which are collected for one run, and again when
// one failed or is held back.

import { rotationSetting } from '../../domain/changes.ts';
import type { ErasureBlockers, ErasureRuns, ErasureState } from '../../ports/erasure.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { Repositories } from '../../ports/store.ts';
import { DutyLost } from '../nodes/node-duties.ts';
import { recoverMissing } from '../snapshots/recover-missing.ts';
import { isConclusionDue, isRunDue } from './conclude-erasure.ts';
import { Interrupted, missingFor, type Outcome, type RunPorts, runErasure } from './run-erasure.ts';
import { readToldErasure, writeToldErasure } from './told-erasure.ts';

export interface ErasureScheduler extends ErasureRuns {
  /**
   * Finishes a run that was interrupted, or starts one for destructions that have not had theirs.
   * Called at start.
   */
  resume(): Promise<void>;
  /** Interrupts a run that is under way, and resolves when none is. None begins afterwards. */
  stop(): Promise<void>;
}

/** A run has begun, or was asked for, and is not over. */
const isRequested = async ({ decisions }: Pick<Repositories, 'decisions'>): Promise<boolean> =>
  (await decisions.get('erasure-started')) !== undefined || (await decisions.get(rotationSetting)) !== undefined;

type ErasureFleet = Pick<Fleet, 'holds' | 'perform' | 'run' | 'nodes'>;
const idle: ErasureState = { state: 'idle', blockers: null, failure: null, waitsFor: null };

/** The state of the run on every node: the one that has the duty tells the others. */
const createSharedState = (
  { store, fleet }: Pick<RunPorts, 'store'> & { readonly fleet: ErasureFleet },
  ownState: () => ErasureState,
  /** A run must follow, whether or not one was asked for here. */
  isDue: () => Promise<boolean>,
) => {
  let told: string | undefined;
  let telling: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    told = await writeToldErasure({ store, fleet }, ownState, told);
  };
  return {
    /** In order. What cannot be told now is told with the next change. */
    tell: (): void => {
      if (store.link !== undefined) telling = telling.then(write).catch(() => undefined);
    },
    told: () => telling,
    /** Another node has the duty, or had it until now. */
    forget: (): void => {
      told = undefined;
    },
    state: async (): Promise<ErasureState> => {
      const isOwn = store.link === undefined || fleet.holds('erasure');
      const found = isOwn ? ownState() : ((await readToldErasure({ store, fleet })) ?? idle);
      if (found.state !== 'idle') return found;
      // What was destroyed a moment ago, or while no node has the duty, waits for its run.
      const isWaiting = (await isRequested(store.read)) || (await isDue());
      return isWaiting ? { ...found, state: 'waiting', waitsFor: isOwn ? 'destructions' : 'node' } : found;
    },
  };
};

export const createErasureScheduler = (
  ports: RunPorts & { readonly fleet: ErasureFleet },
  /**
   * How long destructions are collected for one run, and how long a run waits that has failed, and
   * one that is held back.
   */
  delays: { readonly gatherMs: number; readonly retryMs: number; readonly heldMs: number },
): ErasureScheduler => {
  const recoverSnapshots = recoverMissing(ports);
  const { store, root, clock, log, fleet } = ports;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;
  let held: ErasureBlockers | null = null;
  let failure: string | null = null;
  /** What the timer waits for. */
  let waitsFor: ErasureState['waitsFor'] = null;
  const runOnceMore = runErasure(ports, () => stopped);
  /** While files of snapshots are missing, a run only checks whether they still are. */
  const run = async (): Promise<Outcome> => {
    if (held === null || held.snapshots.length === 0) return runOnceMore();
    await recoverSnapshots();
    return (await missingFor(ports)).length > 0 ? held : runOnceMore();
  };
  /**
   * How long the last run took. The next one collects destructions for as long, so that runs take
   * at most half of the time.
   */
  let lastMs = 0;

  const isDue = async (): Promise<boolean> =>
    (await isRunDue(store.read)) ||
    (await store.read.decisions.get(rotationSetting)) !== undefined ||
    (await isConclusionDue(store));
  const later = (ms: number, forWhat: NonNullable<ErasureState['waitsFor']>): void => {
    if (stopped || timer !== undefined) return;
    waitsFor = forWhat;
    timer = setTimeout(() => {
      timer = undefined;
      start();
    }, ms);
    timer.unref();
    shared.tell();
  };
  const soon = (): void => later(Math.max(delays.gatherMs, lastMs), 'destructions');
  const ownState = (): ErasureState => {
    if (held !== null) return { ...idle, state: 'blocked', blockers: held };
    if (failure !== null) return { ...idle, state: 'failed', failure };
    if (running !== undefined) return { ...idle, state: 'running' };
    return timer === undefined ? idle : { ...idle, state: 'waiting', waitsFor };
  };
  const shared = createSharedState(ports, ownState, () => isRunDue(store.read));
  const start = (): void => {
    if (running !== undefined || stopped) return;
    if (!fleet.holds('erasure')) {
      // The node that has the duty says how far it is.
      [held, failure] = [null, null];
      shared.forget();
      return;
    }
    const began = clock.monotonic();
    running = fleet
      .perform('erasure', run)
      .then(
        async (outcome) => {
          // Another node has the duty now.
          if (outcome === undefined) return;
          const pauseMs = outcome !== null && 'forMs' in outcome ? outcome.forMs : 0;
          const holding = outcome === null || 'forMs' in outcome ? null : outcome;
          held = holding;
          failure = null;
          lastMs = clock.monotonic() - began;
          // The next check, which costs next to nothing, finds what the operator did about the
          // damaged records.
          if (holding !== null) later(Math.max(delays.heldMs, lastMs), 'copies');
          else if (pauseMs > 0) later(pauseMs, 'copies');
          // Destructions during the run need another one.
          else if (await isDue()) soon();
        },
        (error: unknown) => {
          if (error instanceof Interrupted) return;
          if (error instanceof DutyLost) {
            // This node may have it again: only the fencing number of this work is too old.
            if (fleet.holds('erasure')) later(delays.heldMs, 'node');
            return;
          }
          failure = error instanceof Error ? error.message : 'failed';
          log.error('the erasure run failed and will be retried', { error });
          later(delays.retryMs, 'destructions');
        },
      )
      .catch((error: unknown) => {
        log.error('the erasure run could not be followed up', { error });
      })
      .finally(() => {
        running = undefined;
        shared.tell();
      });
    shared.tell();
  };

  return {
    schedule: soon,
    state: shared.state,
    resume: async () => {
      if (!fleet.holds('erasure')) return;
      // What another node has told last is over, also where nothing is due.
      shared.forget();
      shared.tell();
      // The service serves in the meantime.
      if (root.previous !== undefined) start();
      else if (await isDue()) soon();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
      await shared.told();
    },
  };
};
