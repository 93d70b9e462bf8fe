// Random histories of nodes behind a relay, with faults and failovers, against a model of what was acknowledged (test/support/fleet-history.ts). A few
// here; 100 with SLOW=1, of three nodes. DKE_TEST_SEED repeats one.
import { expect, test } from 'vitest';
import { type Failover, runHistory } from '../support/fleet-history.ts';

const slow = process.env.SLOW === '1';
const failovers: readonly Failover[] = ['asynchronous', 'none', 'synchronous', 'unfenced'];
const seedsOf = (): readonly number[] => {
  if (process.env.DKE_TEST_SEED !== undefined) return [Number(process.env.DKE_TEST_SEED)];
  // The second one finds acknowledgements that do not wait for a node whose link is down.
  return slow ? Array.from({ length: 100 }, (_, at) => at) : [0, 5];
};

test.each(seedsOf())('history %i: nothing that was acknowledged is undone, and no use follows it', async (seed) => {
  const { violations, uses, acknowledged, events } = await runHistory({
    seed,
    nodes: slow ? 3 : 2,
    steps: slow ? 24 : 16,
    failover: failovers[seed % failovers.length] ?? 'none',
  });
  expect(violations, events.join('\n')).toEqual([]);
  expect(uses).toBeGreaterThan(0);
  expect(acknowledged).toBeGreaterThan(0);
});
