// A queue whose front is taken in pieces, each at the cost of its own length: what stays behind is not moved for each.

export interface Queue<T> {
  readonly length: number;
  push(entry: T): void;
  /** The oldest, at most so many. */
  take(most: number): T[];
  /** Puts back what was taken last, in front of the others. Costs the length of the queue. */
  putBack(entries: readonly T[]): void;
}

/** What was taken before is let go of when it is as much as what is left, and at least so much. */
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
