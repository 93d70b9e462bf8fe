// Work over many objects, cut into slices of less than a millisecond. Between two slices the socket
// thread answers others. One slice runs in a turn of the event loop, for any user, and the users'
// slices alternate.
import type { Later } from './later.ts';

/** How many objects are worked on without a pause. */
const atOnce = 64;

/** Slices that wait, by user: the user whose last slice is longest ago comes first. */
const lines = new Map<number, (() => void)[]>();

const next = (): void => {
  const [first] = lines;
  if (first === undefined) return;
  const [uid, line] = first;
  lines.delete(uid);
  const begin = line.shift();
  if (line.length > 0) lines.set(uid, line);
  if (lines.size > 0) setImmediate(next);
  begin?.();
};

/** Resolves in a later turn of the event loop, when it is this user's turn. */
export const othersFirst = (uid: number): Promise<void> =>
  new Promise((resolve) => {
    if (lines.size === 0) setImmediate(next);
    const line = lines.get(uid);
    if (line === undefined) lines.set(uid, [resolve]);
    else line.push(resolve);
  });

/** Whether a slice waits: then the socket thread must not sleep. */
export const sliceWaits = (): boolean => lines.size > 0;

/** A promise where the items take more than one slice. The first slice runs at once. */
export const inSlices = <T>(uid: number, items: readonly T[], work: (item: T) => void): Later<void> => {
  if (items.length <= atOnce) {
    for (const item of items) work(item);
    return;
  }
  const run = async (): Promise<void> => {
    for (let at = 0; at < items.length; at += atOnce) {
      if (at > 0) await othersFirst(uid);
      for (const item of items.slice(at, at + atOnce)) work(item);
    }
  };
  return run();
};

/**
 * Calls `step` in slices, for at most `most` objects at a time, until it answers that nothing is
 * left.
 */
export const untilDone = (uid: number, step: (most: number) => boolean): Later<void> => {
  if (step(atOnce)) return;
  const run = async (): Promise<void> => {
    do await othersFirst(uid);
    while (!step(atOnce));
  };
  return run();
};
