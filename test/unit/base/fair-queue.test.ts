// How many run at once and how many wait: server/base/fair-queue.ts.
import { expect, test } from 'vitest';
import { createFairQueue, QueueFull } from '../../../server/base/fair-queue.ts';

test('so many run, so many wait in their order, and the rest is refused', async () => {
  const { run } = createFairQueue({ running: 2, waiting: 3 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (name: number) => () => {
    begun.push(name);
    return new Promise<number>((resolve) => {
      ends[name] = () => resolve(name);
    });
  };
  const all = [0, 1, 2, 3, 4].map((name) => run(work(name)));
  expect(begun).toEqual([0, 1]);
  await expect(run(work(5))).rejects.toBeInstanceOf(QueueFull);
  for (const name of [1, 0, 2, 3, 4]) {
    ends[name]?.();
    expect(await all[name]).toBe(name);
  }
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test('work that fails gives its place back', async () => {
  const { run } = createFairQueue({ running: 1, waiting: 1 });
  for (let i = 0; i < 3; i++) await expect(run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await run(() => Promise.resolve('yes'))).toBe('yes');
});

test('one user has so many running, and the users take turns', async () => {
  const { run } = createFairQueue({ running: 2, runningEach: 1, waiting: 3 });
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const all = new Map<string, Promise<unknown>>();
  const ask = (user: string, name: string): void => {
    const work = () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    };
    all.set(name, run(work, user));
  };
  for (const each of [1, 2, 3, 4]) ask('greedy', `greedy ${each}`);
  // One place is free, and not for the greedy one.
  expect(begun).toEqual(['greedy 1']);
  await expect(run(() => Promise.resolve(), 'greedy')).rejects.toBeInstanceOf(QueueFull);
  ask('second', 'second 1');
  ask('third', 'third 1');
  ask('third', 'third 2');
  expect(begun).toEqual(['greedy 1', 'second 1']);
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await all.get(name);
  };
  // The third has waited for less long than the greedy one, and has not had a turn yet.
  await end('greedy 1');
  expect(begun.slice(2)).toEqual(['third 1']);
  await end('second 1');
  expect(begun.slice(3)).toEqual(['greedy 2']);
  await end('third 1');
  expect(begun.slice(4)).toEqual(['third 2']);
  for (const name of ['third 2', 'greedy 2', 'greedy 3', 'greedy 4']) await end(name);
  expect(begun.slice(5)).toEqual(['greedy 3', 'greedy 4']);
});

test('strangers, however many, have every second turn, and the longest of their queues gives way', async () => {
  const { run } = createFairQueue({ running: 1, waiting: 16, waitingOfStrangers: 8 });
  const begun: string[] = [];
  const refused: string[] = [];
  let next = (): void => undefined;
  const ask = (user: string, isPreferred = false): Promise<unknown> =>
    run(
      () => {
        begun.push(user);
        return new Promise<void>((resolve) => {
          next = resolve;
        });
      },
      user,
      isPreferred,
    ).catch(() => refused.push(user));
  const all = [ask('first'), ...Array.from({ length: 8 }, () => ask('greedy'))];
  // One user has all places: each new user gets one of them, until their queues are equally long.
  for (let n = 0; n < 20; n += 1) all.push(ask(`stranger ${n}`));
  all.push(ask('known', true), ask('known', true), ask('colleague', true));
  for (let turn = 0; turn < 12; turn += 1) {
    next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  expect(begun.filter((user) => user === 'known' || user === 'colleague')).toHaveLength(3);
  // The second, the fourth and the sixth turn after the one that ran.
  expect([begun[1], begun[3], begun[5]]).toEqual(['known', 'colleague', 'known']);
  expect(begun).toContain('stranger 0');
  expect(begun.filter((user) => user === 'greedy')).toHaveLength(1);
  expect(refused).toHaveLength(20);
  expect(begun).toHaveLength(1 + 8 + 3);
});
