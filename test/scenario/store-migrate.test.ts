// dke store migrate with a service in use: in both directions, the refusals, and the remains of an
// interrupted copy.
import { createHash, randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../server/app/config/config.ts';
import { migrateStore, verifyOffline } from '../../server/app/host/offline.ts';
import type { Status } from '../../server/contract/api/status-routes.ts';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const plain = randomBytes(32);
const embedded = '[erasure]\ngather_ms = 20\n';
const tomlOf = ({ host, database }: PostgresPlace): string =>
  `${embedded}[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\n`;

let postgres: PostgresServer;
let place: PostgresPlace;
let folder: string;
let server: ServerProcess;
let token: string;
let endpoint: XksEndpoint;
let sealed: Awaited<ReturnType<XksEndpoint['encrypt']>>['body'];
let database: string;

const begin = async (toml: string): Promise<void> => {
  server = await startServerProcess({ folder, toml });
  token ||= server.adminToken;
};
const api = () => openConsoleApi(server, token);
/** A configuration next to the service's own, as an operator writes it. */
const write = (name: string, toml: string): string => {
  const path = join(folder, name);
  const own = readFileSync(join(folder, 'dke.toml'), 'utf8');
  writeFileSync(path, `${own.slice(0, own.indexOf('[erasure]'))}${toml}`);
  return path;
};
const migrate = (from: string, to: string) =>
  migrateStore(loadConfig(from, folder), loadConfig(to, folder), () => Promise.resolve(undefined));
const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const rowsIn = (name: string): string =>
  postgres.run(
    name,
    `select coalesce(sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I', table_name), false, true, '')))[1]::text::int), 0)
       from information_schema.tables where table_schema = current_schema()
        and table_name not like 'kysely%' and table_name not in ('audit_head', 'node_head', 'settings')`,
  );

beforeAll(async () => {
  postgres = await startPostgres();
  place = postgres.createDatabase('moved');
  folder = mkdtempSync(join(tmpdir(), 'dke-migrate-'));
  database = join(folder, 'dke-data/dke.db');
  await begin(embedded);
  endpoint = await createXksEndpoint({ api: api(), server }, 'cloud');
  ({ body: sealed } = await endpoint.encrypt(plain));
  // One key is destroyed permanently: its remaining record is copied as well.
  const { id: vaultId } = await api().call<Vault>('POST', '/api/vaults', { name: 'archive' });
  await api().call('POST', '/api/keys', { name: 'kept', vaultId });
  await until('the request log', async () => {
    const page = await api().call<{ items: unknown[] }>('GET', `/api/endpoints/${endpoint.endpoint.id}/requests`);
    return page.items.length > 0 ? true : undefined;
  });
});
afterAll(async () => {
  await server?.stop();
  // Its data are not needed, so it may lose those in memory.
  await postgres?.stop('SIGQUIT');
  await postgres?.remove();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

test('a service that runs is not copied', async () => {
  const to = write('postgresql.toml', tomlOf(place));
  await expect(migrate(write('sqlite.toml', embedded), to)).rejects.toThrow('another server uses this data directory');
});

test('a copy that is cut off leaves the target empty and the source as it was', async () => {
  await server.stop();
  const before = digestOf(database);
  const cut = postgres.createDatabase('cut');
  const to = write('cut.toml', tomlOf(cut));
  // The first attempt creates the tables; a refused row near the end interrupts it.
  const from = write('sqlite.toml', embedded);
  postgres.run(
    'cut',
    `create function refuse() returns event_trigger language plpgsql as $$ begin
       if exists (select from pg_class where relname = 'endpoint_credentials' and relkind = 'r')
          and not exists (select from pg_constraint where conname = 'never') then
         alter table endpoint_credentials add constraint never check (false);
       end if;
     end $$;
     create event trigger refuse on ddl_command_end when tag in ('CREATE TABLE') execute function refuse()`,
  );
  await expect(migrate(from, to)).rejects.toThrow();
  expect(rowsIn('cut')).toBe('0');
  expect(digestOf(database)).toBe(before);
});

test('everything arrives: the service starts on it, keys decrypt, the audit log continues', async () => {
  const from = write('sqlite.toml', embedded);
  const to = write('postgresql.toml', tomlOf(place));
  const before = digestOf(database);
  const verified = await verifyOffline(loadConfig(from, folder), () => Promise.resolve(undefined));
  expect(verified.findings).toEqual([]);
  const report = await migrate(from, to);
  expect(report).toMatchObject({
    findings: [],
    auditRecords: verified.auditRecords,
    auditRoot: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(digestOf(database)).toBe(before);
  expect(await verifyOffline(loadConfig(to, folder), () => Promise.resolve(undefined))).toEqual(verified);
  await expect(migrate(from, to)).rejects.toThrow(/is not empty.*nothing was changed/);

  await begin(tomlOf(place));
  endpoint = endpoint.at(server);
  expect((await endpoint.decrypt(sealed)).body.plaintext).toBe(plain.toString('base64'));
  const { items } = await api().call<{ items: Vault[] }>('GET', '/api/vaults?limit=1000');
  expect(items.map(({ name }) => name)).toContain('archive');
  await api().call('POST', '/api/vaults', { name: 'made on postgresql' });
  expect(await api().call('GET', '/api/status')).toMatchObject({ health: { healthy: true } });
});

test('a database is copied neither while a node uses it, on whatever host, nor during an erasure run', async () => {
  // A host with the root key, whose data directory no server has locked.
  const host = mkdtempSync(join(tmpdir(), 'dke-migrate-host-'));
  mkdirSync(join(host, 'dke-data'), { mode: 0o700 });
  const own = readFileSync(join(folder, 'dke.toml'), 'utf8');
  const preface = own.slice(0, own.indexOf('[erasure]'));
  const copyThere = async () => {
    rmSync(join(host, 'dke-data/root.key'), { force: true });
    copyFileSync(join(folder, 'dke-data/root.key'), join(host, 'dke-data/root.key'));
    const [from, to] = [join(host, 'postgresql.toml'), join(host, 'sqlite.toml')];
    writeFileSync(from, `${preface}${tomlOf(place)}`);
    writeFileSync(to, `${preface}${embedded}`);
    return migrateStore(loadConfig(from, host), loadConfig(to, host), () => Promise.resolve(undefined));
  };
  try {
    await expect(copyThere()).rejects.toThrow('a node of the service runs on');
    await api().call('POST', '/api/root/rotate', {});
    // The old root key is kept for copies that the database does not show.
    await until('the wait for copies', async () => {
      const { erasure } = await api().call<Status>('GET', '/api/status');
      return erasure.state === 'waiting' && erasure.waitsFor === 'copies' ? true : undefined;
    });
    await server.stop();
    await expect(copyThere()).rejects.toThrow('an erasure run is in progress');
    expect(existsSync(join(host, 'dke-data/dke.db'))).toBe(false);
  } finally {
    rmSync(host, { recursive: true, force: true });
  }
  await begin(`${tomlOf(place)}replica_lag_seconds = 0\n`);
  await until('the end of the run', async () => {
    const { erasure } = await api().call<Status>('GET', '/api/status');
    return erasure.state === 'idle' ? true : undefined;
  });
  endpoint = endpoint.at(server);
});

test('and comes back, with what was made meanwhile', async () => {
  const from = write('postgresql.toml', tomlOf(place));
  const to = write('sqlite.toml', embedded);
  await expect(migrate(from, to)).rejects.toThrow(/move it away|another server/);
  await server.stop();
  await expect(migrate(from, to)).rejects.toThrow('move it away');
  renameSync(database, `${database}.before`);
  for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true });
  const verified = await verifyOffline(loadConfig(from, folder), () => Promise.resolve(undefined));
  expect(await migrate(from, to)).toMatchObject({ findings: [], auditRecords: verified.auditRecords });
  expect(existsSync(`${database}.part`)).toBe(false);
  expect(await verifyOffline(loadConfig(to, folder), () => Promise.resolve(undefined))).toEqual(verified);
  await begin(embedded);
  endpoint = endpoint.at(server);
  expect((await endpoint.decrypt(sealed)).body.plaintext).toBe(plain.toString('base64'));
  const { items } = await api().call<{ items: Vault[] }>('GET', '/api/vaults?limit=1000');
  expect(items.map(({ name }) => name)).toContain('made on postgresql');
});
