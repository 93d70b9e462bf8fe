// PostgreSQL as Debian installs it (15, or what the release has), for tests that run servers of
// their own.
import { type ExecFileOptions, execFile, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { IssuedCertificate } from './authority.ts';
import { type Daemon, freePort, startDaemon } from './daemon.ts';
import { quickFolder, runFolder } from './quick-folder.ts';

const releases = existsSync('/usr/lib/postgresql')
  ? readdirSync('/usr/lib/postgresql').sort((a, b) => Number(a) - Number(b))
  : [];
/**
 * The folder of the oldest server that is installed: the tests were written for 15.
 * DKE_POSTGRESQL_PROGRAMS names that of another one (newer-postgresql.sh).
 */
export const postgresqlPrograms =
  process.env.DKE_POSTGRESQL_PROGRAMS ?? `/usr/lib/postgresql/${releases[0] ?? '15'}/bin`;

/**
 * The user that runs a server: PostgreSQL's own when the tests are root's, which it refuses;
 * undefined: the tests' own.
 */
export const postgresqlUser = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres']).toString());
  return { uid: id('-u'), gid: id('-g') };
};

export interface PostgresPlace {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface PostgresServer {
  /** Makes an empty database; answers where it is, as `server/adapters/store` takes it. */
  createDatabase(name: string): PostgresPlace;
  /** Runs SQL, as psql does; answers what it prints, without decoration. */
  run(database: string, sql: string): string;
  /** Runs SQL like `run`, without blocking this process. */
  ask(database: string, sql: string): Promise<string>;
  /** Runs SQL in a session that stays open, with what it locks, until `end`. */
  hold(database: string, sql: string): { readonly ready: Promise<void>; end(): Promise<void> };
  /** Stops and starts it: connections are lost, what was committed stays. */
  restart(how?: NodeJS.Signals): Promise<void>;
  stop(how?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  /** Stops it, keeps a copy of its state, and starts it again. */
  keepState(): Promise<void>;
  /**
   * Restores the state that `keepState` kept, like a standby that takes over without having
   * received what came later: connections are lost.
   */
  failOver(): Promise<void>;
  /** The server is again the one from before `failOver`, with all that it had. */
  failBack(): Promise<void>;
  /** The server's port; with `tls`, it also listens on this port of 127.0.0.1. */
  readonly port: number;
  /** New connections get this certificate; only for a server with `tls`. */
  present(tls: IssuedCertificate): void;
  /** Its socket, for a relay. */
  readonly socket: string;
  /**
   * A standby of this server (pg_basebackup), which receives what it stores from `from`: this
   * server's socket, or a relay in front of it.
   */
  standby(options?: StandbyOptions): Promise<PostgresServer>;
  /** Makes this standby take over as primary. */
  promote(): Promise<void>;
  /** Its log since it was started the last time. */
  printed(): string;
  /** Ends it at once and deletes its files, for a process that is ending itself. */
  drop(): void;
  /** Stops it and deletes its files. */
  remove(): Promise<void>;
}

export interface StandbyOptions {
  /** application_name of its connection. */
  readonly name?: string;
  /** With a replication slot of this name. */
  readonly slot?: string;
  readonly from?: { readonly host: string; readonly port: number };
}

/** Which user runs a program, and where. */
type As = Pick<ExecFileOptions, 'cwd' | 'uid' | 'gid' | 'env'>;

const initialize = async (data: string, as: As): Promise<void> => {
  const options = ['-U', 'dke', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync'];
  await promisify(execFile)(join(postgresqlPrograms, 'initdb'), ['-D', data, ...options], as);
};
/**
 * Within a test run the first cluster is kept, and the others are copies: initdb takes longer than
 * everything else of a start.
 */
const makeCluster = async (data: string, as: As): Promise<void> => {
  const run = runFolder();
  if (run === undefined) {
    await initialize(data, as);
    return;
  }
  const template = join(run, 'cluster');
  if (!existsSync(template)) {
    const own = `${data}.template`;
    await initialize(own, as);
    try {
      renameSync(own, template);
    } catch {
      // Another test was faster.
    }
  }
  await promisify(execFile)('cp', ['-a', template, data], as);
};

/**
 * A server of its own in a folder of its own, on a socket in it; a user who may enter the folder is
 * the superuser.
 */
export const startPostgres = async ({
  connections = 60,
  environment = {},
  settings = [],
  tls,
  make,
}: {
  readonly connections?: number;
  readonly environment?: NodeJS.ProcessEnv;
  /** `name=value` of postgresql.conf. */
  readonly settings?: readonly string[];
  readonly tls?: IssuedCertificate;
  /** Makes the data directory, instead of initdb. */
  readonly make?: (data: string, as: As) => Promise<void>;
} = {}): Promise<PostgresServer> => {
  const folder = mkdtempSync(join(quickFolder(), 'dke-postgres-'));
  const user = postgresqlUser();
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  const as = {
    stdio: 'pipe',
    cwd: folder,
    ...(user ?? {}),
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
  } as const;
  const data = join(folder, 'data');
  const kept = join(folder, 'kept');
  const former = join(folder, 'former');
  if (make !== undefined) await make(data, as);
  else await makeCluster(data, as);
  const port = tls === undefined ? 5432 : await freePort();
  const present = (pair: IssuedCertificate): void => {
    for (const [from, name] of [
      [pair.certificate, 'server.crt'],
      [pair.key, 'server.key'],
    ] as const) {
      const path = join(folder, name);
      rmSync(path, { force: true });
      copyFileSync(from, path);
      chmodSync(path, 0o600);
      if (user !== undefined) chownSync(path, user.uid, user.gid);
    }
  };
  if (tls !== undefined) present(tls);
  const own =
    tls === undefined
      ? ['listen_addresses=']
      : [
          ...['listen_addresses=127.0.0.1', `port=${port}`, 'ssl=on'],
          ...[`ssl_cert_file=${join(folder, 'server.crt')}`, `ssl_key_file=${join(folder, 'server.key')}`],
        ];
  let daemon: Daemon | undefined;
  const start = async (): Promise<void> => {
    daemon = await startDaemon(
      join(postgresqlPrograms, 'postgres'),
      [
        '-D',
        data,
        '-k',
        folder,
        '-c',
        `max_connections=${connections}`,
        '-c',
        'shared_buffers=16MB',
        ...[...own, ...settings].flatMap((setting) => ['-c', setting]),
      ],
      { folder, environment, ready: /ready to accept (read-only )?connections/, last: 'SIGQUIT', ...(user ?? {}) },
    );
  };
  /** SIGINT: fast, SIGQUIT: as if it had crashed. */
  const stop = async (how: NodeJS.Signals = 'SIGINT'): Promise<void> => {
    await daemon?.stop(how);
    daemon = undefined;
  };
  const psql = join(postgresqlPrograms, 'psql');
  const sqlArguments = (database: string, sql: string): readonly string[] => [
    ...['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1'],
    ...['-h', folder, '-p', String(port), '-U', 'dke', '-d', database, '-c', sql],
  ];
  const run = (database: string, sql: string): string =>
    execFileSync(psql, sqlArguments(database, sql), as).toString().trim();
  const ask = async (database: string, sql: string): Promise<string> =>
    (await promisify(execFile)(psql, sqlArguments(database, sql), as)).stdout.trim();
  await start();
  return {
    createDatabase: (name) => {
      run('postgres', `create database ${name} template template0`);
      return { host: folder, port, user: 'dke', database: name };
    },
    run,
    ask,
    hold: (database, sql) => {
      const client = new pg.Client({ host: folder, user: 'dke', database });
      const ready = client.connect().then(async () => {
        await client.query(sql);
      });
      let ended: Promise<void> | undefined;
      return {
        ready,
        end: () => {
          ended ??= client.end();
          return ended;
        },
      };
    },
    start,
    stop,
    restart: async (how) => {
      await stop(how);
      await start();
    },
    keepState: async () => {
      await stop();
      execFileSync('cp', ['-a', data, kept]);
      await start();
    },
    failOver: async () => {
      await stop('SIGQUIT');
      rmSync(former, { recursive: true, force: true });
      renameSync(data, former);
      execFileSync('cp', ['-a', kept, data]);
      await start();
    },
    failBack: async () => {
      await stop('SIGQUIT');
      rmSync(data, { recursive: true, force: true });
      renameSync(former, data);
      await start();
    },
    port,
    present: (pair) => {
      present(pair);
      run('postgres', 'select pg_reload_conf()');
    },
    socket: join(folder, `.s.PGSQL.${port}`),
    standby: ({ name = 'standby', slot, from = { host: folder, port: 5432 } } = {}) =>
      startPostgres({
        connections,
        settings,
        make: async (standbyData, standbyAs) => {
          const source = `host=${from.host} port=${from.port} user=dke application_name=${name}`;
          // Not synchronously: a relay in this process may stand between.
          await promisify(execFile)(
            join(postgresqlPrograms, 'pg_basebackup'),
            [
              ...['-D', standbyData, '-d', source, '-R', '-X', 'stream', '--checkpoint=fast', '--no-sync'],
              ...(slot === undefined ? [] : ['-C', '-S', slot]),
            ],
            standbyAs,
          );
        },
      }),
    promote: async () => {
      await ask('postgres', 'select pg_promote()');
    },
    printed: () => daemon?.printed() ?? '',
    drop: () => {
      if (daemon !== undefined) process.kill(daemon.pid, 'SIGQUIT');
      daemon = undefined;
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
    remove: async () => {
      // SIGQUIT is enough, because all files are deleted and the server is not started again.
      await stop('SIGQUIT');
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
};
