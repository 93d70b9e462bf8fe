// The queue whose items are removed in pieces: order, lengths, and that it keeps no removed item.
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createQueue } from '../../../server/operations/requests/request-queue.ts';
import fc from '../../support/property.ts';

test('gives what it got, in order, in pieces of any length', () => {
  const step = fc.oneof(
    fc.record({ push: fc.integer({ min: 0, max: 3000 }) }),
    fc.record({ take: fc.integer({ min: 0, max: 3000 }) }),
    fc.record({ takeAndPutBack: fc.integer({ min: 0, max: 3000 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const queue = createQueue<number>();
      const model: number[] = [];
      let next = 0;
      for (const each of steps) {
        if ('push' in each)
          for (let count = 0; count < each.push; count += 1, next += 1) {
            queue.push(next);
            model.push(next);
          }
        else if ('takeAndPutBack' in each) queue.putBack(queue.take(each.takeAndPutBack));
        else expect(queue.take(each.take)).toEqual(model.splice(0, each.take));
        expect(queue.length).toBe(model.length);
      }
    }),
  );
});

test('releases what was taken although it is never empty', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const queue = createQueue<WeakKey>();
  const given: WeakRef<WeakKey>[] = [];
  for (let count = 0; count < 20_000; count += 1) {
    const entry = {};
    given.push(new WeakRef(entry));
    queue.push(entry);
    if (count >= 10) queue.take(1);
  }
  expect(queue.length).toBe(10);
  // Until the end of its job an entry is held by its WeakRef.
  await setImmediate();
  collect();
  expect(given.filter((entry) => entry.deref() !== undefined).length).toBeLessThan(3000);
});
