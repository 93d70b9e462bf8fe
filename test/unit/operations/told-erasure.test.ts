// The state of the erasure run on a node without the duty: a run that waits is never said to be
// idle.
import { expect, test } from 'vitest';
import { rotationSetting } from '../../../server/domain/changes.ts';
import { createErasureScheduler } from '../../../server/operations/root/schedule-erasure.ts';
import { quietLog } from '../../support/quiet-log.ts';

/** Two nodes of one store; the first one has the duty. */
const openNodes = () => {
  const settings = new Map<string, string>();
  const decisions = new Map<string, string>();
  const read = {
    settings: { get: async (name: string) => settings.get(name) },
    decisions: { get: async (name: string) => decisions.get(name) },
  };
  const store = {
    link: {},
    read,
    write: async (work: (tx: unknown) => Promise<unknown>) =>
      work({
        ...read,
        settings: { ...read.settings, set: async (name: string, text: string) => settings.set(name, text) },
      }),
  };
  const open = (holds: boolean) =>
    createErasureScheduler(
      { store, log: quietLog, clock: { monotonic: () => 0 }, fleet: { holds: () => holds } } as never,
      { gatherMs: 3_600_000, retryMs: 3_600_000, heldMs: 3_600_000 },
    );
  return { owner: open(true), other: open(false), decisions };
};

test('a run that collects destructions is told as soon as it waits', async () => {
  const { owner, other } = openNodes();
  expect(await other.state()).toMatchObject({ state: 'idle' });
  owner.schedule();
  await expect.poll(async () => (await other.state()).state).toBe('waiting');
  await owner.stop();
});

test('a run that was asked for, or has begun, waits while no node tells of it', async () => {
  for (const name of ['erasure-started', rotationSetting]) {
    const { owner, other, decisions } = openNodes();
    decisions.set(name, '1');
    expect(await other.state()).toMatchObject({ state: 'waiting' });
    await owner.stop();
  }
});
