// The time that decides deadlines: no clock makes it jump, small jumps add up to one large one, and
// it follows clocks that do not jump.
import { describe, expect, test } from 'vitest';
import { agreementMs, type DeadlineClock, startAt, tick, toleranceMs } from '../../../server/domain/deadline-clock.ts';

const minute = 60_000;
const hour = 60 * minute;
const begin = 1_767_225_600_000;

/** Ticks once a minute for `minutes`; `clockAt` is the clock after each minute, in milliseconds. */
const run = (from: DeadlineClock, minutes: number, clockAt: (passed: number) => number): DeadlineClock => {
  let at = from;
  for (let passed = 1; passed <= minutes; passed += 1)
    at = tick(at, { elapsedMs: minute, observed: true, clock: clockAt(passed) });
  return at;
};

describe('the deadline clock', () => {
  test('follows a correct clock', () => {
    expect(run(startAt(begin), 100, (passed) => begin + passed * minute)).toEqual(startAt(begin + 100 * minute));
  });

  test.each([60 * 24 * hour, -60 * 24 * hour, hour + 1, -hour - 1])(
    'continues by what has passed when the clock jumps by %i ms',
    (jump) => {
      const after = run(startAt(begin), 10, (passed) => begin + passed * minute + jump);
      expect(after.at).toBe(begin + 10 * minute);
      expect(after.doubt).toEqual({ since: begin + minute, ahead: jump, agreedMs: 9 * minute });
    },
  );

  test('follows the clock when it is put right, without a day of waiting', () => {
    const jumped = run(startAt(begin), 10, (passed) => begin + passed * minute + 48 * hour);
    const right = run(jumped, 1, () => begin + 11 * minute);
    expect([right.at, right.doubt]).toEqual([begin + 11 * minute, null]);
  });

  test('follows a clock that a running service has seen unchanged for 24 hours, and not a minute earlier', () => {
    const jump = 100 * 24 * hour;
    const clockAt = (passed: number) => begin + passed * minute + jump;
    const minutes = agreementMs / minute;
    const before = run(startAt(begin), minutes, clockAt);
    expect([before.at, before.doubt === null]).toEqual([begin + agreementMs, false]);
    expect(run(startAt(begin), minutes + 1, clockAt)).toEqual(startAt(clockAt(minutes + 1)));
  });

  test('does not count the time in which no service ran, and starts again when the clock jumps again', () => {
    const jump = 100 * 24 * hour;
    const doubted = tick(startAt(begin), { elapsedMs: 0, observed: false, clock: begin + jump });
    const stopped = tick(doubted, {
      elapsedMs: 2 * agreementMs,
      observed: false,
      clock: begin + 2 * agreementMs + jump,
    });
    expect([stopped.at, stopped.doubt?.agreedMs]).toEqual([begin + 2 * agreementMs, 0]);
    const again = tick(stopped, { elapsedMs: 20 * hour, observed: true, clock: stopped.at + 20 * hour + 2 * jump });
    expect(again.doubt).toMatchObject({ ahead: 2 * jump, agreedMs: 0 });
  });

  test('does not follow many small jumps: they are one large one', () => {
    const after = run(startAt(begin), 1_000, (passed) => begin + passed * minute + passed * (hour - minute));
    expect(after.at).toBeLessThanOrEqual(begin + 1_000 * minute + 2 * toleranceMs);
    expect(after.doubt).not.toBeNull();
  });

  test('never goes back by less than an hour, so that an oscillating clock does not advance it', () => {
    const after = run(startAt(begin), 1_000, (passed) => begin + passed * minute + (passed % 2) * (hour / 2));
    expect(after.at).toBe(begin + 1_000 * minute + hour / 2);
  });
});
