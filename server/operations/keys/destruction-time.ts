// When something was destroyed, told so that an erasure run knows whether it comes before it or behind: by the clock, but never
// earlier than the current run, should the clock have jumped back. What a run has not covered it must not call unrecoverable.

import type { Clock } from '../../base/clock.ts';
import type { Key } from '../../domain/key.ts';
import type { Repositories } from '../../ports/store.ts';

const atOnce = 500;

/** Later than every destruction: clocks jump ahead, too, and what was destroyed then is erased all the same. */
export const ever = Number.MAX_SAFE_INTEGER;

export const destructionTime = async (tx: Repositories, clock: Clock): Promise<number> => {
  // From this moment on, what is destroyed waits for the next run. Set while one is under way.
  const started = await tx.decisions.get('erasure-started');
  return Math.max(clock.now(), started === undefined ? 0 : Number(started));
};

/** Destroyed before this time and not yet unrecoverable: rows that the service wrote. */
export async function* destroyedKeys(from: Pick<Repositories, 'keys'>, before = ever): AsyncGenerator<Key> {
  for (let after: Key | undefined; ; ) {
    const page = await from.keys.listErasable(before, atOnce, after);
    for (const key of page) if (key.integrity === 'ok' && key.state === 'destroyed') yield key;
    after = page.at(-1);
    if (page.length < atOnce) return;
  }
}
