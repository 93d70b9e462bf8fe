// The examples of docs/postgresql.md, as they are on the page: rights of the role, load balancers,
// Patroni's settings, a new authority of the database.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Quarantine } from '../../server/contract/api/quarantine-routes.ts';
import { makeAuthority } from '../support/authority.ts';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { freePort, startDaemon } from '../support/daemon.ts';
import { type FleetMember, startFleet, type TestFleet, untilActive } from '../support/fleet.ts';
import { until } from '../support/host.ts';
import { postgresqlPrograms, startPostgres } from '../support/postgresql.ts';
import { quarantineCodeOf, type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { installed } from '../support/tools.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/postgresql.md'), 'utf8');
/** The first block of code behind these words. */
const blockBehind = (words: string): string => {
  const text = /```\w*\n([\s\S]*?)```/.exec(page.slice(page.indexOf(words)))?.[1];
  if (!page.includes(words) || text === undefined)
    throw new Error(`docs/postgresql.md has no example behind "${words}"`);
  return text;
};
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-page-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
const start = async (...given: Parameters<typeof startFleet>): Promise<TestFleet> => {
  const fleet = await startFleet(...given);
  undo.push(() => fleet.end());
  return fleet;
};

test('a role with the rights of the page is enough: start, changes, an erasure run, nodes, backup and restore', async () => {
  const role = 'least';
  const fleet = await start(['one', 'two'], {
    prepare: (postgres) => {
      const host = postgres.socket.slice(0, postgres.socket.lastIndexOf('/'));
      // The superuser of the tests has the name of the page's role.
      const sql = blockBehind('For a role with fewer rights').replaceAll(/\bdke\b/g, role);
      const options = ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', host, '-U', 'dke', '-d', 'postgres'];
      execFileSync(join(postgresqlPrograms, 'psql'), options, { input: sql, stdio: 'pipe' });
      return { host, port: 5432, user: role, database: role };
    },
  });
  const [one, two] = fleet.members as readonly [FleetMember, FleetMember];
  await untilActive(fleet, one, ['one', 'two']);
  const facts = 'rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls';
  expect(fleet.postgres.run(role, `select ${facts} from pg_roles where rolname = '${role}'`)).toBe('f');
  expect(
    fleet.postgres.run(role, "select string_agg(distinct schemaname, ' ') from pg_tables where tableowner = 'least'"),
  ).toBe(role);

  const endpoint = await createXksEndpoint(one, 'cloud');
  const sealed = await endpoint.encrypt(Buffer.from('plain'));
  expect((await endpoint.at(two.server).decrypt(sealed.body)).status).toBe(200);
  await two.api.call('POST', '/api/root/rotate', {});
  await until('the erasure run', async () =>
    (await fleet.nodes(one)).every(({ rootEpoch, hasOldRoot }) => rootEpoch === 2 && !hasOldRoot) ? true : undefined,
  );
  expect((await endpoint.decrypt(sealed.body)).status).toBe(200);
  await two.stop();
  const { id } = (await fleet.nodes(one)).find(({ name }) => name === 'two') ?? {};
  await one.api.call('DELETE', `/api/nodes/${id}`);

  const command = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(args);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    return stdout;
  };
  const folder = newFolder();
  const [dump, rootBackup, passphrase] = ['dump', 'root-backup.key', 'passphrase'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  writeFileSync(passphrase, 'a long passphrase of a backup', { mode: 0o600 });
  const at = ['-h', fleet.place.host, '-U', role];
  execFileSync(join(postgresqlPrograms, 'pg_dump'), [...at, '--format=custom', `--file=${dump}`, role], {
    stdio: 'pipe',
  });
  const ofOne = ['--config', join(one.folder, 'dke.toml')];
  await command('root', 'backup', ...ofOne, '--out', rootBackup, '--new-passphrase-file', passphrase);
  fleet.postgres.run('postgres', `create database restored template template0 encoding 'UTF8' owner ${role}`);
  // The options are those of the page; the superuser of the tests restores.
  const options = ['--dbname=restored', `--role=${role}`, '--no-privileges', '-h', fleet.place.host, '-U', 'dke'];
  execFileSync(join(postgresqlPrograms, 'pg_restore'), [...options, dump], { stdio: 'pipe' });
  const counted = `select count(*) from ${role}.audit_events`;
  expect(fleet.postgres.run('restored', counted)).toBe(fleet.postgres.run(role, counted));
  expect((await one.api.send('GET', '/health')).text).toBe('{"status":"healthy"}');

  // What was made of the dump does not have this.
  await one.api.call('POST', `/api/endpoints/${endpoint.endpoint.id}/disable`);
  await one.stop();
  const tomlOf = (database: string): string =>
    `[node]\nname = "one"\n[store]\ntype = "postgresql"\nhost = "${fleet.place.host}"\ndatabase = "${database}"\nuser = "${role}"\n`;
  /** What a node is like that starts in this folder, with this database. */
  const startIn = async (own: string, database: string) => {
    const server = await startServerProcess({ folder: own, toml: tomlOf(database) });
    undo.push(() => server.stop());
    const api = openConsoleApi(server, fleet.token);
    return { server, api, found: await api.call<Quarantine>('GET', '/api/quarantine') };
  };
  const useAt = async (server: ServerProcess) => (await endpoint.at(server).decrypt(sealed.body)).status;
  const withDump = await startIn(one.folder, 'restored');
  expect(withDump.found).toMatchObject({ quarantined: true, finding: expect.stringMatching(/^(older|incomplete)$/) });
  expect(await useAt(withDump.server)).toBe(503);
  await withDump.server.stop();
  // The newest database ends it.
  const withNewest = await startIn(one.folder, role);
  expect(withNewest.found).toMatchObject({ quarantined: false });
  expect(await useAt(withNewest.server)).toBe(400);
  await withNewest.server.stop();

  // Everything of the host is lost, too: another one has the two backups.
  const host = newFolder();
  const config = join(host, 'dke.toml');
  writeFileSync(config, tomlOf('restored'));
  await command('root', 'restore', rootBackup, '--config', config, '--passphrase-file', passphrase);
  expect(JSON.parse(await command('verify', '--config', config, '-o', 'json'))).toMatchObject({ findings: [] });
  const elsewhere = await startIn(host, 'restored');
  expect(elsewhere.found).toMatchObject({ quarantined: true, finding: 'restored' });
  expect(await useAt(elsewhere.server)).toBe(503);
  const code = await quarantineCodeOf(elsewhere.server);
  await elsewhere.api.call('POST', '/api/quarantine/confirm', { code });
  await until('its use', async () => ((await useAt(elsewhere.server)) === 200 ? true : undefined));
});

interface FoundBalancer {
  readonly port: number;
  /** Resolves when it sends new connections to this node, or does not. */
  sees(node: string, state: 'UP' | 'DOWN'): Promise<unknown>;
}

const balancers = {
  HAProxy: async (fleet: TestFleet): Promise<FoundBalancer> => {
    const port = await freePort();
    const folder = newFolder();
    const states = join(folder, 'states');
    const example = blockBehind('without a `Host` header is enough. HAProxy');
    const text = fleet.members
      .reduce(
        (all, { name, server }) =>
          all.replace(new RegExp(`server ${name} \\S+`), `server ${name} 127.0.0.1:${server.port}`),
        example,
      )
      .replace('bind :443', `bind 127.0.0.1:${port}`)
      .replace('/etc/haproxy/dke-ca.pem', fleet.caFile)
      .replaceAll('keys.example.com', 'localhost');
    const config = join(folder, 'haproxy.cfg');
    writeFileSync(config, `global\n    stats socket ${states}\n${text}`);
    const daemon = await startDaemon('/usr/sbin/haproxy', ['-W', '-db', '-f', config], {
      folder,
      ready: /Loading success/,
    });
    undo.push(() => daemon.stop());
    const ask = async (command: string): Promise<string> => {
      const socket = connect(states).setEncoding('utf8');
      let answer = '';
      socket.on('data', (part: string) => {
        answer += part;
      });
      socket.end(`${command}\n`);
      await once(socket, 'close');
      return answer;
    };
    return {
      port,
      sees: (node, state) =>
        until(`HAProxy to see ${node} as ${state}`, async () =>
          (await ask('show stat'))
            .split('\n')
            .some((line) => line.startsWith(`nodes,${node},`) && line.split(',')[17] === state)
            ? true
            : undefined,
        ),
    };
  },
  'a plain TCP balancer': (fleet: TestFleet): Promise<FoundBalancer> =>
    // A plain balancer has no checks, so there is nothing to wait for.
    Promise.resolve({ port: fleet.balancer.port, sees: () => Promise.resolve() }),
} as const;

test.each(Object.entries(balancers))('%s: no call fails while each node in turn is restarted', async (name, open) => {
  if (name === 'HAProxy' && !installed('haproxy', '/usr/sbin/haproxy')) return;
  // The notice takes as long as the balancer needs: a second signal ends it.
  const fleet = await start(['one', 'two'], { toml: 'drain_notice_seconds = 600\n' });
  const [one, two] = fleet.members as readonly [FleetMember, FleetMember];
  // Their own end would wait for the notice.
  undo.push(() => Promise.all(fleet.members.map((member) => member.stop('SIGKILL'))));
  await untilActive(fleet, one, ['one', 'two']);
  const endpoint: XksEndpoint = await createXksEndpoint(one, 'cloud');
  const balancer = await open(fleet);
  const through = endpoint.at({ url: `https://127.0.0.1:${balancer.port}`, caFile: fleet.caFile });
  for (const node of ['one', 'two']) await balancer.sees(node, 'UP');
  const statuses = new Map<number | string, number>();
  let isOver = false;
  const calls = (async () => {
    while (!isOver) {
      // Not its health, which a node that stops denies.
      const status = await through.encrypt(Buffer.alloc(32)).then((answer) => answer.status, String);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  })();
  for (const member of [one, two]) {
    const stopped = member.stop();
    await until('its notice', async () =>
      (await member.api.send('GET', '/health')).status === 503 ? true : undefined,
    );
    await balancer.sees(member.name, 'DOWN');
    member.server.child.kill('SIGTERM');
    await stopped;
    await member.start();
    const before = statuses.get(200) ?? 0;
    await until('calls', async () => ((statuses.get(200) ?? 0) > before + 20 ? true : undefined));
    await until('the node', async () => ((await member.api.send('GET', '/health')).status === 200 ? true : undefined));
    await balancer.sees(member.name, 'UP');
  }
  isOver = true;
  await calls;
  expect([...statuses.keys()]).toEqual([200]);
});

test("Patroni knows the settings of the page's fragment", () => {
  if (!installed('patroni', '/usr/bin/patroni')) return;
  const [dcs = '', own = ''] = blockBehind('**Patroni.** The parts that matter').split('# patroni.yml of each host');
  const folder = newFolder();
  writeFileSync(join(folder, 'dcs.yml'), dcs);
  writeFileSync(join(folder, 'own.yml'), own);
  const program = `
import sys, yaml
from patroni.config import Config
from patroni.watchdog.base import WatchdogConfig
dcs, own = [yaml.safe_load(open(sys.argv[1] + name)) for name in ("/dcs.yml", "/own.yml")]
known = Config._Config__DEFAULT_CONFIG
unknown = [name for name in dcs if name not in known] + [name for name in dcs["postgresql"] if name not in known["postgresql"]]
watchdog = WatchdogConfig({"watchdog": own["watchdog"], "ttl": 30, "loop_wait": 10})
print(unknown, watchdog.mode, watchdog.safety_margin, dcs["synchronous_mode"], dcs["synchronous_mode_strict"], dcs["maximum_lag_on_failover"], dcs["postgresql"]["parameters"]["fsync"])
`;
  const printed = execFileSync('/usr/bin/python3', ['-c', program, folder], { encoding: 'utf8' });
  expect(printed.trim()).toBe('[] required 5 True True 0 on');
});

test('the authority of the database is changed as the page says, without a restart', async () => {
  const folder = newFolder();
  const [former, next] = [makeAuthority(folder, 'former'), makeAuthority(folder, 'next')];
  const request = { commonName: 'database', names: ['IP:127.0.0.1'], usage: 'serverAuth' } as const;
  const postgres = await startPostgres({ tls: former.issue(request) });
  undo.push(() => postgres.remove());
  postgres.createDatabase('dke');
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, former.pem);
  const server = await startServerProcess({
    toml: `[store]\ntype = "postgresql"\nhost = "127.0.0.1"\nport = ${postgres.port}\ndatabase = "dke"\nca = "${ca}"\n`,
  });
  undo.push(() => server.remove());
  const api = openConsoleApi(server, server.adminToken);
  expect(
    postgres.run(
      'dke',
      "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'dke %'",
    ),
  ).toBe('t');
  const reconnect = (): string =>
    postgres.run(
      'dke',
      "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like 'dke %'",
    );
  const works = (name: string): Promise<true> =>
    until(`a change: ${name}`, async () =>
      (await api.send('POST', '/api/vaults', { name })).status === 201 ? true : undefined,
    );
  await works('under the former authority');
  writeFileSync(ca, former.pem + next.pem);
  postgres.present(next.issue(request));
  reconnect();
  await works('with both');
  writeFileSync(ca, next.pem);
  reconnect();
  await works('under the next one');
  // The file decides.
  writeFileSync(ca, former.pem);
  reconnect();
  await until('a refusal', async () =>
    (await api.send('POST', '/api/vaults', { name: 'none' })).status === 503 ? true : undefined,
  );
  writeFileSync(ca, next.pem);
  await works('again');
  rmSync(ca);
  reconnect();
  await works('with the authorities that it had before');
  expect(server.child.exitCode).toBeNull();
});
