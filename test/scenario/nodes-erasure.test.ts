// The erasure turn over several nodes: every node gets the new root key and ends the old one before a destroyed key counts as
// unrecoverable, whoever is killed meanwhile; nothing that lives is lost.
import { randomBytes } from 'node:crypto';
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Status } from '../../server/fronts/contract/api/status.ts';
import type { RegisteredApplication } from '../../server/fronts/contract/api/tde-applications.ts';
import type { CurlAnswer } from '../demo/curl.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Database } from '../support/database.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
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
  database = fleet.database('erp', application);
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  endpoint = await createXksEndpoint({ api: one.api, server: one.server }, 'cloud');
  sealed = (await endpoint.encrypt(plain)).body;
}, 90_000);
afterAll(() => fleet?.end());

/** Makes a master key and destroys it; answers where its two time stamps are. */
const destroyOne = async (by: FleetMember): Promise<string> => {
  const label = `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
  // A key is not made twice: a call whose connection ends with the node that was just stopped is not repeated by itself.
  await until('a master key', async () => {
    const { rv } = await database.call('generate', { label });
    return rv === 'CKR_OK' || rv === 'CKR_FUNCTION_REJECTED' ? true : undefined;
  });
  const key = await by.api.masterKey(application.application.id, label);
  const path = `/api/tde/applications/${application.application.id}/master-keys/${key.id}`;
  await by.api.call('POST', `${path}/destroy`, { confirm: key.name });
  return path;
};
const untilUnrecoverable = (from: FleetMember, path: string) =>
  until('the erasure turn', async () => {
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
    .map(({ name, rootEpoch, holdsOldRoot }) => ({ name, rootEpoch, holdsOldRoot }));

test('every node has the new root key and none the old one when a key is unrecoverable', async () => {
  await untilUnrecoverable(one, await destroyOne(two));
  expect(await rootsOf(one)).toEqual([
    { name: 'one', rootEpoch: 2, holdsOldRoot: false },
    { name: 'two', rootEpoch: 2, holdsOldRoot: false },
  ]);
  expect(fleet.postgres.run(fleet.place.database, 'select count(*) from root_parcels')).toBe('0');
  await expectAllServe([one, two]);
  for (const member of [one, two]) {
    await member.stop();
    await member.start();
  }
  await expectAllServe([one, two]);
});

test('a node that is away is waited for, by name', async () => {
  await untilActive(fleet, one, ['one', 'two']);
  await two.stop();
  const path = await destroyOne(one);
  await until('the hold', async () => {
    const { erasure } = await one.api.call<Status>('GET', '/api/status');
    return erasure.hold?.nodes.join() === 'two' ? true : undefined;
  });
  expect((await one.api.call<{ unrecoverableAt: null }>('GET', path)).unrecoverableAt).toBeNull();
  await expectAllServe([one]);
  await two.start();
  await untilUnrecoverable(two, path);
  await expectAllServe([one, two]);
});

test.each([0, 1, 2, 3])('a node that is killed during the turn finishes it when it is back: %i', async (round) => {
  const [victim, other] = round % 2 === 0 ? [one, two] : [two, one];
  await untilActive(fleet, other, ['one', 'two']);
  const path = await destroyOne(other);
  // Somewhere in the turn: nothing is judged by where.
  await setTimeout(100 + round * 300);
  await victim.stop('SIGKILL');
  await victim.start();
  await untilUnrecoverable(other, path);
  await expectAllServe([one, two]);
  const roots = await until('one root key', async () => {
    const seen = await rootsOf(other);
    return seen.every(({ holdsOldRoot }) => !holdsOldRoot) ? seen : undefined;
  });
  expect(new Set(roots.map(({ rootEpoch }) => rootEpoch)).size).toBe(1);
});

test('a node that was removed is not waited for, does not start again, and joins anew with the root key of today', async () => {
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
