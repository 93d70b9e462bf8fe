// Rates and shedding, with clocks that the test moves.
import { describe, expect, test } from 'vitest';
import { createRates, createShedder } from '../../../server/fronts/xks/rate.ts';
import type { XksEndpointView } from '../../../server/ports/xks-directory.ts';

const endpoint = (id: string, rate: { perSecond: number; burst: number } | null): XksEndpointView =>
  ({ id, settings: { rate } }) as XksEndpointView;

describe('a token bucket', () => {
  const open = () => {
    let time = 0;
    const rates = createRates(() => time);
    return {
      move: (ms: number) => {
        time += ms;
      },
      take: (from: XksEndpointView, count: number) =>
        Array.from({ length: count }, () => rates.admit(from)).filter(Boolean).length,
    };
  };

  test('is full at first, fills at its rate, and has at most its burst', () => {
    const { move, take } = open();
    const limited = endpoint('a', { perSecond: 10, burst: 5 });
    expect(take(limited, 20)).toBe(5);
    move(99);
    expect(take(limited, 20)).toBe(0);
    move(1);
    expect(take(limited, 20)).toBe(1);
    move(350);
    expect(take(limited, 20)).toBe(3);
    move(60_000);
    expect(take(limited, 20)).toBe(5);
  });

  test('belongs to one endpoint, and is forgotten with its rate', () => {
    const { take } = open();
    expect(take(endpoint('a', { perSecond: 1, burst: 2 }), 5)).toBe(2);
    expect(take(endpoint('b', { perSecond: 1, burst: 2 }), 5)).toBe(2);
    expect(take(endpoint('a', null), 5)).toBe(5);
    expect(take(endpoint('a', { perSecond: 1, burst: 2 }), 5)).toBe(2);
  });

  test('takes a smaller burst over at once', () => {
    const { take } = open();
    expect(take(endpoint('a', { perSecond: 1, burst: 100 }), 10)).toBe(10);
    expect(take(endpoint('a', { perSecond: 1, burst: 3 }), 10)).toBe(3);
  });
});

describe('shedding', () => {
  const open = () => {
    let time = 0;
    let ends: (() => void)[] = [];
    const overdue = createShedder(
      100,
      () => time,
      (done) => ends.push(done),
    );
    return {
      /** One turn: a request every `stepMs`; answers at which times requests were refused. */
      turn: (requests: number, stepMs: number): number[] => {
        const begun = time;
        const refused: number[] = [];
        for (let at = 0; at < requests; at += 1) {
          if (overdue()) refused.push(time - begun);
          time += stepMs;
        }
        for (const end of ends) end();
        ends = [];
        return refused;
      },
    };
  };

  test('a short turn refuses nothing, however many turns and requests there are', () => {
    const { turn } = open();
    for (let times = 0; times < 50; times += 1) expect(turn(1000, 0.1)).toEqual([]);
  });

  test('what has waited longer than the latest time is refused in the first long turn', () => {
    const { turn } = open();
    expect(turn(303, 1 / 3).map(Math.round)).toEqual([100, 101]);
  });

  test('few requests are not a queue, however late they are', () => {
    const { turn } = open();
    expect(turn(256, 10)).toEqual([]);
    expect(turn(258, 10)).toEqual([2560, 2570]);
  });

  test('every turn starts again', () => {
    const { turn } = open();
    for (let times = 0; times < 9; times += 1) expect(turn(200, 10)).toEqual([]);
    expect(turn(257, 10)).toEqual([2560]);
    expect(turn(200, 10)).toEqual([]);
  });
});
