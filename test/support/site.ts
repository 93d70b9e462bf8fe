// A whole site for scenarios: the real server, its console API, and database hosts whose library
// starts the agent on its own. Everything lives in one folder; `end` stops every process that was
// started here, by its id, and removes the folder unless it was given.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IssuedAccessGuid } from '../../server/contract/api/tde-applications-routes.ts';
import { type ConsoleApi, openConsoleApi, writeProviderConfig } from './console-api.ts';
import { type Database, type DatabaseOptions, startDatabase } from './database.ts';
import { endProcess, processesWith } from './host.ts';
import { type ServerProcess, type ServerProcessOptions, startServerProcess } from './server-process.ts';

export interface Site {
  readonly folder: string;
  readonly socket: string;
  readonly logDirectory: string;
  readonly token: string;
  readonly server: ServerProcess;
  readonly api: ConsoleApi;
  /**
   * Writes a configuration of a registered application, or of an access_guid that was issued later.
   */
  config(name: string, issued: Pick<IssuedAccessGuid, 'config'>, extra?: string): string;
  /** A database process; not yet opened. */
  database(config: string, options?: Partial<DatabaseOptions>): Database;
  /** The agents that serve the site's socket. */
  agents(): readonly number[];
  /** Ends the server; `SIGTERM` by default. */
  stopServer(signal?: NodeJS.Signals): Promise<number | null>;
  /**
   * Starts the server again, at the same address with the same data; with other lines of dke.toml
   * when they are given.
   */
  startServer(toml?: string): Promise<void>;
  end(): Promise<void>;
}

export const startSite = async (options: Omit<ServerProcessOptions, 'port'> = {}): Promise<Site> => {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'dke-site-'));
  // The path of the socket identifies the agents of this site, because other sites may use the same
  // name.
  const socket = join(folder, 'agent.sock');
  const logDirectory = join(folder, 'log');
  const databases: Database[] = [];
  let server = await startServerProcess({ ...options, folder });
  const { adminToken: token, port } = server;
  const api = openConsoleApi(server, token);
  const agents = (): readonly number[] => processesWith(socket).map(([pid]) => pid);
  return {
    folder,
    socket,
    logDirectory,
    token,
    api,
    get server() {
      return server;
    },
    config: (name, issued, extra = '') =>
      writeProviderConfig(join(folder, `${name}.toml`), issued, {
        caFile: server.caFile,
        logDir: logDirectory,
        extra,
      }),
    database: (config, own = {}) => {
      const environment = { DKE_AGENT_LOG_DIR: logDirectory, ...own.environment };
      const database = startDatabase({ ...own, config, socket, environment });
      databases.push(database);
      return database;
    },
    agents,
    stopServer: (signal) => server.stop(signal),
    startServer: async (toml) => {
      server = await startServerProcess({ ...options, ...(toml === undefined ? {} : { toml }), folder, port });
    },
    async end() {
      for (const database of databases) await database.stop();
      for (const pid of agents()) await endProcess(pid);
      await server.stop();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
};
