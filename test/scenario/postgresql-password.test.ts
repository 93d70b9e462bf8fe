// The database's password is changed while the service runs, and the database is dropped under it:
// requests are refused as unavailable, health reports it, and with the right password file
// everything continues without a restart.
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/host.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { type Site, startSite } from '../support/site.ts';

const user = 'dke_service';
let postgres: PostgresServer;
let site: Site;
let folder: string;
let passwordFile: string;
const setPassword = (password: string): void => writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
const endConnections = (): string =>
  postgres.run('postgres', `select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '${user}'`);
const vaults = () => site.api.send('GET', '/api/vaults');
const health = async () => (await site.api.send('GET', '/health')).text;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-password-'));
  passwordFile = join(folder, 'password');
  setPassword('first');
  postgres = await startPostgres();
  postgres.run('postgres', `create role ${user} login password 'first'`);
  const { host } = postgres.createDatabase('dke');
  postgres.run('postgres', `alter database dke owner to ${user}`);
  postgres.run('dke', `alter schema public owner to ${user}`);
  const rules = join(host, 'data/pg_hba.conf');
  const before = readFileSync(rules, 'utf8');
  writeFileSync(rules, `local all ${user} scram-sha-256\n`);
  appendFileSync(rules, before);
  postgres.run('postgres', 'select pg_reload_conf()');
  site = await startSite({
    toml: `[erasure]\ngather_ms = 20\n[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "dke"\nuser = "${user}"
password_file = "${passwordFile}"\n`,
  });
});
afterAll(async () => {
  await site?.end();
  await postgres?.remove();
  rmSync(folder, { recursive: true, force: true });
});

test('a changed password is not a fault of the service: 503, health says so, and the new file is enough', async () => {
  expect((await vaults()).status).toBe(200);
  postgres.run('postgres', `alter role ${user} password 'second'`);
  // Connections that are open continue; one that was being opened is refused.
  await until('an open connection', async () => ((await vaults()).status === 200 ? true : undefined));
  endConnections();
  const statuses = new Set<number>();
  await until('health to say so', async () => {
    statuses.add((await vaults()).status);
    statuses.add((await site.api.send('POST', '/api/vaults', { name: 'refused' })).status);
    return (await health()).includes('"healthy"') ? undefined : true;
  });
  statuses.add((await vaults()).status);
  expect([...statuses]).toEqual([503]);
  const refused = JSON.parse((await vaults()).text) as { code: string; hint: string };
  expect(refused).toMatchObject({ code: 'unavailable', hint: expect.stringContaining('password_file') });
  // PostgreSQL's own words, for the caller and in the log.
  const words = `password authentication failed for user "${user}"`;
  expect(refused.hint).toContain(words);
  expect(site.server.log()).toContain(JSON.stringify(words).slice(1, -1));
  setPassword('second');
  await until('the service to continue', async () => ((await vaults()).status === 200 ? true : undefined));
  await until('a change', async () =>
    (await site.api.send('POST', '/api/vaults', { name: 'again' })).status === 201 ? true : undefined,
  );
  await until('good health', async () => ((await health()).includes('"healthy"') ? true : undefined));
});

test('the password is rotated as the page says, without a refused request', async () => {
  postgres.run('postgres', `alter role ${user} password 'third'`);
  setPassword('third');
  const statuses = new Set<number>();
  for (let request = 0; request < 20; request += 1) statuses.add((await vaults()).status);
  expect([...statuses]).toEqual([200]);
  endConnections();
  await until('new connections', async () => ((await vaults()).status === 200 ? true : undefined));
});

test('a database that was dropped is unavailable', async () => {
  postgres.run('postgres', 'drop database dke with (force)');
  const statuses = new Set<number>();
  await until('health to say so', async () => {
    statuses.add((await vaults()).status);
    return (await health()).includes('"healthy"') ? undefined : true;
  });
  const { status, text } = await vaults();
  expect([...statuses, status]).toEqual([503, 503]);
  expect(JSON.parse(text)).toMatchObject({ code: 'unavailable', hint: expect.stringContaining('does not exist') });
});
