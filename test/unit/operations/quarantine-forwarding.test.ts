// What a node that enters quarantine forwards to the sinks of the audit log: the evidence, and
// nothing of a log that is in doubt.
import { randomFillSync, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFileSink } from '../../../server/adapters/sinks/file.ts';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { Unsound } from '../../../server/domain/audit-finding.ts';
import { createLogForwarding, type LogForwarding } from '../../../server/operations/audit/forward-logs.ts';
import { createQuarantine, type QuarantineGate } from '../../../server/operations/service/quarantine.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { until } from '../../support/host.ts';
import { administrator } from '../../support/open-service.ts';
import { openTestStore } from '../../support/open-store.ts';
import { quietLog as log } from '../../support/quiet-log.ts';
import { differences, noNodeState } from '../../support/sealers.ts';

const quiet = () => undefined;
const nothing = (): Promise<void> => Promise.resolve();

let folder: string;
let store: Store;
const running: LogForwarding[] = [];
beforeEach(async () => {
  folder = folderOfTest();
  store = await openTestStore(folder, systemClock);
  await store.write((tx) => tx.decisions.set('audit-origin', 'dke/audit/one'));
  await append();
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop(5000);
  await store.close();
});

/** Past the quarantine, as another program does that writes to the database. */
const append = () =>
  store.write((tx) =>
    tx.audit.append({
      kind: 'service.stopped',
      actor: serviceActor('r'),
      tenantId: 'service',
      subject: { kind: 'service', id: 'service' },
      details: {},
    }),
  );

interface Node {
  readonly gate: QuarantineGate;
  /** Numbers of the records that its sink has. */
  records(): readonly number[];
  /** Resolves when it has looked for records twice. */
  looks(): Promise<true>;
}
const start = (name: string): Node => {
  const gate = createQuarantine(
    store,
    { accept: nothing, suspend: quiet },
    {
      ...{
        finding: { state: 'intact' },
        place: 'dke.db',
        state: noNodeState,
        clock: systemClock,
        log,
        missing: () => Promise.resolve(null),
      },
      core: { random: (into) => void randomFillSync(into), timingSafeEqual },
    },
  );
  let looked = 0;
  const perform = <T>(_: unknown, work: () => Promise<T>): Promise<T> =>
    work().finally(() => {
      looked += 1;
    });
  const path = join(folder, `${name}.ndjson`);
  const sink = openFileSink({ name, path, rotateBytes: 1 << 30, keep: 0 });
  const ports = { store: gate.store, clock: systemClock, log, fleet: { perform } };
  const forwarding = createLogForwarding(ports, [{ sink, log: 'audit', endpoints: [] }], gate);
  forwarding.start();
  running.push(forwarding);
  return {
    gate,
    records: () =>
      readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .flatMap((line) => (JSON.parse(line) as { sequence?: number }).sequence ?? []),
    looks: async () => {
      const before = looked;
      return until('two looks', async () => (looked >= before + 2 ? true : undefined));
    },
  };
};

const doubted: readonly Unsound[] = [
  { differences, state: 'older', size: 1, expected: 2 },
  { differences, state: 'incomplete', size: 1, expected: 2 },
  { differences, state: 'changed', size: 1 },
  { differences, state: 'restored', size: 1, at: '2026-01-01T00:00:00Z' },
  { differences, state: 'lost-changes' },
];

test('a log in doubt is not forwarded; an intact one is forwarded once, and continues at its position after the confirmation', async () => {
  const inDoubt = doubted.map((finding) => ({ finding, node: start(finding.state) }));
  const intact = start('rows-changed');
  const nodes = [...inDoubt.map(({ node }) => node), intact];
  for (const { looks } of nodes) await looks();
  expect(nodes.map(({ records }) => records())).toEqual(nodes.map(() => [1]));

  for (const { finding, node } of inDoubt) node.gate.enter(finding);
  intact.gate.enter({ differences, state: 'rows-changed', size: 1, older: [] });
  await append();
  for (const { looks } of nodes) await looks();
  expect(inDoubt.map(({ finding, node }) => [finding.state, node.records()])).toEqual(
    doubted.map(({ state }) => [state, [1]]),
  );
  await intact.looks();
  expect(intact.records()).toEqual([1, 2]);

  await intact.gate.operations.confirm(administrator, intact.gate.closed()?.code ?? '');
  await append();
  await intact.looks();
  expect(intact.records()).toEqual([1, 2, 3]);
});
