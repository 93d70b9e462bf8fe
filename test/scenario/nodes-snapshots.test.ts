// Snapshots where several nodes share one store: in one folder every node does everything with
// them; a node that does not have the folder lists them, refuses the rest with the name of the node
// that has them, and takes nothing for erased.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import type { KeyCopies } from '../../server/contract/api/keys-routes.ts';
import type { Snapshot, SnapshotOpening } from '../../server/contract/api/snapshots-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';
import { answerOpening } from '../support/snapshots.ts';

let fleet: TestFleet | undefined;
afterEach(async () => {
  await fleet?.end();
  fleet = undefined;
});

const start = async (toml: string) => {
  fleet = await startFleet(['one', 'two'], { toml: `[erasure]\ngather_ms = 20\n${toml}` });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const recovery = makeRecoveryKey();
  const publicKey = formatRecoveryKey(recovery.publicKey);
  await one.api.call('POST', '/api/recovery-keys', { name: 'safe', publicKey });
  return { one, two, recovery };
};

test('each node with a folder of its own: the first has the snapshots, and the other says so', async () => {
  const { one, two } = await start('');
  const vault = await one.api.call<{ id: string }>('POST', '/api/vaults', { name: 'archive' });
  await one.api.call('POST', '/api/keys', { name: 'kept', vaultId: vault.id });
  const made = await one.api.call<Snapshot>('POST', '/api/snapshots', {});
  const listed = await two.api.call<{ items: Snapshot[] }>('GET', '/api/snapshots');
  expect(listed.items.map(({ id, state }) => [id, state])).toEqual([[made.id, 'available']]);
  for (const [method, path, body] of [
    ['POST', `/api/snapshots/${made.id}/verify`, undefined],
    ['POST', `/api/snapshots/${made.id}/openings`, {}],
    ['GET', `/api/snapshots/${made.id}/file`, undefined],
    ['POST', '/api/snapshots', {}],
  ] as const) {
    const { status, text } = await two.api.send(method, path, body);
    expect([path, status, text]).toEqual([path, 503, expect.stringContaining('snapshots are on node one')]);
  }
  // Nothing that was refused has marked it.
  expect(await one.api.call('POST', `/api/snapshots/${made.id}/verify`)).toMatchObject({
    state: 'available',
    verification: { valid: true },
  });
  // The node that has the folder takes the duties that look after it.
  await until('the duties', async () => {
    const nodes = await fleet?.nodes(one);
    return nodes?.find(({ name }) => name === 'one')?.duties.includes('erasure') ? true : undefined;
  });
});

test('in one folder, what one node has made the other verifies, exports and opens, and either erases', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dke-shared-'));
  try {
    const { one, two, recovery } = await start(`[snapshots]\ndirectory = ${JSON.stringify(directory)}\n`);
    const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
    const waits = 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n';
    const database = fleet?.database('erp', application, waits);
    const label = 'ORACLE.TDE.HSM.MK.06AB';
    expect([await database?.call('open', { pin: 'x' }), await database?.call('generate', { label })]).toMatchObject([
      { rv: 'CKR_OK' },
      { rv: 'CKR_OK' },
    ]);
    const made = await one.api.call<Snapshot>('POST', '/api/snapshots', {});
    expect(await two.api.call('POST', `/api/snapshots/${made.id}/verify`)).toMatchObject({
      verification: { valid: true },
    });
    const { status, text } = await two.api.send('GET', `/api/snapshots/${made.id}/file`);
    expect([status, text.startsWith('DKE-SNAP')]).toEqual([200, true]);
    const other = await two.api.call<Snapshot>('POST', '/api/snapshots', {});
    expect(await one.api.call('POST', `/api/snapshots/${other.id}/verify`)).toMatchObject({ state: 'available' });

    // An opening that one node began is answered to another, once, by the node that began it.
    const begin = async () => {
      const begun = await one.api.call<SnapshotOpening>('POST', `/api/snapshots/${made.id}/openings`, {});
      return { ...begun, expiresAt: Date.parse(begun.expiresAt) };
    };
    const verify = (member: FleetMember, answer: object) =>
      member.api.send('POST', `/api/snapshots/${made.id}/verify-opened`, answer);
    const answer = answerOpening(await begin(), recovery.key);
    const opened = await verify(two, answer);
    expect([opened.status, opened.text]).toEqual([200, expect.stringContaining('"depth":"opened"')]);
    for (const member of [one, two])
      expect(await verify(member, answer)).toMatchObject({
        status: 409,
        text: expect.stringContaining('this opening does not exist'),
      });
    // An opening outlives a restart of the node that began it, and an erasure run.
    const later = answerOpening(await begin(), recovery.key);
    await one.stop();
    await one.start();
    await two.api.call('POST', '/api/root/rotate', {});
    await until('the turn', async () => {
      const nodes = await fleet?.nodes(two);
      return nodes?.every(({ rootEpoch, hasOldRoot }) => rootEpoch > 1 && !hasOldRoot) ? true : undefined;
    });
    expect((await verify(two, later)).status).toBe(200);
    expect(
      fleet?.postgres.run(
        fleet.place.database,
        "select (select count(*) from snapshot_openings) + (select count(*) from key_records where class = 'snapshot-opening' and record is not null)",
      ),
    ).toBe('0');

    // A destroyed key is removed from every snapshot here; each node names the exported copy.
    const master = await two.api.masterKey(application.application.id, label);
    const path = `/api/tde/applications/${application.application.id}/master-keys/${master.id}`;
    await two.api.call('POST', `${path}/destroy`, { confirm: master.name });
    const copies = ({ api }: FleetMember) => api.call<KeyCopies>('GET', `/api/keys/${master.id}/snapshots`);
    const [exported] = (await two.api.call<{ items: { id: string; snapshotId: string }[] }>('GET', '/api/copies'))
      .items;
    expect(exported?.snapshotId).toBe(made.id);
    for (const { api } of [one, two]) {
      await until('the erasure run', async () =>
        (await api.call<Snapshot>('GET', `/api/snapshots/${made.id}`)).erased > 0 ? true : undefined,
      );
      for (const { id } of [made, other]) {
        const { erased, verification } = await api.call<Snapshot>('POST', `/api/snapshots/${id}/verify`);
        expect([id, erased > 0, verification]).toMatchObject([id, true, { valid: true }]);
      }
    }
    for (const member of [one, two])
      expect(await copies(member)).toMatchObject({
        count: 1,
        items: [{ place: 'exported-snapshot', id: exported?.id }],
      });
    await one.api.call('POST', `/api/copies/${exported?.id}/confirm-destroyed`, {});
    for (const member of [one, two]) {
      await until(
        'the conclusion',
        async () =>
          (await member.api.call<{ unrecoverableAt: string | null }>('GET', path)).unrecoverableAt ?? undefined,
      );
      expect(await copies(member)).toEqual({ count: 0, items: [] });
    }
  } finally {
    await fleet?.end();
    fleet = undefined;
    rmSync(directory, { recursive: true, force: true });
  }
});
