// The erasure run over several nodes: every node gets the new root key and ends the old one before
// a destroyed key counts as unrecoverable, even if nodes are killed in the meantime; no other key
// is lost.
import { randomBytes } from 'node:crypto';
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseVerifierKey, type Verifier } from '../../server/base/checkpoint.ts';
import { verifyAuditLog } from '../../server/cli/verify/audit-export.ts';
import type { AuditLog } from '../../server/contract/api/audit-routes.ts';
import type { Status } from '../../server/contract/api/status-routes.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import type { CurlAnswer } from '../demo/curl.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { holdStatement } from '../support/held-statement.ts';
import { until } from '../support/host.ts';
import { quarantineCodeOf } from '../support/server-process.ts';
import { sizeOf } from '../support/tiers.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
let one: FleetMember;
let two: FleetMember;
let database: Database;
let application: RegisteredApplication;
let endpoint: XksEndpoint;
let sealed: CurlAnswer['body'];
const plain = randomBytes(32);

beforeAll(async () => {
  fleet = await startFleet(['one', 'two'], { toml: '[erasure]\ngather_ms = 20\n' });
  one = fleet.member('one');
  two = fleet.member('two');
  await untilActive(fleet, one, ['one', 'two']);
  application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n');
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  endpoint = await createXksEndpoint({ api: one.api, server: one.server }, 'cloud');
  sealed = (await endpoint.encrypt(plain)).body;
});
afterAll(() => fleet?.end());

/** Makes a master key and destroys it; answers where its two time stamps are. */
const destroyOne = async (by: FleetMember): Promise<string> => {
  const label = `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
  expect((await database.call('generate', { label })).rv).toBe('CKR_OK');
  const key = await by.api.masterKey(application.application.id, label);
  const path = `/api/tde/applications/${application.application.id}/master-keys/${key.id}`;
  await by.api.call('POST', `${path}/destroy`, { confirm: key.name });
  return path;
};
const untilUnrecoverable = (from: FleetMember, path: string) =>
  until('the erasure run', async () => {
    const { unrecoverableAt } = await from.api.call<{ unrecoverableAt: string | null }>('GET', path);
    return unrecoverableAt ?? undefined;
  });
/** What lives opens on each node, sealed long ago or just now. */
const expectAllServe = async (members: readonly FleetMember[]): Promise<void> => {
  for (const { server } of members) {
    const there = endpoint.at(server);
    expect((await there.decrypt(sealed)).body.plaintext).toBe(plain.toString('base64'));
    expect((await there.decrypt((await there.encrypt(plain)).body)).status).toBe(200);
  }
};
const rootsOf = async (from: FleetMember) =>
  (await fleet.nodes(from))
    .filter(({ state }) => state !== 'removed')
    .map(({ name, rootEpoch, hasOldRoot }) => ({ name, rootEpoch, hasOldRoot }));

test('every node has the new root key and none the old one when a key is unrecoverable', async () => {
  await untilUnrecoverable(one, await destroyOne(two));
  // The node with the duty reports it last, at the end of the run.
  await expect
    .poll(() => rootsOf(one))
    .toEqual([
      { name: 'one', rootEpoch: 2, hasOldRoot: false },
      { name: 'two', rootEpoch: 2, hasOldRoot: false },
    ]);
  expect(fleet.postgres.run(fleet.place.database, 'select count(*) from root_parcels')).toBe('0');
  await expectAllServe([one, two]);
  for (const member of [one, two]) {
    await member.stop();
    await member.start();
  }
  await expectAllServe([one, two]);
});

test('a rotation is carried out wherever it is requested: also on the node that does not have the duty', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  const before = (await rootsOf(one))[0]?.rootEpoch ?? 0;
  const holder = await until('a node with the duty', async () =>
    (await fleet.nodes(one)).find(({ duties }) => duties.includes('erasure')),
  );
  const other = holder.name === 'one' ? two : one;
  await other.api.call('POST', '/api/root/rotate', {});
  await until('the rotation', async () =>
    (await rootsOf(other)).every(({ rootEpoch, hasOldRoot }) => rootEpoch === before + 1 && !hasOldRoot)
      ? true
      : undefined,
  );
  await expectAllServe([one, two]);
});

test('the key of the audit log is rotated on any node: the others sign and verify with the new one', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  const keyOf = async ({ api }: FleetMember) => api.call<AuditLog>('GET', '/api/audit/log');
  const holder = await until('a node with the duty', async () =>
    (await fleet.nodes(one)).find(({ duties }) => duties.includes('audit')),
  );
  const other = holder.name === 'one' ? two : one;
  const before = await keyOf(one);
  const rotated = await other.api.call<AuditLog>('POST', '/api/audit/log/rotate-key', {});
  expect(rotated.formerKeys).toEqual([{ verifierKey: before.verifierKey, through: expect.any(Number) }]);
  for (const member of [one, two])
    await expect.poll(async () => (await keyOf(member)).verifierKey).toBe(rotated.verifierKey);
  await until('the rotation of the root key', async () =>
    (await one.api.call<{ rotating: boolean }>('GET', '/api/root')).rotating ? undefined : true,
  );
  // Since the rotation, each node has signed; its export ends with a checkpoint of its own.
  for (const member of [one, two])
    for (const key of [before, rotated]) {
      const { text } = await member.api.send('GET', '/api/audit/export');
      const { findings } = await verifyAuditLog(
        Readable.from(text.trimEnd().split('\n')),
        parseVerifierKey(key.verifierKey) as Verifier,
      );
      expect(findings).toEqual([]);
    }
  await expectAllServe([one, two]);
});

test('a node that is away is waited for, by name', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  await two.stop();
  const path = await destroyOne(one);
  await until('the blocked run', async () => {
    const { erasure } = await one.api.call<Status>('GET', '/api/status');
    return erasure.blockers?.nodes.join() === 'two' ? true : undefined;
  });
  expect((await one.api.call<{ unrecoverableAt: null }>('GET', path)).unrecoverableAt).toBeNull();
  await expectAllServe([one]);
  await two.start();
  await untilUnrecoverable(two, path);
  await expectAllServe([one, two]);
});

const leaderOf = async (): Promise<FleetMember> => {
  const name = await until(
    'a node to lead runs',
    async () => (await fleet.nodes(one)).find(({ duties }) => duties.includes('erasure'))?.name,
  );
  return fleet.member(name);
};

// Each moment once in the short tier; the model (test/model/erasure.test.ts) has every one of both.
const moments = [
  ['a new root key is made', 'leads', 'insert', 'root_runs'],
  ['it is on its way', 'follows', 'insert', 'root_parcels'],
  ['all is sealed under it', 'leads', 'update', 'root_runs'],
  ['the old one is gone', 'leads', 'delete', 'root_runs'],
  ['it is on its way', 'leads', 'insert', 'root_parcels'],
  ['all is sealed under it', 'follows', 'update', 'root_runs'],
] as const;
test.each(moments.slice(0, sizeOf('kills in an erasure run')))(
  'a run comes to its end when a node is killed in it: %s, the one that %s',
  async (_, who, when, table) => {
    await untilActive(fleet, one, ['one', 'two']);
    const leader = await leaderOf();
    const victim = (leader === one) === (who === 'leads') ? one : two;
    const other = victim === one ? two : one;
    const stop = await holdStatement(fleet.place, when, table);
    let path: string;
    try {
      path = await destroyOne(other);
      await stop.reached();
      await victim.stop('SIGKILL');
    } finally {
      await stop.goOn();
    }
    await victim.start();
    await untilUnrecoverable(other, path);
    await expectAllServe([one, two]);
    const roots = await until('one root key', async () => {
      const seen = await rootsOf(other);
      return seen.every(({ hasOldRoot }) => !hasOldRoot) ? seen : undefined;
    });
    expect(new Set(roots.map(({ rootEpoch }) => rootEpoch)).size).toBe(1);
  },
);

test('a failover that loses what nodes told of their root keys: the run comes to its end', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  const before = (await rootsOf(one))[0]?.rootEpoch ?? 0;
  await fleet.postgres.keepState();
  await untilActive(fleet, one, ['one', 'two']);
  const stop = await holdStatement(fleet.place, 'insert', 'tenant_keks');
  await one.api.call('POST', '/api/root/rotate', {});
  await stop.reached();
  // Each node has the new root key and has confirmed it. The database after the failover has
  // neither the key nor the run.
  for (const { api } of [one, two])
    expect(await api.call('GET', '/api/root')).toMatchObject({ epoch: before + 1, previousEpoch: before });
  await fleet.postgres.failOver();
  stop.abandon();
  for (const { api, server } of [one, two]) {
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"quarantine"}');
    const code = await quarantineCodeOf(server);
    await api.call('POST', '/api/quarantine/confirm', { code });
  }
  await until('the end of the run', async () =>
    (await rootsOf(one)).every(({ rootEpoch, hasOldRoot }) => rootEpoch === before + 1 && !hasOldRoot)
      ? true
      : undefined,
  );
  await expectAllServe([one, two]);
});

test('a node that was removed is not waited for, does not start again, and joins again with the root key of today', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  const { id = '' } = (await fleet.nodes(one)).find(({ name }) => name === 'two') ?? {};
  await two.stop();
  const path = await destroyOne(one);
  await one.api.call('DELETE', `/api/nodes/${id}`);
  await untilUnrecoverable(one, path);
  await expect(two.start()).rejects.toThrow(/root key/);
  const data = (member: FleetMember, file: string): string => join(member.folder, 'dke-data', file);
  rmSync(data(two, 'root.key'));
  copyFileSync(data(one, 'root.key'), data(two, 'root.key'));
  await expect(two.start()).rejects.toThrow('this node was removed');
  rmSync(data(two, 'node'));
  await two.start();
  await expectAllServe([one, two]);
});
