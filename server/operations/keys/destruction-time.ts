// When something was destroyed, told so that an erasure run knows whether it comes before it or behind: by the clock, but never
// earlier than the current run, should the clock have jumped back. What a run has not covered it must not call unrecoverable.

import type { Clock } from '../../base/clock.ts';
import type { Repositories } from '../../ports/store.ts';

/** The moment from which on what is destroyed waits for the next run; set while one is under way. */
export const startedSetting = 'erasure-started';

/** Later than every destruction: clocks jump ahead, too, and what was destroyed then is erased all the same. */
export const ever = Number.MAX_SAFE_INTEGER;

export const destructionTime = async (tx: Repositories, clock: Clock): Promise<number> => {
  const started = await tx.settings.get(startedSetting);
  return Math.max(clock.now(), started === undefined ? 0 : Number(started));
};
