// A queue whose oldest entries are taken in batches. Taking a batch costs its own length: the remaining entries are not moved each time.

export interface Queue<T> {
  readonly length: number;
  push(entry: T): void;
  /** The oldest, at most so many. */
  take(most: number): T[];
  /** Puts the last batch back, before the others. Costs the length of the queue. */
  putBack(entries: readonly T[]): void;
}

/** Taken entries are released when they are as many as the remaining ones, and at least this many. */
const leastLetGo = 1024;

export const createQueue = <T>(): Queue<T> => {
  let entries: T[] = [];
  let taken = 0;
  return {
    get length() {
      return entries.length - taken;
    },
    push: (entry) => {
      entries.push(entry);
    },
    take: (most) => {
      const piece = entries.slice(taken, taken + most);
      taken += piece.length;
      if (taken === entries.length) [entries, taken] = [[], 0];
      else if (taken >= leastLetGo && 2 * taken >= entries.length) [entries, taken] = [entries.slice(taken), 0];
      return piece;
    },
    putBack: (piece) => {
      [entries, taken] = [[...piece, ...entries.slice(taken)], 0];
    },
  };
};
