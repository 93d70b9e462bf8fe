// Random histories of nodes behind a relay, with faults and failovers, against a model of what was
// acknowledged (test/support/fleet-history.ts). One in the short tier; 100 of three nodes in the
// long one. DKE_TEST_SEEDS chooses others, for example 20-39 or 3,17.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Failover, runHistory } from '../support/fleet-history.ts';
import { until } from '../support/host.ts';
import { seedsBelow, seedsFrom } from '../support/seeds.ts';
import { isLong, sizeOf } from '../support/tiers.ts';

const failovers: readonly Failover[] = ['asynchronous', 'none', 'synchronous', 'unfenced'];
// Seed 5 finds acknowledgements that do not wait for a node whose link is down.
const seeds = seedsFrom(process.env.DKE_TEST_SEEDS) ?? (isLong ? seedsBelow(sizeOf('fleet histories')) : [5]);
/**
 * The number of histories at once: the nodes and databases of each keep a processor busy for a
 * third of its time.
 */
const lanes = 2;
const ofLanes = [...Map.groupBy(seeds, (_, at) => at % lanes).values()];

const children = (): readonly number[] =>
  readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  );

// A test breaks its history off when it reaches its limit.
test('a history that is broken off leaves no server and no database', async () => {
  const before = new Set(children());
  const events: string[] = [];
  const breaking = new AbortController();
  const history = runHistory({
    seed: 5,
    nodes: 2,
    steps: 16,
    failover: 'synchronous',
    events,
    broken: breaking.signal,
  });
  // One that stands still cannot be asked to end.
  await until('a node that stands still', async () => (events.some((each) => / stop /.test(each)) ? true : undefined));
  expect(children().filter((pid) => !before.has(pid)).length).toBeGreaterThan(2);
  breaking.abort(new Error('its limit'));
  const { violations } = await history;
  expect(violations).toContainEqual(expect.stringContaining('its limit'));
  expect(children().filter((pid) => !before.has(pid))).toEqual([]);
});

describe.concurrent.for(ofLanes)('each of %j', (own) => {
  test.for(own)(
    'history %i: nothing that was acknowledged is undone, and no use follows it',
    { concurrent: false },
    async (seed, { onTestFailed, onTestFinished, signal }) => {
      const failover = failovers[seed % failovers.length] ?? 'none';
      const events: string[] = [];
      onTestFailed(() => console.log(`history ${seed}:\n${events.join('\n')}`));
      const began = performance.now();
      const history = runHistory({
        ...{ seed, failover, events, broken: signal },
        nodes: isLong ? 3 : 2,
        steps: isLong ? 24 : 16,
      });
      // One that reaches its limit has ended its servers before the next one begins.
      onTestFinished(async () => void (await history));
      const { violations, uses, acknowledged } = await history;
      const seconds = Math.round((performance.now() - began) / 1_000);
      console.log(`history ${seed}: failover ${failover}, ${uses} uses, ${acknowledged} changes, ${seconds} s`);
      expect(violations).toEqual([]);
      expect(uses).toBeGreaterThan(0);
      expect(acknowledged).toBeGreaterThan(0);
    },
  );
});
