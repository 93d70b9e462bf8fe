// Request records that wait to be written. Signed and unsigned requests have a queue each, so that unsigned ones, which anybody can send, take
// no place from signed ones. What finds its queue full is counted by the minute.

import { createQueue } from '../base/queue.ts';
import { type DroppedRequests, minuteOf, spaceOf, unsignedSpace } from '../base/request-minutes.ts';
import type { XksRequestRecord } from '../ports/xks-directory.ts';

/** Of the places, so many more are for unsigned requests; and so much of each batch, while both wait. */
const unsignedPart = 0.1;

/** `length`: how many signed requests may wait. */
export const createRequestQueue = (length: number) => {
  const signed = createQueue<XksRequestRecord>();
  const unsigned = createQueue<XksRequestRecord>();
  const mostUnsigned = Math.ceil(length * unsignedPart);
  const total = { dropped: 0, droppedUnsigned: 0 };
  /** By minute, of those that are not written. */
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
      const [queue, most] = isUnsigned(entry) ? [unsigned, mostUnsigned] : [signed, length];
      if (queue.length >= most) dropOne(entry);
      else queue.push(entry);
    },
    take: (most: number): readonly XksRequestRecord[] => {
      const others = unsigned.take(Math.max(Math.floor(most * unsignedPart), most - signed.length));
      return [...signed.take(most - others.length), ...others];
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
    state: () => ({ queued: signed.length + unsigned.length, ...total }),
  };
};
