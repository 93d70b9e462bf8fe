// Changes that a node has received are missing: a standby that lagged behind has taken over, or the
// node was disconnected for longer than changes are kept. No node continues to use what was
// revoked.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Quarantine } from '../../server/contract/api/quarantine-routes.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { openDatabaseRelay } from '../support/database-relay.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive, untilShown } from '../support/fleet.ts';
import { holdStatement } from '../support/held-statement.ts';
import { until } from '../support/host.ts';
import { quarantineCodeOf } from '../support/server-process.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let fleet: TestFleet;
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await fleet?.end();
  for (const close of closing.splice(0)) await close();
});

const plain = randomBytes(32);
const siteOf = (member: FleetMember) => ({ api: member.api, server: member.server });
const start = async (): Promise<readonly [FleetMember, FleetMember]> => {
  fleet = await startFleet(['one', 'two']);
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  await untilActive(fleet, one, ['one', 'two']);
  return [one, two];
};
const endpointsOf = async (member: FleetMember, names: readonly string[]): Promise<readonly XksEndpoint[]> => {
  const made: XksEndpoint[] = [];
  for (const name of names) made.push(await createXksEndpoint(siteOf(member), name));
  await untilShown(fleet, member);
  return made;
};

test('after a failover that has lost changes every node is in quarantine, until an operator confirms', async () => {
  const [one, two] = await start();
  const before = await endpointsOf(one, ['a', 'b', 'c']);
  const later = await endpointsOf(one, ['d', 'e', 'f']);
  await fleet.postgres.keepState();
  await untilActive(fleet, one, ['one', 'two']);
  for (const { endpoint } of before) await one.api.call('POST', `/api/endpoints/${endpoint.id}/disable`);
  await untilShown(fleet, one);
  for (const each of before) expect((await each.at(two.server).encrypt(plain)).status).toBe(400);

  await fleet.postgres.failOver();
  // Each change is in force on every node when it is answered, or it is not answered as made.
  for (const each of later) {
    const { status, headers } = await one.api.send('POST', `/api/endpoints/${each.endpoint.id}/disable`);
    if (status === 200 && headers['x-dke-pending-nodes'] === undefined)
      expect((await each.at(two.server).encrypt(plain)).status).not.toBe(200);
  }
  for (const { api, server } of [one, two]) {
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"quarantine"}');
    // A minute after the last time, the node compares its checkpoint, and may find this first.
    expect(await api.call('GET', '/api/quarantine')).toMatchObject({
      quarantined: true,
      finding: expect.stringMatching(/^(lost-changes|older)$/),
    });
    for (const each of [...before, ...later]) expect((await each.at(server).encrypt(plain)).status).toBe(503);
    expect((await api.send('POST', '/api/vaults', { name: 'now' })).status).toBe(503);
  }

  for (const { api, server } of [one, two])
    await api.call('POST', '/api/quarantine/confirm', { code: await quarantineCodeOf(server) });
  for (const { api } of [one, two])
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
  // The checkpoint that a node keeps is still of this log when the others were confirmed after it.
  for (const member of [one, two]) {
    await member.stop('SIGKILL');
    await member.start();
    expect(await member.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: false });
  }
  await untilActive(fleet, one, ['one', 'two']);
  // What was lost is as it was before, on both; and changes reach both again.
  const [lost] = before;
  if (lost === undefined) throw new Error('there is no endpoint');
  for (const { server } of [one, two]) expect((await lost.at(server).encrypt(plain)).status).toBe(200);
  await one.api.call('POST', `/api/endpoints/${lost.endpoint.id}/disable`);
  await untilShown(fleet, one);
  for (const { server } of [one, two]) expect((await lost.at(server).encrypt(plain)).status).toBe(400);
});

test('a restart before the confirmation ends no quarantine, and nodes that were down during the failover are in it', async () => {
  const [one, two] = await start();
  const [before] = await endpointsOf(one, ['a']);
  if (before === undefined) throw new Error('there is no endpoint');
  await fleet.postgres.keepState();
  await untilActive(fleet, one, ['one', 'two']);
  await one.api.call('POST', `/api/endpoints/${before.endpoint.id}/disable`);
  await untilShown(fleet, one);
  // One process has seen the change and is gone before the failover; the other one sees the
  // failover.
  await two.stop('SIGKILL');
  await fleet.postgres.failOver();
  await expect.poll(async () => (await one.api.send('GET', '/health')).text).toBe('{"status":"quarantine"}');
  const { since } = await one.api.call<Quarantine>('GET', '/api/quarantine');
  await one.stop('SIGKILL');
  for (const member of [one, two]) {
    await member.start();
    const found = await member.api.call<Quarantine>('GET', '/api/quarantine');
    expect(found).toMatchObject({ quarantined: true, finding: expect.stringMatching(/^(lost-changes|older)$/) });
    expect(found.differences.length).toBeGreaterThan(0);
    expect((await before.at(member.server).encrypt(plain)).status).toBe(503);
    expect((await member.api.send('POST', '/api/vaults', { name: 'now' })).status).toBe(503);
  }
  expect((await one.api.call<Quarantine>('GET', '/api/quarantine')).since).toBe(since);
  // A stop in order does not end the quarantine either.
  await two.stop();
  await two.start();
  expect(await two.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true });
  for (const { api, server } of [one, two])
    await api.call('POST', '/api/quarantine/confirm', { code: await quarantineCodeOf(server) });
  for (const member of [one, two]) {
    await expect.poll(async () => (await member.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    await member.stop('SIGKILL');
    await member.start();
    expect(await member.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: false });
  }
});

test('the old primary, with all that was confirmed, ends the quarantine at the next start, and nothing else does', async () => {
  const [one, two] = await start();
  const [revoked] = await endpointsOf(one, ['a']);
  if (revoked === undefined) throw new Error('there is no endpoint');
  await fleet.postgres.keepState();
  await untilActive(fleet, one, ['one', 'two']);
  await one.api.call('POST', `/api/endpoints/${revoked.endpoint.id}/disable`);
  await untilShown(fleet, one);
  await fleet.postgres.failOver();
  for (const { api } of [one, two])
    await expect.poll(async () => (await api.send('GET', '/health')).text).toBe('{"status":"quarantine"}');
  for (const member of [one, two]) await member.stop();
  // The database without the changes keeps them closed; the one with all of them opens them.
  await one.start();
  expect(await one.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true });
  await one.stop();
  await fleet.postgres.failBack();
  for (const member of [one, two]) {
    await member.start();
    expect(await member.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: false });
    await expect.poll(async () => (await member.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
    expect((await revoked.at(member.server).encrypt(plain)).status).toBe(400);
  }
  // The quarantine is over, also for the start after that.
  await two.stop('SIGKILL');
  await two.start();
  expect(await two.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: false });
});

test('a node whose root key was restored without a checkpoint is in quarantine, unless another node serves', async () => {
  const [one, two] = await start();
  writeFileSync(join(fleet.folder, 'passphrase'), 'a long passphrase of a backup', { mode: 0o600 });
  const backup = join(fleet.folder, 'root-backup.key');
  const passphrase = join(fleet.folder, 'passphrase');
  const config = (member: FleetMember) => ['--config', join(member.folder, 'dke.toml')];
  const command = async (...args: readonly string[]) => {
    const { code, stderr } = await runCommand(args);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
  };
  await command('root', 'backup', ...config(one), '--out', backup, '--new-passphrase-file', passphrase);
  const restore = async (member: FleetMember): Promise<void> => {
    await member.stop();
    for (const name of readdirSync(member.server.dataDirectory).filter((each) => /^(root\.key.*|position)$/.test(each)))
      rmSync(join(member.server.dataDirectory, name));
    await command('root', 'restore', backup, ...config(member), '--passphrase-file', passphrase);
  };
  await restore(two);
  await two.start();
  expect(await two.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: false });
  await two.stop();
  await restore(one);
  await one.start();
  const found = await one.api.call<Quarantine>('GET', '/api/quarantine');
  expect(found).toMatchObject({ quarantined: true, finding: 'restored' });
  expect(found.reason).toMatch('no checkpoint of the audit log is beside it');
  await one.stop('SIGKILL');
  await one.start();
  expect(await one.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true, finding: 'restored' });
  await one.api.call('POST', '/api/quarantine/confirm', { code: await quarantineCodeOf(one.server) });
  await expect.poll(async () => (await one.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
});

test('a node that was away while changes were pruned reads everything again before it uses a key', async () => {
  const [one, two] = await start();
  const [endpoint] = await endpointsOf(one, ['away']);
  if (endpoint === undefined) throw new Error('there is no endpoint');
  const there = endpoint.at(two.server);
  expect((await there.encrypt(plain)).status).toBe(200);
  two.server.child.kill('SIGSTOP');
  try {
    // The node may have been stopped while it held the writer's lock, which the database takes away
    // after 3 s.
    await expect
      .poll(async () => (await one.api.send('POST', `/api/endpoints/${endpoint.endpoint.id}/disable`)).status)
      .toBe(200);
    // What the node with the duty does after ten minutes.
    fleet.postgres.run('dke', 'delete from node_changes');
  } finally {
    two.server.child.kill('SIGCONT');
  }
  await expect.poll(async () => (await there.encrypt(plain)).status).toBe(400);
});

test('a failover while a node starts is found, too: the node begins in quarantine', async () => {
  fleet = await startFleet(['one']);
  const one = fleet.member('one');
  await one.stop();
  // Between the node's reads at its start and its first beat.
  const { database } = fleet.place;
  const held = await holdStatement(fleet.place, 'insert', 'nodes');
  closing.push(() => held.goOn());
  const starting = one.start();
  await held.reached();
  fleet.postgres.run(
    database,
    `update node_changes set history = 'another' where epoch = (select epoch from node_head);
     update node_head set history = 'another'`,
  );
  await held.goOn();
  await starting;
  expect(await one.api.call('GET', '/api/quarantine')).toMatchObject({ quarantined: true, finding: 'lost-changes' });
  expect((await one.api.send('GET', '/health')).text).toBe('{"status":"quarantine"}');
  await one.api.call('POST', '/api/quarantine/confirm', { code: await quarantineCodeOf(one.server) });
  await expect.poll(async () => (await one.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');
});

test('a destroyed key that a failover brings back stays blocked until a person decides, and sinks keep both logs apart', async () => {
  const sink =
    '[erasure]\ngather_ms = 3600000\n[audit]\nsinks = [{ name = "file", type = "file", path = "audit.ndjson" }]\n';
  fleet = await startFleet(['one', 'two'], { relay: true, toml: sink });
  const [one, two] = [fleet.member('one'), fleet.member('two')];
  const line = await openDatabaseRelay(fleet.postgres.socket);
  closing.push(() => line.close());
  const standby = await fleet.postgres.standby({ name: 'second', from: line });
  closing.unshift(() => standby.remove());
  await untilActive(fleet, one, ['one', 'two']);
  const application = await registerApplication(one.api, 'erp', await createGroup(one.api, 'databases'));
  const database = fleet.database('erp', application, 'connect_timeout_ms = 20000\ncall_timeout_ms = 60000\n');
  expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
  const label = 'ORACLE.TDE.HSM.MK.06AD';
  const { handle = 0 } = await database.call('generate', { label });
  const use = async () => (await database.call('encrypt', { handle, iv: '00'.repeat(16), data: 'ab'.repeat(16) })).rv;
  expect(await use()).toBe('CKR_OK');
  const { id, name } = await one.api.masterKey(application.application.id, label);
  await until('the standby to have it', async () =>
    fleet.postgres.run('postgres', 'select flush_lsn >= pg_current_wal_flush_lsn() from pg_stat_replication') === 't'
      ? true
      : undefined,
  );

  line.swallow();
  const path = `/api/tde/applications/${application.application.id}/master-keys/${id}`;
  await one.api.call('POST', `${path}/destroy`, { confirm: name });
  await until('both nodes to have heard of it', async () =>
    (await fleet.nodes(one)).every(({ behind }) => behind === 0) ? true : undefined,
  );
  expect(await use()).not.toBe('CKR_OK');
  const files = (): readonly string[] =>
    [one, two].flatMap(({ folder }) =>
      readdirSync(folder)
        .filter((file) => file.endsWith('audit.ndjson'))
        .map((file) => readFileSync(join(folder, file), 'utf8')),
    );
  const isDestruction = (text: string): boolean => text.includes('"kind":"key.destroyed"') && text.includes(id);
  await until('the record in the sink', async () => (files().some(isDestruction) ? true : undefined));

  await fleet.postgres.stop('SIGQUIT');
  await standby.promote();
  fleet.relay.moveTo(standby.socket);
  for (const { api } of [one, two])
    await until('the quarantine', async () =>
      (await api.send('GET', '/health')).text === '{"status":"quarantine"}' ? true : undefined,
    );
  // The database does not contain the destruction.
  for (const { api } of [one, two]) expect((await api.send('GET', '/tde/v1/any/application')).status).toBe(503);
  // The sink's file is next to one of the nodes.
  const missing = await Promise.all(
    [one, two].map(async ({ api }) => (await api.call<Quarantine>('GET', '/api/quarantine')).missing?.records ?? []),
  );
  expect(missing.flat()).toContainEqual(expect.objectContaining({ kind: 'key.destroyed', subjectId: id }));

  for (const member of [one, two])
    await until('the confirmation', async () => {
      const { status } = await member.api.send('POST', '/api/quarantine/confirm', {
        code: await quarantineCodeOf(member.server),
      });
      return status === 200 ? true : undefined;
    });
  await until('the use of the key that is there again', async () => ((await use()) === 'CKR_OK' ? true : undefined));
  await until('the second destruction', async () => {
    const { status } = await one.api.send('POST', `${path}/destroy`, { confirm: name });
    return status === 200 || status === 409 ? true : undefined;
  });
  const logOf = (text: string): string | undefined => /^\{"log":"([^"]+)"\}\n/.exec(text)?.[1];
  await until('the second destruction in a file of the new log', async () =>
    new Set(files().filter(isDestruction).map(logOf)).size === 2 ? true : undefined,
  );
  // Every checkpoint is in a file of its own log.
  for (const text of files())
    for (const [, log] of text.matchAll(/"checkpoint":"([^\\"]*)/g)) expect(logOf(text)).toBe(log);
});
