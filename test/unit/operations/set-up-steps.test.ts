// The first steps of a service, over the real store: what it sees by itself, and what is somebody's word.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createRecoveryKeyFile } from '../../../server/cli/recovery-key-file.ts';
import type { SetupStep } from '../../../server/domain/setup.ts';
import { administrator, auditKindsOf, type OpenedService, openTestService } from '../../support/open-service.ts';

let opened: OpenedService;
beforeAll(async () => {
  opened = await openTestService();
}, 240_000);
afterAll(() => opened?.remove());

const states = async (): Promise<Record<string, SetupStep['state']>> =>
  Object.fromEntries((await opened.operations.setup.get()).steps.map(({ step, state }) => [step, state]));

test('nothing is done at first; a word is kept, told once to the audit log, and taken back', async () => {
  const { setup } = opened.operations;
  expect(await setup.get()).toMatchObject({ finishedAt: null });
  expect(Object.values(await states())).toEqual(['open', 'open', 'open', 'open', 'open']);
  await setup.settle(administrator, 'root-key', true);
  const { steps } = await setup.settle(administrator, 'root-key', true);
  expect(steps[0]).toMatchObject({ step: 'root-key', state: 'settled', settled: { by: administrator.name } });
  await setup.settle(administrator, 'audit-sinks', true);
  await setup.settle(administrator, 'audit-sinks', false);
  expect(await states()).toMatchObject({ 'root-key': 'settled', 'audit-sinks': 'open' });
  expect((await auditKindsOf(opened, 'service')).filter((kind) => kind === 'setup.settled')).toHaveLength(3);
});

test('a recovery key and a snapshot that is found sound finish it', async () => {
  const { operations } = opened;
  const { publicKey } = createRecoveryKeyFile(core, join(opened.folder, 'recovery.key'), null);
  await operations.recoveryKeys.register(administrator, { name: 'safe', publicKey });
  expect(await states()).toMatchObject({ 'recovery-key': 'done', snapshot: 'open' });
  const snapshot = await operations.snapshots.create(administrator, null);
  expect(await operations.setup.get()).toMatchObject({ finishedAt: snapshot.verifiedAt });
  expect(await states()).toMatchObject({ snapshot: 'done' });
  // It was found sound once: that it goes away later does not begin the set-up anew.
  await operations.snapshots.delete(administrator, snapshot.id);
  expect(await operations.setup.get()).toMatchObject({ finishedAt: snapshot.verifiedAt });
});
