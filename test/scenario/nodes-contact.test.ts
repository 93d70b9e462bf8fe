// How long a node may use keys without its database: with a limit, and without one.
import { randomBytes } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { startServerProcess } from '../support/server-process.ts';
import { shiftedClock } from '../support/shifted-clock.ts';
import { createXksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
const closing: (() => void)[] = [];
afterEach(async () => {
  await fleet?.end();
  for (const close of closing.splice(0)) close();
});
const plain = randomBytes(32);

test('without its database a node uses the keys in its memory until its contact time has passed, and no other key', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-contact-'));
  closing.push(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const clock = shiftedClock(folder);
  const environmentOf = () => clock.environment;
  fleet = await startFleet(['one'], { relay: true, store: 'contact_seconds = 120\n', environmentOf });
  const one = fleet.member('one');
  const site = () => ({ api: one.api, server: one.server });
  const [known, other] = [await createXksEndpoint(site(), 'known'), await createXksEndpoint(site(), 'not used')];
  const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  const database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 1000\n');
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  const iv = '00'.repeat(16);
  const use = async (handle: number) => (await database.call('encrypt', { handle, iv, data: 'ab'.repeat(16) })).rv;
  const labels = ['ORACLE.TDE.HSM.MK.06B1', 'ORACLE.TDE.HSM.MK.06B2'];
  const handles: number[] = [];
  for (const label of labels) handles.push((await database.call('generate', { label })).handle ?? 0);
  // Its memory has the keys of all endpoints, and those of databases that were used since then.
  await one.stop();
  await one.start();
  await until('its health', async () => ((await one.api.send('GET', '/health')).status === 200 ? true : undefined));
  const [inMemory = 0, notInMemory = 0] = handles;
  await until('the use after the restart', async () => ((await use(inMemory)) === 'CKR_OK' ? true : undefined));
  expect((await known.encrypt(plain)).status).toBe(200);

  fleet.relay.moveTo('/nowhere/.s.PGSQL.5432');
  fleet.relay.cut('');
  const during = [await use(inMemory), await use(notInMemory), (await known.encrypt(plain)).status];
  expect([...during, (await other.encrypt(plain)).status]).toEqual(['CKR_OK', 'CKR_DEVICE_ERROR', 200, 200]);
  // The cloud's signatures allow for five minutes.
  clock.ahead(200_000);
  await until('the end of the contact', async () =>
    (await one.api.send('GET', '/health')).status === 503 ? true : undefined,
  );
  expect((await known.encrypt(plain)).status).toBe(503);
  expect(await use(inMemory)).not.toBe('CKR_OK');

  clock.ahead(0);
  fleet.relay.moveTo(fleet.postgres.socket);
  await until('the contact', async () => ((await one.api.send('GET', '/health')).status === 200 ? true : undefined));
  for (const endpoint of [known, other]) expect((await endpoint.encrypt(plain)).status).toBe(200);
  await until('the other key', async () => ((await use(notInMemory)) === 'CKR_OK' ? true : undefined));
});

test('a node whose row says that it has stopped is waited for; without a limit an answer names a silent node forever, and a removed one for five minutes', async () => {
  fleet = await startFleet(['one', 'two'], { store: 'contact_seconds = 0\n' });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const { endpoint } = await createXksEndpoint({ api: one.api, server: one.server }, 'silent');
  const { id } = (await fleet.nodes(one)).find(({ name }) => name === 'two') ?? {};
  // A failover may lose that a node has started again, and its row is that of a node that stopped.
  fleet.postgres.run(
    'dke',
    `update nodes set state = 'stopped', epoch = ${Number.MAX_SAFE_INTEGER}, started_at = started_at - 1, contact_ms = 1000
      where name = 'two'`,
  );
  await untilActive(fleet, one, ['one', 'two']);
  expect(two.server.log()).toContain('the row of this node was of another start');
  two.server.child.kill('SIGSTOP');
  try {
    const disabled = await one.api.send('POST', `/api/endpoints/${endpoint.id}/disable`);
    expect(JSON.parse(disabled.text)).toMatchObject({ pendingNodes: ['two'], pendingUntil: null });
    expect(disabled.headers).toMatchObject({ 'x-dke-pending-nodes': 'two', 'x-dke-pending-until': 'never' });
    expect(one.server.log()).toMatch(/"pending":\["two"\],"until":null.*a change is not yet confirmed by every node/);
    await one.api.call('DELETE', `/api/nodes/${id}`);
    const removed = await one.api.send('POST', `/api/endpoints/${endpoint.id}/disable`);
    const heardAt = (await fleet.nodes(one)).find(({ name }) => name === 'two')?.heartbeatAt ?? '';
    expect(removed.headers['x-dke-pending-nodes']).toBe('two');
    // Two clocks of one host measure it: the database's, and the one of the node that answers.
    const named = Date.parse(String(removed.headers['x-dke-pending-until'])) - Date.parse(heardAt);
    expect(Math.round(named / 60_000)).toBe(5);
  } finally {
    two.server.child.kill('SIGCONT');
  }
  await until('its end', async () => two.server.child.exitCode ?? undefined);
});

test('a node whose row another start has had puts all of it right: a copy waits for it again, and it starts again itself', async () => {
  fleet = await startFleet(['one', 'two'], { relay: true });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  const ask = (sql: string): string => fleet.postgres.run('dke', sql);
  const id = ask("select id from nodes where name = 'two'");
  const row = () => ask(`select name, version, contact_ms, started_at, directory, state from nodes where id = '${id}'`);
  const own = row();
  const { host, database } = fleet.place;
  const folder = join(fleet.folder, 'copy');
  mkdirSync(folder);
  cpSync(join(two.folder, 'dke-data'), join(folder, 'dke-data'), { recursive: true });
  chmodSync(join(folder, 'dke-data'), 0o700);
  const toml = `[node]\nname = "copy"\n[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;
  const startCopy = () => startServerProcess({ folder, toml });
  const refusal = 'this data directory, or this host, is not the one that this node ran in last';
  const cutOff = async (): Promise<void> => {
    fleet.relay.moveTo('/nowhere/.s.PGSQL.5432');
    fleet.relay.cut('');
    await until('the locks to be free', async () =>
      ask("select count(*) from pg_locks where locktype = 'advisory' and objsubid = 2") === '0' ? true : undefined,
    );
  };
  await cutOff();
  await expect(startCopy()).rejects.toThrow(refusal);
  // The contact time of the node passes, the copy starts, and ends.
  ask('update nodes set heartbeat_at = heartbeat_at - 300000');
  const copy = await startCopy();
  expect(row()).not.toBe(own);
  await copy.stop();
  expect(row()).toContain('stopped');

  fleet.relay.moveTo(fleet.postgres.socket);
  await until('its word about the row', async () =>
    two.server.log().includes('the row of this node was of another start') ? true : undefined,
  );
  expect(row()).toBe(own);
  await cutOff();
  await expect(startCopy()).rejects.toThrow(refusal);
  await two.stop('SIGKILL');
  fleet.relay.moveTo(fleet.postgres.socket);
  await two.start();
  await untilActive(fleet, one, ['one', 'two']);
});

test('a node whose joining a failover has lost says so, and joins again when it starts', async () => {
  fleet = await startFleet(['one', 'two']);
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  fleet.postgres.run('dke', "delete from nodes where name = 'two'");
  await until('its end', async () => two.server.child.exitCode ?? undefined);
  expect(two.server.log()).toContain('this node is not in the database, which is in a state from before it joined');
  await two.stop();
  await two.start();
  await untilActive(fleet, one, ['one', 'two']);
});
