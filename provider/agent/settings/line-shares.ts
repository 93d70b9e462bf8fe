// Lines that the processes of one user cause in a log that is not that user's own: so many at once,
// and in a second. Taken where a line is made, so that no thread has a queue of them, and again
// where it is written.
import { limits } from './limits.ts';

const share = { burst: 2000, perSecond: limits.logLines.most } as const;

export const linesLeftOut = 'lines of this user were left out: there were too many';

/** How many more lines each user may write now. */
export class LineShares {
  readonly #spent = new Map<number, { lines: number; at: number; left: number }>();

  /** Whether the line may be written, and how many could not since the last one. */
  take(uid: number): { readonly admitted: boolean; readonly left: number } {
    const now = performance.now();
    const before = this.#spent.get(uid) ?? { lines: 0, at: now, left: 0 };
    const lines = Math.max(before.lines - ((now - before.at) / 1000) * share.perSecond, 0) + 1;
    const admitted = lines <= share.burst;
    const { left } = before;
    this.#spent.set(uid, { lines: admitted ? lines : lines - 1, at: now, left: admitted ? 0 : left + 1 });
    return { admitted, left };
  }
}
