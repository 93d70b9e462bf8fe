// When a deadline has passed, zero is left of it. Node warns of a negative time and waits for 1 ms.
import { afterEach, expect, test, vi } from 'vitest';
import { within } from '../../../server/base/time-limit.ts';

afterEach(() => void vi.restoreAllMocks());

test('a deadline that has passed is zero: only what has ended is in time, and no timer is negative', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  expect(await within(-1, Promise.resolve())).toBe(true);
  const never = new Promise<void>(() => undefined);
  expect(await within(-1, never)).toBe(false);
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([0, 0]);
});
