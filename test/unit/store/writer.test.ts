// What a commit waits for: the disk, unless every unit in it may be lost.
import { expect, test } from 'vitest';
import { createWriter } from '../../../server/store/writer.ts';

const nothing = async (): Promise<void> => undefined;

test('a commit is durable when one of its units is, and only then', async () => {
  const begun: boolean[] = [];
  const writer = createWriter(
    {
      begin: async (durable) => {
        begun.push(durable);
      },
      commit: nothing,
      rollback: nothing,
      savepoint: nothing,
      releaseSavepoint: nothing,
      rollbackToSavepoint: nothing,
    },
    (error) => error,
  );
  await writer.submit(nothing, false);
  await writer.submit(nothing);
  // Units that come while a commit is under way wait for it and share the next one.
  let waiting: Promise<void>[] = [];
  await writer.submit(async () => {
    waiting = [writer.submit(nothing, false), writer.submit(nothing)];
  }, false);
  await Promise.all(waiting);
  expect(begun).toEqual([false, true, false, true]);
});

test('nothing is written during a pause, and what waited is written after it', async () => {
  const done: string[] = [];
  const say = (what: string) => async (): Promise<void> => {
    done.push(what);
  };
  const writer = createWriter(
    {
      begin: say('begin'),
      commit: say('commit'),
      rollback: nothing,
      savepoint: nothing,
      releaseSavepoint: nothing,
      rollbackToSavepoint: nothing,
    },
    (error) => error,
  );
  let resume: () => void = () => undefined;
  const paused = writer.pause(async () => {
    done.push('pause');
    await new Promise<void>((resolve) => {
      resume = resolve;
    });
  });
  const written = writer.submit(say('unit'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toEqual(['pause']);
  resume();
  await Promise.all([paused, written]);
  expect(done).toEqual(['pause', 'begin', 'unit', 'commit']);
  await expect(writer.pause(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await writer.submit(say('after'));
  expect(done.at(-2)).toBe('after');
});
