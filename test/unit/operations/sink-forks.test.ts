// A fork of a log at a sink whose files cannot be moved: each attempt finds it again.
import { expect, test } from 'vitest';
import { systemClock } from '../../../server/base/time.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import { createLogForwarding } from '../../../server/operations/audit/forward-logs.ts';
import type { LogSink } from '../../../server/ports/log-sink.ts';
import { folderOfTest } from '../../support/folders.ts';
import { until } from '../../support/host.ts';
import { openTestStore } from '../../support/open-store.ts';
import { quietLog as log } from '../../support/quiet-log.ts';

test('is one record of the audit log, however often it is found', async () => {
  const store = await openTestStore(folderOfTest(), systemClock);
  await store.write(async (tx) => {
    await tx.decisions.set('audit-origin', 'dke/audit/one');
    const subject = { kind: 'service', id: 'service' } as const;
    const actor = serviceActor('r');
    await tx.audit.append({ kind: 'service.stopped', actor, tenantId: 'service', subject, details: {} });
  });
  let attempts = 0;
  const sink: LogSink = {
    ...{ name: 'f', type: 'file', target: '/sink', wholeLogs: true },
    send: () => Promise.resolve({ sequence: 1, hash: 'ab'.repeat(32) }),
    setAside: () => {
      attempts += 1;
      return Promise.reject(new Error('EPERM: operation not permitted'));
    },
    close: () => Promise.resolve(),
  };
  const fleet = { perform: <T>(_: unknown, work: () => Promise<T>): Promise<T> => work() };
  const quarantine = { closed: () => undefined, doubtsLog: () => false };
  const forwarding = createLogForwarding(
    { store, clock: systemClock, log, fleet },
    [{ sink, log: 'audit', endpoints: [] }],
    quarantine,
  );
  forwarding.start();
  await until('three attempts', async () => (attempts >= 3 ? true : undefined));
  expect(await store.read.audit.size()).toBe(2);
  await forwarding.stop(5000);
  await store.close();
});
