// The first steps of a service, over the real store: steps that it detects itself, and steps that a
// user confirms.

import { expect, test } from 'vitest';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import type { SetupStep } from '../../../server/domain/setup.ts';
import { administrator, auditKindsOf, openTestService } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';
import { makeRecoveryKey } from '../../support/snapshot-files.ts';
import { handOf } from '../../support/snapshots.ts';

const opened = sharedService();

const states = async (): Promise<Record<string, SetupStep['state']>> =>
  Object.fromEntries((await opened.operations.setup.get()).steps.map(({ step, state }) => [step, state]));

test('nothing is done at first; a confirmation is stored, audited once, and can be revoked', async () => {
  const { setup } = opened.operations;
  expect(await setup.get()).toMatchObject({ finishedAt: null });
  expect(Object.values(await states())).toEqual(Array(9).fill('open'));
  await setup.confirm(administrator, 'root-key', true);
  const { steps } = await setup.confirm(administrator, 'root-key', true);
  expect(steps.find(({ step }) => step === 'root-key')).toMatchObject({
    step: 'root-key',
    state: 'confirmed',
    confirmed: { by: administrator.name },
  });
  await setup.confirm(administrator, 'audit-sinks', true);
  await setup.confirm(administrator, 'audit-sinks', false);
  expect(await states()).toMatchObject({ 'root-key': 'confirmed', 'audit-sinks': 'open' });
  expect((await auditKindsOf(opened, 'service')).filter((kind) => kind === 'setup.confirmed')).toHaveLength(3);
});

test('it is finished when a snapshot was opened with the recovery key, and not before', async () => {
  const { operations } = opened;
  const hand = await handOf(opened);
  expect(await states()).toMatchObject({ 'recovery-key': 'done', snapshot: 'open' });
  const snapshot = await operations.snapshots.create(administrator, null);
  const { finishedAt, steps } = await operations.setup.get();
  expect([finishedAt, steps.at(-1)]).toMatchObject([
    null,
    { state: 'open', finding: expect.stringMatching(`dke snapshot verify --recovery-key .*${snapshot.id}`) as unknown },
  ]);
  await operations.snapshots.verify(administrator, snapshot.id, null);
  expect(await states()).toMatchObject({ snapshot: 'open' });
  const { verification } = await operations.snapshots.verify(
    administrator,
    snapshot.id,
    await hand.answer(snapshot.id),
  );
  expect(await operations.setup.get()).toMatchObject({ finishedAt: verification?.at });
  expect(await states()).toMatchObject({ snapshot: 'done' });
  // The snapshot was opened once: a later verification without the key, or its deletion, does not
  // reopen the setup.
  await operations.snapshots.verify(administrator, snapshot.id, null);
  await operations.snapshots.delete(administrator, snapshot.id);
  expect(await operations.setup.get()).toMatchObject({ finishedAt: verification?.at });
});

test('the last recovery key is removed under a schedule only by force', async () => {
  const toml = '[memory]\nallow_unlocked = true\n[snapshots]\nschedule = "0 3 1 1 *"\n';
  const scheduled = await openTestService({ toml });
  try {
    const { recoveryKeys } = scheduled.operations;
    const [one, other] = [makeRecoveryKey(), makeRecoveryKey()];
    for (const { publicKey } of [one, other])
      await recoveryKeys.register(administrator, { name: 'safe', publicKey: formatRecoveryKey(publicKey) });
    await recoveryKeys.remove(administrator, one.id, false);
    await expect(recoveryKeys.remove(administrator, other.id, false)).rejects.toMatchObject({
      code: 'conflict',
      hint: expect.stringContaining(`dke recovery-key remove --force ${other.id}`) as unknown,
    });
    expect(await recoveryKeys.remove(administrator, other.id, true)).toMatchObject({ id: other.id });
  } finally {
    await scheduled.remove();
  }
});

test('a copy of the root key counts until the next erasure run or rotation', async () => {
  const { setup, root } = opened.operations;
  expect(await states()).toMatchObject({ 'root-key': 'confirmed' });
  await root.rotate(administrator);
  await expect.poll(async () => (await root.get(administrator)).rotating).toBe(false);
  expect(await states()).toMatchObject({ 'root-key': 'open' });
  await setup.confirm(administrator, 'root-key', true);
  expect(await states()).toMatchObject({ 'root-key': 'confirmed' });
});
