// Snapshots where several nodes share one store: in one folder every node does everything with them; a node that has not got the folder
// lists them, refuses the rest with the name of the node that has them, and takes nothing for erased.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { Snapshot } from '../../server/fronts/contract/api/snapshots.ts';
import { startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';

let fleet: TestFleet | undefined;
afterEach(async () => {
  await fleet?.end();
  fleet = undefined;
}, 120_000);

const start = async (toml: string) => {
  fleet = await startFleet(['one', 'two'], { toml: `[erasure]\ngather_ms = 20\n${toml}` });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const publicKey = formatRecoveryKey(makeRecoveryKey().publicKey);
  await one.api.call('POST', '/api/recovery-keys', { name: 'safe', publicKey });
  return { one, two };
};

test('each node with a folder of its own: the first has the snapshots, and the other says so', async () => {
  const { one, two } = await start('');
  const vault = await one.api.call<{ id: string }>('POST', '/api/vaults', { name: 'archive' });
  await one.api.call('POST', '/api/keys', { name: 'kept', vaultId: vault.id });
  const made = await one.api.call<Snapshot>('POST', '/api/snapshots', {});
  const listed = await two.api.call<{ items: Snapshot[] }>('GET', '/api/snapshots');
  expect(listed.items.map(({ id, state }) => [id, state])).toEqual([[made.id, 'held']]);
  for (const [method, path, body] of [
    ['POST', `/api/snapshots/${made.id}/verify`, undefined],
    ['POST', `/api/snapshots/${made.id}/openings`, {}],
    ['GET', `/api/snapshots/${made.id}/file`, undefined],
    ['POST', '/api/snapshots', {}],
  ] as const) {
    const { status, text } = await two.api.send(method, path, body);
    expect([path, status, text]).toEqual([path, 503, expect.stringContaining('snapshots lie on node one')]);
  }
  // Nothing that was refused has marked it.
  expect(await one.api.call('POST', `/api/snapshots/${made.id}/verify`)).toMatchObject({
    state: 'held',
    verification: { sound: true },
  });
  // The node that has the folder takes the duties that look after it.
  await until('the duties', async () => {
    const nodes = await fleet?.nodes(one);
    return nodes?.find(({ name }) => name === 'one')?.duties.includes('erasure') ? true : undefined;
  });
}, 400_000);

test('in one folder, what one node has made the other verifies and exports', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dke-shared-'));
  try {
    const { one, two } = await start(`[snapshots]\ndirectory = ${JSON.stringify(directory)}\n`);
    const made = await one.api.call<Snapshot>('POST', '/api/snapshots', {});
    expect(await two.api.call('POST', `/api/snapshots/${made.id}/verify`)).toMatchObject({
      verification: { sound: true },
    });
    const { status, text } = await two.api.send('GET', `/api/snapshots/${made.id}/file`);
    expect([status, text.startsWith('DKE-SNAP')]).toEqual([200, true]);
    const other = await two.api.call<Snapshot>('POST', '/api/snapshots', {});
    expect(await one.api.call('POST', `/api/snapshots/${other.id}/verify`)).toMatchObject({ state: 'held' });
  } finally {
    await fleet?.end();
    fleet = undefined;
    rmSync(directory, { recursive: true, force: true });
  }
}, 400_000);
