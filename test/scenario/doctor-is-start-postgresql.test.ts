// The doctor is the start, with PostgreSQL: whatever keeps the service from its database is named
// by both, with the words of PostgreSQL, and ends with what the fix says (doctor-is-start.test.ts).
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../server/app/config/config.ts';
import { diagnoseHost } from '../../server/app/host/host-checks.ts';
import { startServer } from '../../server/app/process.ts';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { StartError } from '../../server/base/start-error.ts';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { runCommand } from '../support/command.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { commandsIn } from '../support/printed-fixes.ts';

let folder: string;
let config: string;
let authority: Authority;
let postgres: PostgresServer;
let primary: PostgresServer | undefined;
let standby: PostgresServer | undefined;
let socket: string;

interface Store {
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly database?: string;
  readonly ca?: string;
}
const own = (): Required<Omit<Store, 'ca'>> => ({
  host: socket,
  port: postgres.port,
  user: 'dke_service',
  database: 'dke',
});
const overTls = (): Store => ({ host: '127.0.0.1', ca: 'authority.pem' });
const configure = (store: Store = {}, data = 'data'): void => {
  const fields = Object.entries({ ...own(), ...store }).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`);
  writeFileSync(
    config,
    `[server]\nhost = "127.0.0.1"\nport = 0\n[data]\ndirectory = "${data}"\n[log]\ndestination = "log.jsonl"\n` +
      `[store]\ntype = "postgresql"\nreaders = 2\npassword_file = "password"\n${fields.join('')}`,
    { mode: 0o600 },
  );
};
const password = (text: string, mode = 0o600): void => {
  rmSync(join(folder, 'password'), { force: true });
  writeFileSync(join(folder, 'password'), `${text}\n`, { mode });
};
const present = (name: string, more: object = {}, from = authority): void => {
  postgres.present(from.issue({ commonName: name, names: [name], usage: 'serverAuth', ...more }));
  postgres.run('postgres', 'select pg_reload_conf()');
};

const start = async (): Promise<string | undefined> => {
  try {
    await (await startServer({ config: loadConfig(config, '/'), say: () => undefined })).stop();
    return undefined;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.message;
  }
};
const diagnose = async (): Promise<readonly CheckResult[]> =>
  (await diagnoseHost({ configPath: config, workingDirectory: '/' })).filter(({ state }) => state === 'failed');

const dke = async (...args: readonly string[]): Promise<void> =>
  expect(await runCommand([...args, '--config', config], { cwd: folder })).toMatchObject({ code: 0, stderr: '' });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-doctor-postgresql-'));
  config = join(folder, 'dke.toml');
  authority = makeAuthority(folder, 'database authority');
  writeFileSync(join(folder, 'authority.pem'), authority.pem, { mode: 0o644 });
  postgres = await startPostgres({
    tls: authority.issue({ commonName: 'first', names: ['IP:127.0.0.1'], usage: 'serverAuth' }),
  });
  postgres.run(
    'postgres',
    "create role dke_service login password 'right'; create role reader login password 'right'; " +
      `create role "A ""reader""" login password 'right'`,
  );
  ({ host: socket } = postgres.createDatabase('dke'));
  postgres.run('postgres', 'alter database dke owner to dke_service');
  postgres.run('dke', 'alter schema public owner to dke_service');
  const rules = join(socket, 'data/pg_hba.conf');
  const before = readFileSync(rules, 'utf8');
  writeFileSync(rules, 'local all dke_service scram-sha-256\nhost all dke_service 127.0.0.1/32 scram-sha-256\n');
  appendFileSync(rules, before);
  postgres.run('postgres', 'select pg_reload_conf()');
  password('right');
  configure();
  expect(await start()).toBeUndefined();
  writeFileSync(join(folder, 'words'), 'a long passphrase of four words\n', { mode: 0o600 });
  await dke('root', 'backup', '--out', 'root-backup', '--new-passphrase-file', 'words');
}, 120_000);
afterAll(async () => {
  await standby?.remove();
  await primary?.remove();
  await postgres?.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface Situation {
  readonly what: string;
  readonly check: string;
  readonly cause: RegExp;
  readonly spoil: () => unknown;
  /** What the fix says, where it is not a command. What is printed as a command is run. */
  readonly says?: RegExp;
  readonly repair?: () => unknown;
  /** What a printed command of `dke` asks for. */
  readonly given?: readonly string[];
  /** The database in which the owner of the tables runs what is printed for PostgreSQL. */
  readonly within?: string;
}
const correct = (): void => configure();

const situations: readonly Situation[] = [
  {
    ...{ what: 'PostgreSQL is down', check: 'database', cause: /does not answer \(.*(?:ENOENT|ECONNREFUSED)/ },
    spoil: () => postgres.stop(),
    ...{ says: /start PostgreSQL, or correct host and port/, repair: () => postgres.start() },
  },
  {
    ...{
      what: 'the password is wrong',
      check: 'database',
      cause: /refuses the user or its password \(password authentication failed for user "dke_service"\)/,
    },
    spoil: () => password('wrong'),
    ...{ says: /write the right password to password_file/, repair: () => password('right') },
  },
  {
    ...{ what: 'there is no such user', check: 'database', cause: /refuses the user or its password \(.*"stranger"/ },
    spoil: () => configure({ user: 'stranger' }),
    ...{ says: /allow the user in pg_hba\.conf/, repair: correct },
  },
  {
    ...{
      what: 'the password file is missing',
      check: 'named-files',
      cause: /password cannot be read \(ENOENT\) \(store\.password_file\)/,
    },
    spoil: () => rmSync(join(folder, 'password')),
    ...{ says: /put the file there/, repair: () => password('right') },
  },
  {
    ...{ what: 'others may read the password file', check: 'named-files', cause: /password has mode 644/ },
    spoil: () => chmodSync(join(folder, 'password'), 0o644),
  },
  {
    ...{
      what: 'there is no such database',
      check: 'database',
      cause: /does not exist \(database "lost" does not exist\)/,
    },
    spoil: () => configure({ database: 'lost' }),
    ...{ says: /correct \[store\] in dke\.toml/, repair: correct },
  },
  {
    ...{
      what: 'the certificate of PostgreSQL expired',
      check: 'database',
      cause: /has a certificate that expired \(certificate has expired\)/,
    },
    spoil: () => {
      configure(overTls());
      present('IP:127.0.0.1', { notBefore: '20260101000000Z', notAfter: '20260102000000Z' });
    },
    ...{ says: /renew the certificate of PostgreSQL/, repair: () => present('IP:127.0.0.1') },
  },
  {
    ...{
      what: 'the certificate is of another authority',
      check: 'database',
      cause: /has a certificate that is not trusted \(/,
    },
    spoil: () => {
      configure(overTls());
      present('IP:127.0.0.1', {}, makeAuthority(folder, 'another authority'));
    },
    ...{ says: /name the authority that issued it in ca of \[store\]/, repair: () => present('IP:127.0.0.1') },
  },
  {
    ...{
      what: 'the certificate is for another host',
      check: 'database',
      cause: /has a certificate that is not trusted \(.*127\.0\.0\.1/,
    },
    spoil: () => {
      configure(overTls());
      present('DNS:elsewhere.example');
    },
    ...{ says: /a host that it is for/, repair: () => present('IP:127.0.0.1') },
  },
  {
    ...{ what: 'PostgreSQL does not speak TLS', check: 'database', cause: /does not speak TLS \(/ },
    // On its socket.
    spoil: () => configure({ ca: 'authority.pem' }),
    says: /remove ca of \[store\] for a socket/,
    repair: correct,
  },
  {
    ...{ what: 'the host leads to a standby', check: 'database', cause: /is read-only \(the server is a standby/ },
    spoil: async () => {
      primary = await startPostgres();
      primary.run('postgres', "create role dke_service login password 'right'");
      primary.createDatabase('dke');
      standby = await primary.standby();
      configure({
        host: standby.socket.replace(/\/\.s\.PGSQL\.\d+$/, ''),
        port: Number(/\d+$/.exec(standby.socket)?.[0] ?? 5432),
      });
    },
    ...{ says: /let the host of \[store\] lead to the primary/, repair: correct },
  },
  {
    ...{ what: 'the schema is of a newer version', check: 'database', cause: /newer version \(2099-01-future\)/ },
    spoil: () =>
      postgres.run('dke', "insert into kysely_migration (name, timestamp) values ('2099-01-future', '2099')"),
    says: /install that version/,
    repair: () => postgres.run('dke', "delete from kysely_migration where name = '2099-01-future'"),
  },
  {
    ...{ what: 'the database is of another program', check: 'database', cause: /belongs to another program/ },
    spoil: () => {
      postgres.createDatabase('others');
      postgres.run('others', 'create table theirs (id int)');
      postgres.run('others', 'grant create on schema public to dke_service; grant select on theirs to dke_service');
      configure({ database: 'others' });
    },
    ...{ says: /make one for the service/, repair: correct },
  },
  {
    ...{ what: 'the database is not in UTF8', check: 'database', cause: /is in SQL_ASCII/ },
    spoil: () => {
      postgres.run(
        'postgres',
        "create database ascii owner dke_service encoding 'SQL_ASCII' template template0 locale 'C'",
      );
      configure({ database: 'ascii' });
    },
    ...{ says: /make one in UTF8/, repair: correct },
  },
  {
    ...{ what: 'the user may only read', check: 'database', cause: /the user reader may not write the table/ },
    spoil: () => {
      postgres.run('dke', 'grant select on all tables in schema public to reader');
      configure({ user: 'reader' });
    },
    within: 'dke',
  },
  {
    ...{ what: 'the user may make no tables', check: 'database', cause: /the user A "reader" may not create tables/ },
    spoil: () => {
      postgres.createDatabase('bare');
      configure({ database: 'bare', user: 'A "reader"' }, 'bare-data');
    },
    within: 'bare',
  },
  {
    ...{
      what: 'the database may lose what it confirms',
      check: 'database',
      cause: /may lose what it confirms \(fsync is off\)/,
    },
    spoil: () => {
      postgres.run('postgres', 'alter system set fsync = off');
      postgres.run('postgres', 'select pg_reload_conf()');
    },
    says: /set fsync and full_page_writes to on/,
    repair: () => {
      postgres.run('postgres', 'alter system set fsync = on');
      postgres.run('postgres', 'select pg_reload_conf()');
    },
  },
  {
    ...{
      what: 'the database is empty, and a root key is there',
      check: 'database',
      cause: /is empty, but its root key .* is there/,
    },
    spoil: () => {
      postgres.run('postgres', 'create database empty owner dke_service');
      configure({ database: 'empty' });
    },
    ...{ says: /name the right database/, repair: correct },
  },
  {
    ...{ what: 'root.key is missing', check: 'root-key', cause: /root\.key is missing/ },
    spoil: () => rmSync(join(folder, 'data/root.key')),
    given: ['--passphrase-file', 'words'],
  },
];

console.info(`the doctor and the start are compared in ${situations.length} situations of PostgreSQL`);
/** How many situations ended by the printed command alone. */
let executed = 0;
afterAll(() =>
  console.info(
    `the printed fix was run in ${executed} of ${situations.length} situations; others say what to do without a command`,
  ),
);
test.each(situations)('$what', async ({ check, cause, spoil, says, repair, given = [], within }) => {
  await spoil();
  const [first] = await diagnose();
  expect(first).toMatchObject({ id: check, evidence: expect.stringMatching(cause) });
  const said = `${first?.evidence}${first?.fix === undefined ? '' : `: ${first.fix}`}`;
  await expect.poll(start).toBe(said);
  // A printed command is run, and nothing else is done; only a fix without one is done here.
  const printed = commandsIn(said);
  expect([said, printed.length > 0]).toEqual([said, says === undefined]);
  if (printed.length > 0) executed += 1;
  for (const { kind, text } of printed) {
    if (kind === 'shell') execFileSync('sh', ['-c', text]);
    else if (kind === 'sql') postgres.run(within ?? 'postgres', text);
    else await dke(...text.replace('FILE', 'root-backup').split(' ').slice(1), ...given);
  }
  if (says !== undefined) expect(said).toMatch(says);
  await repair?.();
  await expect.poll(diagnose).toEqual([]);
  expect(await start()).toBeUndefined();
  configure();
});
