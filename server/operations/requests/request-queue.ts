// Request records that wait to be written, in the order in which they came. Unsigned requests have
// places of their own, so that they, which anyone can send, take none from signed ones. What finds
// no place is counted by the minute.

import { type DroppedRequests, minuteOf, spaceOf, unsignedSpace } from '../../base/request-minutes.ts';
import type { XksRequestRecord } from '../../ports/xks-directory.ts';

/** Additional places for unsigned requests, as a part of the places for signed ones. */
const unsignedPart = 0.1;
/** More than so much of it has to be written soon. */
const fillingPart = 0.1;

/** `length`: how many signed requests may wait. */
export const createRequestQueue = (length: number) => {
  const queue = createQueue<XksRequestRecord>();
  let waitingUnsigned = 0;
  const mostUnsigned = Math.ceil(length * unsignedPart);
  const total = { dropped: 0, droppedUnsigned: 0 };
  /** How many requests found no place, by minute, until the counts are written. */
  const lost = new Map<number, { signed: number; unsigned: number }>();
  const isUnsigned = (entry: XksRequestRecord): boolean => spaceOf(entry) === unsignedSpace;

  const dropOne = (entry: XksRequestRecord): void => {
    const minute = minuteOf(entry.at);
    const own = lost.get(minute) ?? { signed: 0, unsigned: 0 };
    lost.set(minute, own);
    if (isUnsigned(entry)) {
      own.unsigned += 1;
      total.droppedUnsigned += 1;
    } else {
      own.signed += 1;
      total.dropped += 1;
    }
  };
  return {
    push: (entry: XksRequestRecord): void => {
      const own = isUnsigned(entry);
      const isFull = own ? waitingUnsigned >= mostUnsigned : queue.length - waitingUnsigned >= length;
      if (isFull) {
        dropOne(entry);
        return;
      }
      if (own) waitingUnsigned += 1;
      queue.push(entry);
    },
    take: (most: number): readonly XksRequestRecord[] => {
      const taken = queue.take(most);
      for (const entry of taken) if (isUnsigned(entry)) waitingUnsigned -= 1;
      return taken;
    },
    /**
     * Puts back what was taken and is certainly not written. The queue may be longer than its limit
     * by that much.
     */
    putBack: (entries: readonly XksRequestRecord[]): void => {
      waitingUnsigned += entries.filter(isUnsigned).length;
      queue.putBack(entries);
    },
    drop: (entries: readonly XksRequestRecord[]): void => entries.forEach(dropOne),
    dropped: (): readonly DroppedRequests[] => [...lost].map(([minute, own]) => ({ minute, ...own })),
    droppedWritten: (written: readonly DroppedRequests[]): void => {
      for (const { minute, ...counts } of written) {
        const own = lost.get(minute);
        if (own === undefined) continue;
        own.signed -= counts.signed;
        own.unsigned -= counts.unsigned;
        if (own.signed + own.unsigned <= 0) lost.delete(minute);
      }
    },
    state: () => ({ queued: queue.length, ...total }),
    isFilling: () => queue.length > length * fillingPart,
  };
};

export interface Queue<T> {
  readonly length: number;
  push(entry: T): void;
  /** The oldest, at most so many. */
  take(most: number): T[];
  /** Puts the last batch back, before the others. Costs the length of the queue. */
  putBack(entries: readonly T[]): void;
}

/**
 * Taken entries are released when they are as many as the remaining ones, and at least this many.
 */
const leastLetGo = 1024;

/**
 * A queue whose oldest entries are taken in batches. Taking a batch costs its own length: the
 * remaining entries are not moved each time.
 */
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
