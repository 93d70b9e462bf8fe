// What the front of the clouds answers about the health of a node, and what /health answers: one
// rule, at once, whatever else the node waits for.
import { expect, onTestFinished, test } from 'vitest';
import { createEvents } from '../../../server/base/events.ts';
import { systemClock } from '../../../server/base/time.ts';
import { createFleet } from '../../../server/operations/nodes/fleet.ts';
import type { FleetEvents, RootEvents } from '../../../server/operations/nodes/running-fleet.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';

test('a drained node is not healthy for the clouds as soon as it knows, and is again when it is resumed', async () => {
  const store = await storeOfTest(systemClock);
  const events = createEvents<FleetEvents & RootEvents>();
  const state = { note: () => undefined, kept: () => Promise.resolve() };
  const fleet = createFleet(
    { store, ring: {} as never, clock: systemClock, log: quietLog, state, events },
    { id: 'n1', start: { name: 'one', version: '1.0.0', contactMs: 300_000, directory: '' } },
  );
  onTestFinished(() => fleet.stop());
  let healthy = true;
  const none = () => Promise.resolve();
  const directory = fleet.over({ healthy: () => healthy, load: none, reload: none, renew: none } as never);
  await fleet.join(
    { rootEpoch: 1, oldestRootEpoch: 1, publicKey: Buffer.of(1), proof: Buffer.of(1) },
    { followRootRun: none, mayLead: () => Promise.resolve(true), mayTendSnapshots: () => Promise.resolve(true) },
  );
  const answers = () => [directory.healthy(), fleet.takesRequests()];
  expect(answers()).toEqual([true, true]);
  await store.write((tx) => tx.nodes.setState('n1', 'draining'));
  await fleet.look();
  expect(answers()).toEqual([false, false]);
  await store.write((tx) => tx.nodes.setState('n1', 'active'));
  await fleet.look();
  expect(answers()).toEqual([true, true]);
  healthy = false;
  expect(answers()).toEqual([false, true]);
});
