// The service on a real PostgreSQL: the same as on the embedded database, and its behaviour when
// the database stops, returns, or belongs to another user.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Vault } from '../../server/contract/api/vaults-routes.ts';
import { runCommand } from '../support/command.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { startServerProcess } from '../support/server-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

let postgres: PostgresServer;
let place: PostgresPlace;
let site: Site;
const tomlOf = ({ host, database }: PostgresPlace): string =>
  `[erasure]\ngather_ms = 20\n[store]\ntype = "postgresql"\nhost = "${host}"\ndatabase = "${database}"\nreplica_lag_seconds = 0\n`;
beforeAll(async () => {
  postgres = await startPostgres();
  place = postgres.createDatabase('dke');
  site = await startSite({ toml: tomlOf(place) });
});
afterAll(async () => {
  await site?.end();
  await postgres?.remove();
});

const refusalOf = (toml: string, folder?: string): Promise<string> =>
  startServerProcess({ toml, ...(folder === undefined ? {} : { folder }) }).then(
    async (server) => {
      await server.remove();
      throw new Error('it started');
    },
    (error: unknown) => String(error),
  );

describe('the service', () => {
  let endpoint: XksEndpoint;
  const plain = randomBytes(32);

  test('keeps nothing in its own folder but what must not lie in the database', async () => {
    expect(existsSync(join(site.server.dataDirectory, 'dke.db'))).toBe(false);
    expect(existsSync(join(site.server.dataDirectory, 'root.key'))).toBe(true);
    expect(await site.api.call('GET', '/api/status')).toMatchObject({ health: { healthy: true } });
  });

  test('serves the cloud', async () => {
    endpoint = await createXksEndpoint(site, 'cloud');
    const sealed = await endpoint.encrypt(plain);
    expect(sealed.status).toBe(200);
    expect((await endpoint.decrypt(sealed.body)).body.plaintext).toBe(plain.toString('base64'));
    await until('the request log', async () => {
      const page = await site.api.call<{ items: unknown[] }>('GET', `/api/endpoints/${endpoint.endpoint.id}/requests`);
      return page.items.length >= 2 ? true : undefined;
    });
  });

  test('serves a database, whose master key is destroyed permanently, over a restart', async () => {
    const group = await createGroup(site.api, 'databases');
    const application = await registerApplication(site.api, 'erp', group);
    const config = site.config('erp', application);
    const database = site.database(config);
    expect(await database.call('open', { pin: 'x' })).toEqual({ rv: 'CKR_OK' });
    const label = `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;
    const { handle = 0 } = await database.call('generate', { label });
    const iv = '00'.repeat(16);
    const { data = '' } = await database.call('encrypt', { handle, iv, data: plain.toString('hex') });
    await site.stopServer();
    await site.startServer();
    expect(await database.call('decrypt', { handle, iv, data })).toEqual({ rv: 'CKR_OK', data: plain.toString('hex') });
    const key = await site.api.masterKey(application.application.id, label);
    const path = `/api/tde/applications/${application.application.id}/master-keys/${key.id}`;
    await site.api.call('POST', `${path}/destroy`, { confirm: key.name });
    await until('the erasure run', async () => {
      const { unrecoverableAt } = await site.api.call<{ unrecoverableAt: string | null }>('GET', path);
      return unrecoverableAt ?? undefined;
    });
    expect((await database.call('decrypt', { handle, iv, data })).rv).toBe('CKR_KEY_HANDLE_INVALID');
    expect((await database.call('find', { label })).handles).toEqual([]);
    // The rest lives on, sealed again.
    const sealed = await endpoint.encrypt(plain);
    expect((await endpoint.decrypt(sealed.body)).status).toBe(200);
  });

  test('keeps an audit log that verifies, and finds a record that was changed in the database', async () => {
    const token = join(site.folder, 'token');
    const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: token };
    writeFileSync(token, site.token, { mode: 0o600 });
    const dke = (...args: string[]) => runCommand(args, { environment, cwd: site.folder });
    const log = JSON.parse((await dke('audit', 'log', '-o', 'json')).stdout) as { verifierKey: string };
    expect((await dke('audit', 'export', '--out', 'one.ndjson')).code).toBe(0);
    expect((await dke('audit', 'verify', 'one.ndjson', '--key', log.verifierKey)).code).toBe(0);
    postgres.run(place.database, "update audit_events set actor_name = 'nobody' where sequence = 2");
    expect((await dke('audit', 'export', '--out', 'two.ndjson')).code).toBe(0);
    expect((await dke('audit', 'verify', 'two.ndjson', '--key', log.verifierKey)).stderr).toContain('are not those');
  });

  test('uses keys while the database is unavailable, refuses changes with a reason, and continues when it is back', async () => {
    const sealed = await endpoint.encrypt(plain);
    await postgres.stop('SIGQUIT');
    expect((await endpoint.encrypt(plain)).status).toBe(200);
    expect((await endpoint.decrypt(sealed.body)).status).toBe(200);
    const refused = await site.api.send('POST', '/api/vaults', { name: 'while it is away' });
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({ code: 'unavailable' });
    await until('health to say so', async () =>
      (await site.api.send('GET', '/health')).text.includes('degraded') ? true : undefined,
    );
    await postgres.start();
    await until('a change', async () => {
      const answer = await site.api.send('POST', '/api/vaults', { name: 'when it is back' });
      return answer.status === 201 ? true : undefined;
    });
    const { items } = await site.api.call<{ items: Vault[] }>('GET', '/api/vaults');
    expect(items.map(({ name }) => name)).toContain('when it is back');
    expect(items.map(({ name }) => name)).not.toContain('while it is away');
    expect(site.server.child.exitCode).toBeNull();
  });

  test('stops while the database is away, says what it could not record, and starts again on everything that was confirmed', async () => {
    const sealed = await endpoint.encrypt(plain);
    expect((await site.api.send('POST', '/api/vaults', { name: 'before the end' })).status).toBe(201);
    await postgres.stop('SIGQUIT');
    expect(await site.stopServer()).toBe(5);
    // Its last words may be read a moment after its end.
    const words = 'dke server: stopped, but the store did not take the last records';
    await until('its last words', async () => (site.server.log().includes(words) ? true : undefined));
    expect(site.server.log()).not.toMatch(/unhandled/i);
    await postgres.start();
    await site.startServer(tomlOf(place));
    const { items } = await site.api.call<{ items: Vault[] }>('GET', '/api/vaults');
    expect(items.map(({ name }) => name)).toContain('before the end');
    expect((await endpoint.decrypt(sealed.body)).status).toBe(200);
  });
});

describe('a database that is not to be used', () => {
  test('one that has another root key', async () => {
    expect(await refusalOf(tomlOf(place))).toContain('root key file');
  });
  test('one of another program', async () => {
    const other = postgres.createDatabase('other');
    postgres.run('other', 'create table customers (id int)');
    expect(await refusalOf(tomlOf(other))).toContain('belongs to another program');
    expect(postgres.run('other', "select count(*) from pg_tables where schemaname = 'public'")).toBe('1');
  });
  test('one that confirms what it may lose', async () => {
    const hasty = postgres.createDatabase('hasty');
    const setPages = (value: string): void => {
      postgres.run('hasty', `alter system set full_page_writes = ${value}`);
      postgres.run('hasty', 'select pg_reload_conf()');
    };
    setPages('off');
    try {
      expect(await refusalOf(tomlOf(hasty))).toContain('may lose what it confirms (full_page_writes is off)');
    } finally {
      setPages('on');
    }
    expect(postgres.run('hasty', "select count(*) from pg_tables where schemaname = 'public'")).toBe('0');
  });
  test('one that is not there, and a server that is not', async () => {
    expect(await refusalOf(tomlOf({ ...place, database: 'nowhere' }))).toContain(
      'does not exist (database "nowhere" does not exist)',
    );
    expect(await refusalOf(tomlOf({ ...place, host: '/nowhere' }))).toMatch(/does not answer \(.*ENOENT/);
  });
  test('an empty one with a root key that belongs to another', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-postgres-other-'));
    const first = await startServerProcess({ folder, toml: tomlOf(postgres.createDatabase('first')) });
    await first.stop();
    const empty = tomlOf(postgres.createDatabase('empty'));
    expect(await refusalOf(empty, folder)).toContain('is empty, but its root key');
    expect(await refusalOf(empty, folder)).toContain('is empty, but its root key');
    rmSync(folder, { recursive: true });
  });
});
