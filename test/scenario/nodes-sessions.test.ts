// What the service depends on in its sessions of PostgreSQL: settings, the server process behind a
// connection, and the schema of the database.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { afterEach, expect, test } from 'vitest';
import { openPostgres } from '../../server/adapters/store/engine/postgres/postgres-engine.ts';
import type { StoreError } from '../../server/adapters/store/engine/store-error.ts';
import { newestSchema } from '../../server/adapters/store/migrations/migrate.ts';
import { openPostgresStore } from '../../server/adapters/store/store.ts';
import { sqlName } from '../../server/base/command-line.ts';
import { systemClock } from '../../server/base/time.ts';
import type { Store } from '../../server/ports/store.ts';
import { makeAuthority } from '../support/authority.ts';
import { type DatabaseRelay, openDatabaseRelay } from '../support/database-relay.ts';
import { until } from '../support/host.ts';
import { openPooler } from '../support/pooler.ts';
import { type PostgresPlace, type PostgresServer, postgresqlPrograms, startPostgres } from '../support/postgresql.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const start = async (settings: readonly string[] = []): Promise<PostgresServer> => {
  const postgres = await startPostgres({ settings });
  undo.push(() => postgres.remove());
  return postgres;
};
const temporary = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-sessions-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
const fatal: StoreError[] = [];
const open = async (place: Partial<PostgresPlace> & Pick<DatabaseRelay, 'host'>): Promise<Store> => {
  fatal.length = 0;
  const store = await openPostgresStore({
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => fatal.push(error),
    postgres: {
      ...{ port: 5432, user: 'dke', database: 'dke', readers: 1, password: undefined, ca: undefined },
      ...place,
    },
  });
  undo.push(() => store.close().catch(() => undefined));
  await store.started();
  return store;
};
const set = (store: Store, name: string) => store.write((tx) => tx.settings.set(name, 'yes'));
const linkOf = ({ link }: Store) => {
  if (link === undefined) throw new Error('the store has no link');
  return link;
};

test('settings of the database that change while a node runs change none of its sessions', async () => {
  const postgres = await start();
  postgres.createDatabase('dke');
  const relay = await openDatabaseRelay(postgres.socket);
  undo.push(() => relay.close());
  const store = await open(relay);
  await set(store, 'before');
  postgres.run('dke', 'create schema elsewhere');
  for (const setting of [
    'search_path = elsewhere',
    "lock_timeout = '1ms'",
    "default_transaction_isolation = 'serializable'",
    'default_transaction_read_only = on',
    'synchronous_commit = off',
  ])
    postgres.run('postgres', `alter database dke set ${setting}`);
  relay.cut('dke');
  await until('the next connections', () =>
    set(store, 'after').then(
      () => true,
      () => undefined,
    ),
  );
  expect(await store.read.settings.get('after')).toBe('yes');
  expect((await linkOf(store).nodes()).length).toBe(0);
  expect(postgres.run('dke', "select count(*) from public.settings where name in ('before', 'after')")).toBe('2');
  // A node that starts now is the same.
  const second = await open(relay);
  expect(await second.read.settings.get('after')).toBe('yes');
  expect(postgres.run('dke', "select count(*) from pg_tables where schemaname = 'elsewhere'")).toBe('0');
});

const page = readFileSync(join(import.meta.dirname, '../../docs/postgresql.md'), 'utf8');
/** What a row of the page's time limits says, in order. */
const limitsOf = (what: string): readonly number[] => {
  const [, limit = ''] =
    page
      .split('\n')
      .find((line) => line.startsWith(`| ${what}`))
      ?.split(' | ') ?? [];
  return [...limit.matchAll(/(\d+)( s\b| probes)/g)].map(([, number]) => Number(number));
};

test("sessions have the limits of the page's table, whatever those of the database are, and there are as many as it says", async () => {
  const authority = makeAuthority(temporary(), 'database');
  const tls = authority.issue({ commonName: 'database', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  const postgres = await startPostgres({ tls });
  undo.push(() => postgres.remove());
  await open(postgres.createDatabase('dke'));
  for (const name of ['statement_timeout', 'idle_in_transaction_session_timeout'])
    postgres.run('postgres', `alter database dke set ${name} = '1ms'`);
  const engine = await openPostgres({
    ...{ host: '127.0.0.1', port: postgres.port, user: 'dke', database: 'dke', readers: 3 },
    ...{ password: undefined, ca: () => authority.pem },
  });
  undo.push(() => engine.close());
  const names = ['statement_timeout', 'idle_in_transaction_session_timeout', 'tcp_user_timeout'];
  const keepAlive = ['tcp_keepalives_idle', 'tcp_keepalives_count', 'tcp_keepalives_interval'];
  const secondsOf = async (db: Kysely<unknown>): Promise<readonly number[]> => {
    const { rows } = await sql<{ name: string; seconds: number }>`
      select name, setting::float8 / case unit when 'ms' then 1000 else 1 end as seconds from pg_settings
        where name = any(${[...names, ...keepAlive]})`.execute(db);
    return [...names, ...keepAlive].map((name) => rows.find((row) => row.name === name)?.seconds ?? -1);
  };
  const [reader, writer] = [
    new Kysely<unknown>({ dialect: engine.reader }),
    new Kysely<unknown>({ dialect: engine.writer }),
  ];
  undo.push(() => Promise.all([reader.destroy(), writer.destroy()]));
  const [statement] = limitsOf('A statement, ended by the server');
  const [idle] = limitsOf('An idle transaction that reads');
  const [idleWriter] = limitsOf('A stopped node prevents others from writing');
  const [first, count, interval, unacknowledged] = limitsOf("TCP keep-alive, server's side");
  const shared = [unacknowledged, first, count, interval];
  expect(await secondsOf(reader)).toEqual([statement, idle, ...shared]);
  const run = async (text: string): Promise<void> => {
    await sql.raw(text).execute(writer);
  };
  await engine.begin(run, true);
  expect(await secondsOf(writer)).toEqual([statement, idleWriter, ...shared]);
  await engine.rollback(run);

  const sessions = `select count(*) from pg_stat_activity where usename = 'dke' and client_addr is not null`;
  const asked = Array.from({ length: 12 }, () => sql`select pg_sleep(0.05)`.execute(reader));
  await Promise.all(asked);
  expect(postgres.run('postgres', sessions)).toBe('5');
});

test('heartbeats wait for no commit: a standby or a disk that does not answer makes no node silent', async () => {
  const postgres = await start();
  const link = linkOf(await open(postgres.createDatabase('dke')));
  const id = '0190a0a0-0000-7000-8000-000000000001';
  await link.claim(id, '');
  await link.join({
    ...{ id, name: 'one', version: '1', contactMs: 0, directory: '', rootEpoch: 1, oldestRootEpoch: 1 },
    ...{ publicKey: Buffer.alloc(0), proof: Buffer.alloc(0) },
  });
  // From now on, no commit ends.
  postgres.run('postgres', "alter system set synchronous_standby_names = 'absent'");
  postgres.run('postgres', 'select pg_reload_conf()');
  await until('the setting', async () =>
    postgres.run('postgres', 'show synchronous_standby_names') === 'absent' ? true : undefined,
  );
  const waits = postgres.hold('dke', 'create table waits ()');
  undo.push(() => waits.end());
  waits.ready.catch(() => undefined);
  await until('a commit that waits', async () =>
    postgres.run('postgres', "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") === '1'
      ? true
      : undefined,
  );
  const before = (await link.nodes())[0]?.heartbeatAt ?? 0;
  await until('a heartbeat', async () => {
    await link.beat({ id, shown: undefined }, 0);
    return ((await link.nodes())[0]?.heartbeatAt ?? 0) > before ? true : undefined;
  });
  postgres.run('postgres', 'alter system reset synchronous_standby_names');
  postgres.run('postgres', 'select pg_reload_conf()');
  await waits.ready;
});

test('settings of the server with which it loses what it confirms are named, and no node starts with them', async () => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  const store = await open(place);
  expect(await linkOf(store).risks()).toEqual([]);
  for (const name of ['fsync', 'full_page_writes']) postgres.run('postgres', `alter system set ${name} = off`);
  postgres.run('postgres', 'select pg_reload_conf()');
  await expect.poll(() => linkOf(store).risks()).toEqual(['fsync is off', 'full_page_writes is off']);
  await expect(open(place)).rejects.toThrow('may lose what it confirms (fsync is off, full_page_writes is off)');
});

test.each([
  ['that announces processes of its own', { announced: true, perTransaction: false }],
  ['in transaction mode', { announced: false, perTransaction: true }],
])('a pooler %s is refused at the start, and nothing is changed', async (_, mode) => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  const pooler = await openPooler(join(temporary(), 'pooler'), place.host, mode);
  undo.push(() => pooler.close());
  await expect(open(pooler)).rejects.toThrow('a pooler (PgBouncer, for example) is between this node and PostgreSQL');
  expect(postgres.run('dke', "select count(*) from pg_tables where schemaname = 'public'")).toBe('0');
});

test('a database that accepts no connections: requests say that it does not answer, and a start waits for it', async () => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  const store = await open(place);
  await set(store, 'before');
  const allow = (allowed: boolean): string =>
    postgres.run('postgres', `alter database dke with allow_connections ${allowed}`);
  allow(false);
  postgres.run('postgres', "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'dke'");
  await until('the refusal', async () =>
    (await set(store, 'away').catch(({ cause }) => (cause as { code?: string }).code)) === '55000' ? true : undefined,
  );
  await expect(set(store, 'away')).rejects.toMatchObject({ code: 'unavailable' });
  await expect(store.read.settings.get('before')).rejects.toMatchObject({ code: 'unavailable' });
  const started = open(place);
  allow(true);
  expect(await (await started).read.settings.get('before')).toBe('yes');
});

test('a node writes nothing once the database has another schema, and says why it stops', async () => {
  const postgres = await start();
  const store = await open(postgres.createDatabase('dke'));
  await set(store, 'before');
  postgres.run('dke', `insert into kysely_migration select '9999-next', timestamp from kysely_migration limit 1`);
  expect(await linkOf(store).beat({ id: 'x', shown: undefined }, 0)).toMatchObject({ schema: '9999-next' });
  await expect(set(store, 'after')).rejects.toMatchObject({ code: 'unavailable' });
  expect(fatal.map(({ code, message }) => `${code} ${message}`)).toEqual([
    expect.stringContaining('newer the database has the schema 9999-next'),
  ]);
  expect(postgres.run('dke', "select count(*) from settings where name = 'after'")).toBe('0');
});

test('a database is not upgraded while a node of the version before is connected', async () => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  const first = await open(place);
  const link = linkOf(first);
  await link.claim('0190a0a0-0000-7000-8000-000000000001', '');
  await link.join({
    ...{ id: '0190a0a0-0000-7000-8000-000000000001', name: 'one', version: '1', contactMs: 0, directory: '' },
    ...{ rootEpoch: 1, oldestRootEpoch: 1, publicKey: Buffer.alloc(0), proof: Buffer.alloc(0) },
  });
  postgres.run('dke', `delete from kysely_migration where name = '${newestSchema}'`);
  await expect(open(place)).rejects.toThrow('nodes of an earlier version use the database: stop them first (one)');
  expect(postgres.run('dke', 'select max(name) from kysely_migration')).not.toBe(newestSchema);
});

/** What the owner of a database can put before the functions of PostgreSQL. */
const takeFunctions = (postgres: PostgresServer): void => {
  const forged = `'dke; ALTER ROLE mallory SUPERUSER'`;
  postgres.run(
    'dke',
    `create schema evil; grant usage on schema evil to public;
     create function evil.quote_ident(text) returns text language sql as $$ select ${forged}::text $$;
     create function evil.quote_ident(name) returns text language sql as $$ select ${forged}::text $$;
     create function evil.set_config(text, text, boolean) returns text language plpgsql as $$ begin raise exception 'called'; end $$;
     create function evil.coalesced(name, name) returns boolean language plpgsql as $$ begin raise exception 'called'; end $$;
     create operator evil.= (leftarg = name, rightarg = name, function = evil.coalesced);
     create function public.quote_ident(name) returns text language sql as $$ select ${forged}::text $$;
     alter database dke set search_path = evil, pg_catalog, public`,
  );
};

test('who owns the database does not choose the statements that its administrator is asked to run', async () => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  await open(place);
  postgres.run('postgres', 'create role "pl ain" login');
  takeFunctions(postgres);
  await expect(open({ ...place, user: 'pl ain' })).rejects.toMatchObject({
    message: expect.stringContaining('the user pl ain may not write the table kysely_migration'),
    fix:
      'as the owner of the tables: GRANT ALL ON ALL TABLES IN SCHEMA public TO "pl ain"; ' +
      'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "pl ain"; nothing was changed',
  });
});

test('a name in an offered statement is one identifier for PostgreSQL', async () => {
  const postgres = await start();
  postgres.createDatabase('dke');
  for (const [at, name] of [
    ...['plain', 'user', 'public', 'Dke', 'a b', 'a"b', 'a"; create role x; --', "it's", '1st', 'Schlüssel', 'a\\b'],
    ...['\\! touch x', 'a\nb', 'a\u202eb', '$$'],
  ].entries()) {
    const made = sqlName(name);
    expect(made).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    postgres.run('dke', `create table t${at} (${made} int)`);
    expect(
      postgres.run('dke', `select attname from pg_attribute where attrelid = 't${at}'::regclass and attnum = 1`),
    ).toBe(name);
  }
});

test('what receives whole files of the log does not hold a run where the role may end a file, and is named with the right that helps where not', async () => {
  const postgres = await start();
  const place = postgres.createDatabase('dke');
  postgres.run('postgres', 'create role plain login; grant pg_monitor to plain; alter database dke owner to plain');
  const folder = temporary();
  const receiver = execFile(join(postgresqlPrograms, 'pg_receivewal'), [
    ...['-D', folder, '-h', place.host, '-U', 'dke', '--no-loop', '-s', '1'],
  ]);
  undo.push(async () => {
    const end = once(receiver, 'exit');
    if (receiver.kill()) await end;
  });
  await until('the receiver', async () =>
    postgres.run('postgres', 'select count(*) from pg_stat_replication') === '1' ? true : undefined,
  );
  const plain = await open({ ...place, user: 'plain' });
  takeFunctions(postgres);
  const link = linkOf(plain);
  await set(plain, 'now');
  const position = await link.logPosition();
  const hint = '. What receives whole files of the log waits for the end of this one';
  const command = 'GRANT EXECUTE ON FUNCTION pg_switch_wal() TO plain';
  await expect
    .poll(() => link.copies(position))
    .toMatchObject([{ name: 'standby pg_receivewal', isBehind: true, hint: `${hint}: ${command}` }]);
  // Its name is on the line of the statement, and psql would carry out what follows a backslash.
  const named = execFile(join(postgresqlPrograms, 'pg_receivewal'), [
    ...[
      '-D',
      temporary(),
      '-d',
      `host=${place.host} user=dke application_name='\\\\! touch x'`,
      '--no-loop',
      '-s',
      '1',
    ],
  ]);
  await expect
    .poll(() => link.copies(position))
    .toMatchObject(
      ['standby \\! touch x', 'standby pg_receivewal'].map((name) => ({
        ...{ name, isBehind: true },
        hint: `${hint}: grant it what docs/postgresql.md lists as optional rights`,
      })),
    );
  const ended = once(named, 'exit');
  if (named.kill()) await ended;
  await expect.poll(() => link.copies(position)).toMatchObject([{ hint: `${hint}: ${command}` }]);
  postgres.run('dke', 'grant execute on function pg_switch_wal() to plain');
  await until('the end of the file', async () => {
    const copies = await link.copies(position);
    return copies !== 'other' && copies.every(({ isBehind }) => !isBehind) ? true : undefined;
  });
});
