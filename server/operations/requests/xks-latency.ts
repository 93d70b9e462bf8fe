// The latency of key store endpoints over time: counted in memory, written once a minute, read back
// by the hour or the day. Several processes write rows of their own, which are added up; a minute
// that was not written yet is taken from memory.

import { randomUUID } from 'node:crypto';
import {
  addLatency,
  countLatency,
  type LatencyCounts,
  type LatencySummary,
  newLatencyCounts,
  summarizeLatency,
} from '../../domain/latency.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksRequestRecord } from '../../ports/xks-directory.ts';
import type { LatencyMinute } from '../../ports/xks-repositories.ts';

const minuteMs = 60_000;

const spans = {
  hour: { minutes: 60, step: 1 },
  day: { minutes: 1440, step: 10 },
} as const;
export type LatencySpan = keyof typeof spans;

export interface LatencyPoint extends LatencySummary {
  readonly at: number;
}

export interface XksLatency {
  /** Costs every request of the data path: a look-up and a few additions. */
  record(entry: XksRequestRecord): void;
  /** Writes the minutes that are over, all of them when `all`. */
  flush(all: boolean): Promise<void>;
  /**
   * Latency of these endpoints together, oldest first; a point for every step, whether there was a
   * request or not.
   */
  read(endpointIds: readonly string[], span: LatencySpan): Promise<readonly LatencyPoint[]>;
  /** Latency of each of these endpoints over the last hour, by endpoint id. */
  lastHour(endpointIds: readonly string[]): Promise<ReadonlyMap<string, LatencySummary>>;
}

export const createXksLatency = ({ store, clock }: Pick<Ports, 'store' | 'clock'>): XksLatency => {
  const node = randomUUID();
  /** The minutes that are not written yet, by endpoint id. */
  const waiting = new Map<string, { minute: number; counts: LatencyCounts }[]>();
  let flushedMinute = 0;
  /**
   * The flush under way, and how many have started: between taking minutes out of memory and their
   * commit they are nowhere to be read.
   */
  let flushing: Promise<void> = Promise.resolve();
  let flushes = 0;

  const toMinute = (at: number): number => Math.floor(at / minuteMs);
  const since = async (endpointIds: readonly string[], from: number): Promise<readonly LatencyMinute[]> => {
    const own = new Set(endpointIds);
    if (endpointIds.length === 0) return [];
    let written: readonly LatencyMinute[];
    for (let seen = -1; ; ) {
      await flushing;
      seen = flushes;
      written = await store.read.latency.list(endpointIds, from);
      if (seen === flushes) break;
    }
    const fresh = [...waiting].flatMap(([endpointId, minutes]) =>
      own.has(endpointId)
        ? minutes.filter(({ minute }) => minute >= from).map(({ minute, counts }) => ({ endpointId, minute, counts }))
        : [],
    );
    return [...written, ...fresh];
  };

  return {
    record: ({ endpointId, at, durationMs, errorName }) => {
      if (endpointId === null) return;
      const minute = toMinute(at);
      let minutes = waiting.get(endpointId);
      if (minutes === undefined) {
        minutes = [];
        waiting.set(endpointId, minutes);
      }
      let last = minutes.at(-1);
      if (last === undefined || last.minute !== minute) {
        last = { minute, counts: newLatencyCounts() };
        minutes.push(last);
      }
      countLatency(last.counts, durationMs, errorName !== null);
    },
    flush: async (all) => {
      const now = toMinute(clock.now());
      if (!all && now === flushedMinute) return;
      flushedMinute = now;
      const over: LatencyMinute[] = [];
      for (const [endpointId, minutes] of waiting) {
        const done = all
          ? minutes.splice(0)
          : minutes.splice(0, minutes.findLastIndex(({ minute }) => minute < now) + 1);
        for (const { minute, counts } of done) over.push({ endpointId, minute, counts });
        if (minutes.length === 0) waiting.delete(endpointId);
      }
      if (over.length === 0) return;
      flushes += 1;
      // A power failure may lose the figures of a minute: they do not wait for the disk.
      const written = store.write((tx) => tx.latency.add(node, over), { durable: false });
      flushing = written.catch(() => {
        // Not written: they are counted in memory again, and go with the next flush.
        for (const { endpointId, minute, counts } of over.toReversed()) {
          const minutes = waiting.get(endpointId) ?? [];
          waiting.set(endpointId, [{ minute, counts }, ...minutes]);
        }
      });
      await written.finally(() => flushing);
    },
    read: async (endpointIds, span) => {
      const { minutes, step } = spans[span];
      const last = Math.floor(toMinute(clock.now()) / step);
      const first = last - minutes / step + 1;
      const points = Array.from({ length: minutes / step }, newLatencyCounts);
      for (const { minute, counts } of await since(endpointIds, first * step)) {
        const point = points[Math.floor(minute / step) - first];
        if (point !== undefined) addLatency(point, counts);
      }
      return points.map((counts, index) => ({ at: (first + index) * step * minuteMs, ...summarizeLatency(counts) }));
    },
    lastHour: async (endpointIds) => {
      const sums = new Map(endpointIds.map((id) => [id, newLatencyCounts()]));
      for (const { endpointId, counts } of await since(endpointIds, toMinute(clock.now()) - 59)) {
        const sum = sums.get(endpointId);
        if (sum !== undefined) addLatency(sum, counts);
      }
      return new Map([...sums].map(([id, counts]) => [id, summarizeLatency(counts)]));
    },
  };
};
