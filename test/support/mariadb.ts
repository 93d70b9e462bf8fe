// Debian's real MariaDB server, in a data directory of its own, on a unix socket only; it stops on
// its own. Our key management plugin is linked into the same plugin folder as file_key_management.
// A server encrypts because of a list of options that docs/databases/mariadb.md has too.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { endWithTest } from './children.ts';
import { until } from './host.ts';
import { findProgram, installed, type Outcome, run } from './tools.ts';

export const plugin = resolve(import.meta.dirname, '../../build/provider/mariadb/dke_key_management.so');
const pluginFolder = '/usr/lib/mysql/plugin';
const page = resolve(import.meta.dirname, '../../docs/databases/mariadb.md');

export const mariadbIsThere = (): boolean =>
  installed('mariadb-server', '/usr/sbin/mariadbd', 'mariadb', 'mariadb-install-db') &&
  installed('mariadb-backup', 'mariabackup') &&
  installed('libmariadbd-dev, then npm run build:native', plugin);

/**
 * The settings of the page's file called `name`, as options; the page's paths replaced by those
 * given.
 */
export const pageOptions = (name: string, paths: Readonly<Record<string, string>> = {}): readonly string[] => {
  const [, block] =
    new RegExp(`\`\`\`ini\\n *# \\S*${name}\\n([\\s\\S]*?)\`\`\``).exec(readFileSync(page, 'utf8')) ?? [];
  if (block === undefined) throw new Error(`the page has no file ${name}`);
  return block
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('['))
    .map((line) => {
      const [, option = '', value] = /^([\w-]+)(?:\s*=\s*(.*))?$/.exec(line) ?? [];
      const given = paths[option.replaceAll('-', '_')];
      return value === undefined ? `--${option}` : `--${option}=${given ?? value}`;
    });
};

/** Everything that is small and quick, and nothing of this host. */
const frame = (folder: string): readonly string[] => [
  '--no-defaults',
  `--datadir=${join(folder, 'data')}`,
  `--socket=${join(folder, 'mariadb.sock')}`,
  `--pid-file=${join(folder, 'mariadb.pid')}`,
  `--log-error=${join(folder, 'error.log')}`,
  `--plugin-dir=${join(folder, 'plugins')}`,
  `--tmpdir=${join(folder, 'tmp')}`,
  '--skip-networking',
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=8M',
  '--innodb-flush-log-at-trx-commit=1',
  '--skip-name-resolve',
  // For MariaDB root is a user that must be named.
  ...(process.getuid?.() === 0 ? ['--user=root'] : []),
];

/**
 * MariaDB's installer sometimes fails on a loaded machine: its output is printed, and it is run
 * again.
 */
const installDatabase = (folder: string): void => {
  const options = [`--datadir=${folder}`, '--auth-root-authentication-method=normal', '--skip-test-db'];
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  const args = ['--no-defaults', ...options, ...user, '--innodb-log-file-size=8M'];
  const install = (): string | undefined => {
    const { status, stdout, stderr } = spawnSync('mariadb-install-db', args, { encoding: 'utf8' });
    if (status === 0) return;
    rmSync(folder, { recursive: true, force: true });
    return `mariadb-install-db ended with ${status}:\n${stdout}${stderr}`;
  };
  const first = install();
  if (first === undefined) return;
  console.warn(first);
  const second = install();
  if (second !== undefined) throw new Error(second);
};

/**
 * An empty data directory, made once for all servers whose folders lie in the same one; they take
 * copies.
 */
const emptyData = (folder: string): string => {
  const made = join(folder, 'empty-data');
  if (!existsSync(made)) installDatabase(made);
  return made;
};

export interface Mariadb {
  readonly folder: string;
  readonly data: string;
  readonly socket: string;
  readonly pid: number;
  /** The log of errors, of all starts in this folder. */
  log(): string;
  /** Runs SQL that must succeed; answers rows, columns divided by tabs. */
  sql(statements: string): Promise<readonly string[]>;
  /** Runs SQL; any end is an answer. */
  trySql(statements: string): Promise<Outcome>;
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** A folder for one server, with an empty data directory. */
export const newMariadbFolder = (folder: string, options: { readonly empty?: boolean } = {}): void => {
  mkdirSync(join(folder, 'plugins'), { recursive: true });
  mkdirSync(join(folder, 'tmp'));
  mkdirSync(join(folder, 'keys'));
  symlinkSync(plugin, join(folder, 'plugins/dke_key_management.so'));
  symlinkSync(join(pluginFolder, 'file_key_management.so'), join(folder, 'plugins/file_key_management.so'));
  if (options.empty !== false) cpSync(emptyData(dirname(folder)), join(folder, 'data'), { recursive: true });
};

const readLog = (folder: string): string => {
  const path = join(folder, 'error.log');
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};

export const query = (socket: string, statements: string): Promise<Outcome> =>
  run('mariadb', ['--no-defaults', '-uroot', `-S${socket}`, '-NB', '-e', statements]);

const launch = (folder: string, options: readonly string[], environment: NodeJS.ProcessEnv): ChildProcess => {
  const child = spawn(findProgram('mariadbd') ?? 'mariadbd', [...frame(folder), ...options], {
    stdio: 'ignore',
    env: { ...process.env, LC_ALL: 'C', ...environment },
  });
  endWithTest(child);
  return child;
};

/** Starts a server, which must succeed. */
export const startMariadb = async (
  folder: string,
  options: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Mariadb> => {
  const before = readLog(folder).length;
  const child = launch(folder, options, environment);
  const gone = once(child, 'exit');
  const socket = join(folder, 'mariadb.sock');
  await until('the start of MariaDB', async () => {
    const log = readLog(folder).slice(before);
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`MariaDB did not start:\n${log}`);
    return log.includes('ready for connections') ? true : undefined;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await gone;
  };
  const trySql: Mariadb['trySql'] = (statements) => query(socket, statements);
  return {
    folder,
    data: join(folder, 'data'),
    socket,
    pid: child.pid ?? 0,
    log: () => readLog(folder),
    trySql,
    sql: async (statements) => {
      const { code, out, complaints } = await trySql(statements);
      if (code !== 0) throw new Error(`${statements.slice(0, 200)}: ${complaints}`);
      return out.split('\n').slice(0, -1);
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
};

/** Starts a server that must refuse to; answers what it wrote to its log. */
export const refusedStart = async (
  folder: string,
  options: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<string> => {
  const before = readLog(folder).length;
  const child = launch(folder, options, environment);
  const gone = once(child, 'exit');
  await until('the end of a start', async () => {
    const up = readLog(folder).slice(before).includes('ready for connections');
    if (up) child.kill('SIGTERM');
    return up || child.exitCode !== null || child.signalCode !== null ? true : undefined;
  });
  await gone;
  const log = readLog(folder).slice(before);
  if (log.includes('ready for connections')) throw new Error(`MariaDB started:\n${log}`);
  return log;
};

/** The block of the page that is called so, without its name; replacements in the order given. */
export const pageBlock = (
  language: 'sql' | 'sh',
  name: string,
  replacements: readonly (readonly [string, string])[] = [],
): string => {
  const mark = language === 'sql' ? '--' : '#';
  const start = new RegExp(`\`\`\`${language}\\n *${mark} ${name}\\n([\\s\\S]*?)\`\`\``);
  const [, block] = start.exec(readFileSync(page, 'utf8')) ?? [];
  if (block === undefined) throw new Error(`the page has no block “${name}”`);
  return replacements.reduce((text, [from, to]) => text.replaceAll(from, to), block);
};
