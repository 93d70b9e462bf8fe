// Repeated events are reported once and then counted: for logs, and for audit records of refusals.
import { describe, expect, test } from 'vitest';
import { Repeats } from '../../../server/base/repeats.ts';

const start = (options: { most?: number; mostOfFamily?: number } = {}) => {
  let now = 0;
  const summaries: string[] = [];
  const repeats = new Repeats<string>({
    now: () => now,
    quietMs: 60,
    longestMs: 480,
    most: options.most ?? 100,
    mostOfFamily: options.mostOfFamily ?? 100,
    summary: (last, count, sinceMs) => summaries.push(`${last} +${count} in ${sinceMs}`),
  });
  return {
    repeats,
    summaries,
    pass: (ms: number) => {
      now += ms;
    },
  };
};

describe('what repeats', () => {
  test('is logged once, then counted, for each name', () => {
    const { repeats, summaries } = start();
    expect([repeats.admit('a', '1'), repeats.admit('a', '2'), repeats.admit('b', '3')]).toEqual([true, false, true]);
    expect(summaries).toEqual([]);
  });

  test('is summarized with the last one, less and less often while it continues', () => {
    const { repeats, summaries, pass } = start();
    for (let at = 0; at < 1000; at += 3) {
      repeats.admit('heartbeat', String(at));
      repeats.flush();
      pass(3);
    }
    expect(summaries).toEqual(['60 +20 in 60', '180 +40 in 120', '420 +80 in 240', '900 +160 in 480']);
  });

  test('is forgotten after a silence, and then logged again', () => {
    const { repeats, summaries, pass } = start();
    repeats.admit('a', '1');
    pass(60);
    repeats.flush();
    expect(repeats.admit('a', '2')).toBe(true);
    expect(summaries).toEqual([]);
  });

  test('reports everything at the end', () => {
    const { repeats, summaries } = start();
    for (const item of ['1', '2', '3']) repeats.admit('a', item);
    repeats.flush(true);
    expect(summaries).toEqual(['3 +2 in 0']);
    expect(repeats.admit('a', '4')).toBe(true);
  });

  test('does not fill memory, nor a log by many names of one family', () => {
    const { repeats, summaries } = start({ most: 10, mostOfFamily: 3 });
    const first = Array.from({ length: 1000 }, (_, at) => repeats.admit(`scan ${at}`, String(at), 'scanner'));
    expect(first.filter(Boolean)).toHaveLength(4);
    repeats.flush(true);
    expect(summaries).toEqual(['999 +996 in 0']);
  });
});
