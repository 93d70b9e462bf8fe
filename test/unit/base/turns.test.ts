// Work that gives way to what presses, on the event loop of this process.
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { createTurns } from '../../../server/base/turns.ts';

/**
 * Works of a millisecond each, and an exchange of this many messages: answers how many works were
 * done at its end.
 */
const exchange = async (isPressed: boolean, messages: number): Promise<number> => {
  let time = 0;
  const run = createTurns(
    () => isPressed,
    () => time,
  );
  const { port1, port2 } = new MessageChannel();
  let done = 0;
  for (let at = 0; at < 10_000; at += 1)
    run(() => {
      time += 1;
      expect(at).toBe(done);
      done += 1;
    });
  let atEnd = 0;
  for (let at = 0; at < messages; at += 1) {
    port1.postMessage(at);
    await once(port2, 'message');
    atEnd = done;
  }
  while (done < 10_000) await new Promise((resolve) => setImmediate(resolve));
  port1.close();
  return atEnd;
};

test('while something presses, an exchange of messages waits for a few milliseconds of other work at each, and all work is done in order', async () => {
  expect(await exchange(true, 50)).toBeLessThan(2_000);
});

test('at other times, work is done at once', async () => {
  expect(await exchange(false, 1)).toBe(10_000);
});
