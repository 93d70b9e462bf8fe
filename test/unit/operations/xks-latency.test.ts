// Latencies of endpoints over time: data in memory and stored data are combined, for every minute
// and every node.
import { beforeEach, expect, test } from 'vitest';
import { createXksLatency } from '../../../server/operations/requests/xks-latency.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { storeOfTest } from '../../support/open-store.ts';

const minute = 60_000;
let now = 0;
const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };

let store: Store;
beforeEach(async () => {
  now = 1_000_000 * minute;
  store = await storeOfTest(clock);
});

const request = (endpointId: string | null, durationMs: number, errorName: string | null = null) =>
  ({ endpointId, at: now, durationMs, errorName }) as XksRequestRecord;

test('an hour is sixty minutes, of which the last is now; a request without an endpoint counts nowhere', async () => {
  const latency = createXksLatency({ store, clock });
  latency.record(request('e', 5));
  latency.record(request('f', 5));
  latency.record(request(null, 5));
  const points = await latency.read(['e'], 'hour');
  expect(points).toHaveLength(60);
  expect(points.at(-1)).toMatchObject({ at: now, requests: 1 });
  expect(await latency.read([], 'hour')).toHaveLength(60);
});

test('what was written is read back, with what came since and what another process wrote', async () => {
  const [one, other] = [createXksLatency({ store, clock }), createXksLatency({ store, clock })];
  one.record(request('e', 300));
  other.record(request('e', 1, 'KeyNotFoundException'));
  now += minute;
  await one.flush(false);
  await other.flush(false);
  one.record(request('e', 1));
  // Stopped within the minute and started again: the new data are added to the stored ones.
  await one.flush(true);
  one.record(request('e', 1));
  await one.flush(true);
  one.record(request('e', 1));
  const points = await one.read(['e', 'f'], 'hour');
  expect(points.slice(-2)).toMatchObject([
    { requests: 2, errors: 1, over250Ms: 1 },
    { requests: 3, errors: 0 },
  ]);
  expect((await other.lastHour(['e', 'f'])).get('e')).toMatchObject({ requests: 4, over100Ms: 1 });
  expect((await one.read(['e'], 'day')).reduce((sum, point) => sum + point.requests, 0)).toBe(5);
});

test('a request is counted once, also while its minute is on its way from memory into the store', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow: Store = {
    ...store,
    write: async (work, options) => {
      await held;
      return store.write(work, options);
    },
  };
  const latency = createXksLatency({ store: slow, clock });
  latency.record(request('e', 1));
  now += minute;
  const flushed = latency.flush(false);
  const read = latency.lastHour(['e']);
  release();
  await flushed;
  expect((await read).get('e')?.requests).toBe(1);
  // One that does not reach the store delays no one.
  const broken = createXksLatency({
    store: { ...store, write: () => Promise.reject(new Error('full')) },
    clock,
  });
  broken.record(request('f', 1));
  now += minute;
  await expect(broken.flush(false)).rejects.toThrow('full');
  expect((await broken.lastHour(['f'])).get('f')?.requests).toBe(1);
});
