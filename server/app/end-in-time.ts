// A process that was asked to end does so in time. What is stored is whole at any moment, so that
// nothing is lost but what had not been confirmed.

import { core } from '../../addon/core.ts';
import { exitCodes } from '../base/start-error.ts';
import type { Log } from '../ports/log.ts';

/** How long a stop may take behind `server.drain_seconds`. */
const endMs = 2_000;
/** For the last line of the log, or for an end in good order. */
const lastWordsMs = 500;

/** How long a stop takes at most that has this much left to wait for on purpose. */
export const longestStopMs = (leftMs: number): number => leftMs + endMs;

/** The process ends now: what a disk still holds does not keep it. */
export const endWith = (exitCode: number): number => {
  core.endProcessIn(lastWordsMs, exitCode);
  return exitCode;
};

let complaint: NodeJS.Timeout | undefined;
/** Ends the process after `ms`; of several calls, only the last one counts. */
const endIn = (ms: number, exitCode: number): void => {
  clearTimeout(complaint);
  core.endProcessIn(ms, exitCode);
};

/** A start that is cut off writes nothing that the next one could not continue. */
export const endStartInTime = (): void => endIn(endMs, 0);

/**
 * A disk, a database or a receiver that does not answer does not keep the process. `leftMs`: what
 * the stop waits for on purpose. Called when a stop begins, also that of a start which has ended
 * after all, and again when less is left.
 */
export const endStopInTime = (leftMs: number, log: Pick<Log, 'error'>): void => {
  const ms = longestStopMs(leftMs);
  endIn(ms, exitCodes.store);
  complaint = setTimeout(() => {
    log.error(
      `the stop did not end within ${ms / 1000} s: the process ends now. What was confirmed is stored; the last request records may be missing. ` +
        'Check the disk and the database',
    );
  }, ms - lastWordsMs).unref();
};

/** A listening socket that is about to end takes no new connection: see the core's own. */
export const { holdNewConnections } = core;
