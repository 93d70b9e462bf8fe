// MariaDB servers over the real service: each instance has a folder, an application's pkcs11.toml
// and the options of the page.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { startAgent } from './agent-process.ts';
import { createGroup, registerApplication } from './console-api.ts';
import { endProcess, killProcess, processesWith, until } from './host.ts';
import { type Mariadb, newMariadbFolder, pageBlock, pageOptions, refusedStart, startMariadb } from './mariadb.ts';
import { library } from './pkcs11-host.ts';
import type { ServerProcessOptions } from './server-process.ts';
import { type Site, startSite } from './site.ts';
import { run } from './tools.ts';

export interface Instance {
  readonly name: string;
  readonly folder: string;
  readonly keyFile: string;
  /** Its pkcs11.toml. */
  readonly config: string;
  readonly application: RegisteredApplication;
  readonly environment: NodeJS.ProcessEnv;
  /**
   * Starts it with the page's configuration and more options; one that runs is the caller's to
   * stop.
   */
  start(...more: readonly string[]): Promise<Mariadb>;
  /** The page's first start. */
  initialize(...more: readonly string[]): Promise<Mariadb>;
  /** A start that must fail. Returns the log. */
  refused(...more: readonly string[]): Promise<string>;
  /** Runs a block of the page for the shell, with this instance's paths; it must succeed. */
  shell(block: string, replacements?: readonly (readonly [string, string])[]): Promise<void>;
}

export interface MariadbSite extends Site {
  /** Registers an application, in a group of its own unless one is named. */
  register(name: string, groupId?: string): Promise<RegisteredApplication>;
  instance(
    name: string,
    application: RegisteredApplication,
    options?: { readonly empty?: boolean; readonly ownAgent?: boolean },
  ): Instance;
  label(database: Mariadb): Promise<string>;
  /** Destroys the master key that a server uses. */
  destroyMasterKey(application: RegisteredApplication, label: string): Promise<void>;
}

/**
 * `options` are those of the server. Creates a folder by default, and removes the folder at the
 * end.
 */
export const startMariadbSite = async (options: Omit<ServerProcessOptions, 'port'> = {}): Promise<MariadbSite> => {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'dke-mariadb-'));
  const site = await startSite({ ...options, folder });
  // Started without a time limit. The library, which would start it otherwise, waits for 15 s: not
  // enough on a machine under heavy load.
  const startAgentIn = (where: string) => startAgent(where, { environment: { DKE_AGENT_LOG_DIR: site.logDirectory } });
  await startAgentIn(folder);
  const running = new Set<Mariadb>();
  const ownAgents: string[] = [];
  const started = async (database: Promise<Mariadb>): Promise<Mariadb> => {
    running.add(await database);
    return database;
  };
  return {
    ...site,
    get server() {
      return site.server;
    },
    register: async (name, groupId) =>
      registerApplication(site.api, name, groupId ?? (await createGroup(site.api, name))),
    instance(name, application, options = {}) {
      const own = join(folder, name);
      newMariadbFolder(own, options);
      const keyFile = join(own, 'keys/dke-keys');
      const socket = options.ownAgent === true ? join(own, 'agent.sock') : site.socket;
      if (socket !== site.socket) ownAgents.push(socket);
      const config = site.config(name, application);
      const environment = { DKE_PKCS11_SOCKET: socket, DKE_AGENT_LOG_DIR: site.logDirectory };
      const settings = pageOptions('60-dke.cnf', {
        dke_key_management_pkcs11_library: library,
        dke_key_management_pkcs11_config: config,
        dke_key_management_key_file: keyFile,
      });
      let agent: Promise<unknown> | undefined;
      const withAgent = (): Promise<unknown> => {
        agent ??= socket === site.socket ? Promise.resolve() : startAgentIn(own);
        return agent;
      };
      const start = async (...more: readonly string[]): Promise<Mariadb> => {
        await withAgent();
        return started(startMariadb(own, [...settings, '--log-bin=binlog', ...more], environment));
      };
      return {
        name,
        folder: own,
        keyFile,
        config,
        application,
        environment,
        start,
        initialize: (...more) => start('--dke-key-management-initialize', ...more),
        refused: (...more) => refusedStart(own, [...settings, '--log-bin=binlog', ...more], environment),
        async shell(block, replacements = []) {
          const connect = `--no-defaults --backup -uroot -S${join(own, 'mariadb.sock')}`;
          const script = pageBlock('sh', block, [
            ...replacements,
            ['mariabackup --backup', `mariabackup ${connect}`],
            ['mariabackup --move-back', 'mariabackup --no-defaults --move-back'],
            ['/var/backups/mariadb-dke-keys', join(folder, 'backup-dke-keys')],
            ['/var/backups/mariadb', join(folder, 'backup')],
            ['/var/lib/mysql-keys', join(own, 'keys')],
            ['/var/lib/mysql', join(own, 'data')],
          ]);
          await withAgent();
          const { code, complaints } = await run('sh', ['-ec', script], { environment });
          if (code !== 0) throw new Error(`${block}: ${complaints.slice(-3000)}`);
        },
      };
    },
    label: async (database) => {
      const [row = ''] = await database.sql("SHOW GLOBAL STATUS LIKE 'Dke_key_management_master_key'");
      return row.split('\t')[1] ?? '';
    },
    async destroyMasterKey(application, label) {
      const key = await site.api.masterKey(application.record.applicationId, label);
      const path = `/api/tde/applications/${application.record.applicationId}/master-keys/${key.id}/destroy`;
      await site.api.call('POST', path, { confirm: label });
    },
    async end() {
      for (const database of running) await database.kill();
      // Servers that a test started itself, or that did not start in time.
      for (const [pid] of processesWith(`--datadir=${folder}/`)) killProcess(pid);
      for (const socket of ownAgents) for (const [pid] of processesWith(socket)) await endProcess(pid);
      await site.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Status variables of the plugin, without their prefix. */
export const statusOf = async (database: Mariadb): Promise<Readonly<Record<string, string>>> => {
  const rows = await database.sql(pageBlock('sql', 'what the plugin says of itself'));
  return Object.fromEntries(rows.map((row) => row.replace('Dke_key_management_', '').split('\t')));
};

/** Waits until a question of the page has an empty answer. */
export const untilEmpty = async (database: Mariadb, block: string): Promise<void> => {
  const question = pageBlock('sql', block);
  await until(block, async () => ((await database.sql(question)).length === 0 ? true : undefined));
};

/** The number of keys that InnoDB has requested from the plugin since the start. */
export const keyRequests = async (database: Mariadb): Promise<number> => {
  const [row = ''] = await database.sql("SHOW GLOBAL STATUS LIKE 'Innodb_encryption_num_key_requests'");
  return Number(row.split('\t')[1]);
};

/** Waits until InnoDB's threads sleep: ten questions in a row find no new request for a key. */
export const untilIdle = async (database: Mariadb): Promise<void> => {
  let before = -1;
  let equal = 0;
  await until('an idle server', async () => {
    const now = await keyRequests(database);
    equal = now === before ? equal + 1 : 0;
    before = now;
    return equal === 10 ? true : undefined;
  });
};

/** The file that names the keys of a data directory. */
export const bindingOf = (instance: Instance): string => join(instance.folder, 'data/mysql/dke_key_management.opt');

/** The files below a folder whose bytes hold the text. */
export const filesBelowWith = (folder: string, text: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));

/**
 * Inserts rows into orders.load_rows until it is stopped. Returns the numbers that the server has
 * confirmed.
 */
export const insertUntilStopped = (
  /** The server that runs now; it is checked with each row. */
  place: { readonly database: Mariadb },
): { confirmed(): number; stop(): Promise<readonly number[]> } => {
  const confirmed: number[] = [];
  let going = true;
  const done = (async () => {
    for (let number = 1; going; number++) {
      const { code } = await place.database.trySql(
        `INSERT INTO orders.load_rows VALUES (${number}, REPEAT('x', 2000))`,
      );
      if (code === 0) confirmed.push(number);
      else if (!going) break;
    }
  })();
  return {
    confirmed: () => confirmed.length,
    async stop() {
      going = false;
      await done;
      return confirmed;
    },
  };
};
