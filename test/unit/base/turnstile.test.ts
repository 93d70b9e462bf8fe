// How many run at once and how many wait: server/base/turnstile.ts.
import { expect, test } from 'vitest';
import { createTurnstile, TurnstileFull } from '../../../server/base/turnstile.ts';

test('so many run, so many wait in their order, and the rest is refused', async () => {
  const { pass } = createTurnstile({ running: 2, waiting: 3 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (name: number) => () => {
    begun.push(name);
    return new Promise<number>((resolve) => {
      ends[name] = () => resolve(name);
    });
  };
  const all = [0, 1, 2, 3, 4].map((name) => pass(work(name)));
  expect(begun).toEqual([0, 1]);
  await expect(pass(work(5))).rejects.toBeInstanceOf(TurnstileFull);
  for (const name of [1, 0, 2, 3, 4]) {
    ends[name]?.();
    expect(await all[name]).toBe(name);
  }
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test('work that fails gives its place back', async () => {
  const { pass } = createTurnstile({ running: 1, waiting: 1 });
  for (let i = 0; i < 3; i++) await expect(pass(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await pass(() => Promise.resolve('yes'))).toBe('yes');
});
