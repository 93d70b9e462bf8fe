// Nodes in quarantine after a failover that has lost changes are confirmed one after the other.
// Each keeps a checkpoint next to its root key, which must be of this log when the node starts
// again, however soon that is.
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../server/base/checkpoint.ts';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import { createQuarantine } from '../../../server/operations/service/quarantine.ts';
import { folderOfTest } from '../../support/folders.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { differences, noNodeState, openSealers, type Sealers } from '../../support/sealers.ts';

let folder: string;
let sealers: Sealers;
beforeEach(async () => {
  folder = folderOfTest();
  sealers = await openSealers(join(folder, 'dke.db'));
});
afterEach(async () => {
  await sealers.store.close();
});

const append = (): Promise<unknown> =>
  sealers.store.write((tx) =>
    tx.audit.append({
      kind: 'service.started',
      actor: serviceActor('r'),
      tenantId: 'service',
      subject: { kind: 'service', id: 'service' },
      details: {},
    }),
  );

const startBoth = async () => {
  const [first, second] = [sealers.node(true), sealers.node(false)];
  for (const { sealer } of [first, second]) expect(await sealer.inspect()).toEqual({ state: 'intact' });
  await append();
  return [first, second] as const;
};

test('a node in quarantine keeps nothing that another node has signed since', async () => {
  const [first, second] = await startBoth();
  await first.sealer.checkpoint();
  sealers.pass(1_000);
  await second.sealer.run();
  const kept = second.anchor();
  expect(kept).toBe(first.anchor());

  for (const { sealer } of [first, second]) sealer.suspend();
  await first.sealer.accept({ differences, state: 'lost-changes' });
  sealers.pass(1_000);
  await second.sealer.run();
  expect(second.anchor()).toBe(kept);

  await second.sealer.accept({ differences, state: 'lost-changes' });
  const origins = [first, second].map(({ anchor }) => parseCheckpoint(anchor() ?? '')?.origin);
  expect(new Set(origins).size).toBe(1);
  // Each starts again at once.
  for (const { sealer } of [first, second]) expect(await sealer.inspect()).toEqual({ state: 'intact' });
  sealers.pass(1_000);
  await append();
  await first.sealer.checkpoint();
  await second.sealer.run();
  expect(second.anchor()).toBe(first.anchor());
  expect(sealers.errors).toEqual([]);
});

test('a node without a checkpoint does not name the log a second time', async () => {
  const [first, second] = await startBoth();
  for (const { sealer } of [first, second]) sealer.suspend();
  expect(second.anchor()).toBeUndefined();
  await first.sealer.accept({ differences, state: 'lost-changes' });
  await second.sealer.accept({ differences, state: 'lost-changes' });
  for (const { sealer } of [first, second]) expect(await sealer.inspect()).toEqual({ state: 'intact' });
});

test('a node that could not continue after a confirmation stays in quarantine, and can be confirmed again', async () => {
  const [{ sealer }] = await startBoth();
  const gate = createQuarantine(sealers.store, sealer, {
    finding: { state: 'intact' },
    state: noNodeState,
    place: 'the database',
    core: { random: (to) => to.fill(1), timingSafeEqual: (a, b) => Buffer.from(a).equals(b) },
    clock: systemClock,
    log: quietLog,
    missing: () => Promise.resolve(null),
  });
  gate.enter({ differences, state: 'lost-changes' });
  let attempts = 0;
  gate.onConfirmed(() => {
    attempts += 1;
    return attempts === 1 ? Promise.reject(new Error('the database does not answer')) : Promise.resolve();
  });
  const size = await sealers.store.read.audit.size();
  const { code = '' } = gate.closed() ?? {};
  const confirm = () => gate.operations.confirm(serviceActor('r'), code);
  await expect(confirm()).rejects.toThrow('the database does not answer');
  expect(await gate.operations.get(serviceActor('r'))).toMatchObject({ quarantined: true, finding: 'lost-changes' });
  await expect(gate.store.write(async () => undefined)).rejects.toThrow('the service is in quarantine');
  expect(await confirm()).toMatchObject({ quarantined: false });
  // The acceptance is recorded once, although the first attempt failed.
  expect(await sealers.store.read.audit.size()).toBe(size + 1);
});
