// Several real servers on one PostgreSQL, as one installation: one root key, one certificate, a TCP
// balancer in front. Everything runs on this host, in one folder, and is stopped by its id.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Node } from '../../server/contract/api/nodes-routes.ts';
import type { IssuedAccessGuid } from '../../server/contract/api/tde-applications-routes.ts';
import { type ConsoleApi, openConsoleApi, writeProviderConfig } from './console-api.ts';
import { type Database, startDatabase } from './database.ts';
import { type DatabaseRelay, openDatabaseRelay } from './database-relay.ts';
import { endProcess, killProcess, processesWith, until } from './host.ts';
import { openPostgresGate, type PostgresGate } from './postgres-gate.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from './postgresql.ts';
import { ServerEnded, type ServerProcess, startServerProcess } from './server-process.ts';

export interface FleetMember {
  readonly name: string;
  readonly folder: string;
  readonly server: ServerProcess;
  /** Between this node and the database, where there is no relay. */
  readonly gate: PostgresGate;
  /** Straight to this node. */
  readonly api: ConsoleApi;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Starts it again, at the same address. */
  start(): Promise<void>;
}

export interface Balancer {
  readonly port: number;
  /** Where new connections go, by port. */
  use(ports: readonly number[]): void;
  close(): Promise<void>;
}

/** Distributes connections in turn; a connection that fails goes to the next node. */
export const startBalancer = async (): Promise<Balancer> => {
  let targets: readonly number[] = [];
  let turn = 0;
  const open = new Set<Socket>();
  const server: Server = createServer((front) => {
    open.add(front);
    front.on('close', () => open.delete(front)).on('error', () => front.destroy());
    const order = targets.map((_, at) => targets[(turn + at) % targets.length] ?? 0);
    turn += 1;
    const attempt = (): void => {
      const port = order.shift();
      if (port === undefined) {
        front.destroy();
        return;
      }
      const back = connect(port, '127.0.0.1');
      open.add(back);
      back.on('close', () => open.delete(back));
      back.once('error', attempt);
      back.once('connect', () => {
        back.off('error', attempt);
        // A port without a listener can be given to this very connection, which then meets itself.
        if (back.localPort === port) {
          back.on('error', () => undefined).destroy();
          attempt();
          return;
        }
        back.on('error', () => front.destroy()).on('close', () => front.destroy());
        front.on('close', () => back.destroy());
        front.pipe(back).pipe(front);
      });
    };
    attempt();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    use: (ports) => {
      targets = ports;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
};

export interface TestFleet {
  readonly folder: string;
  readonly postgres: PostgresServer;
  /** Between the nodes and the database, on request. */
  readonly relay: DatabaseRelay;
  readonly place: PostgresPlace;
  readonly balancer: Balancer;
  readonly members: readonly FleetMember[];
  readonly token: string;
  /** The file with the certificate that all nodes serve. */
  readonly caFile: string;
  member(name: string): FleetMember;
  /** The nodes as one of them sees them. */
  nodes(from: FleetMember): Promise<readonly Node[]>;
  /**
   * A database process of a registered application, behind the balancer or behind what listens on
   * `port`.
   */
  database(name: string, issued: Pick<IssuedAccessGuid, 'config'>, extra?: string, port?: number): Database;
  end(): Promise<void>;
}

/** No server of the fleet is started: it has ended. */
export class FleetOver extends Error {
  override readonly name = 'FleetOver';
}

export const startFleet = async (
  names: readonly string[],
  options: {
    readonly toml?: string;
    /** More lines of [store]. */
    readonly store?: string;
    readonly publicUrl?: string;
    readonly databaseEnvironment?: NodeJS.ProcessEnv;
    readonly environmentOf?: (name: string) => NodeJS.ProcessEnv;
    /** Nodes reach the database through a relay. */
    readonly relay?: boolean;
    /** Nothing is between the nodes and the database: for measurements. */
    readonly direct?: boolean;
    /** `name=value` of postgresql.conf. */
    readonly settings?: readonly string[];
    /** Makes the database, and the role that the nodes have. */
    readonly prepare?: (postgres: PostgresServer) => PostgresPlace;
    /**
     * Kills every process of the fleet: one that hangs would hold its end up. None is started
     * afterwards.
     */
    readonly broken?: AbortSignal;
  } = {},
): Promise<TestFleet> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-fleet-'));
  const postgres = await startPostgres({
    environment: options.databaseEnvironment ?? {},
    settings: options.settings ?? [],
  });
  const place = (options.prepare ?? ((server) => server.createDatabase('dke')))(postgres);
  const relay = await openDatabaseRelay(postgres.socket);
  const balancer = await startBalancer();
  const members: (FleetMember & { server: ServerProcess; api: ConsoleApi })[] = [];
  const databases: Database[] = [];
  const socket = join(folder, 'agent.sock');
  let token = '';
  const [first] = names;
  let isOver = false;
  const killAll = (): void => {
    isOver = true;
    for (const [pid] of processesWith(`${folder}/`)) killProcess(pid);
  };
  options.broken?.addEventListener('abort', killAll);
  const end = async (): Promise<void> => {
    isOver = true;
    for (const database of databases) await database.stop();
    for (const [pid] of processesWith(socket)) await endProcess(pid);
    for (const { server, gate } of members) {
      await server.stop();
      await gate.close();
    }
    // Servers that were being started again.
    killAll();
    await balancer.close();
    await relay.close();
    await postgres.remove();
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const name of names) {
      const own = join(folder, name);
      mkdirSync(join(own, 'dke-data'), { recursive: true, mode: 0o700 });
      if (name !== first)
        for (const file of ['root.key', 'tls.crt', 'tls.key'])
          copyFileSync(join(folder, first ?? '', 'dke-data', file), join(own, 'dke-data', file));
      const gate = await openPostgresGate(join(own, 'gate'), place.host);
      const host = options.direct === true ? place.host : gate.host;
      const { host: databaseHost, port: databasePort } = options.relay === true ? relay : { host, port: place.port };
      const toml =
        `${options.toml ?? '[erasure]\ngather_ms = 20\n'}[node]\nname = "${name}"\n[store]\ntype = "postgresql"\n` +
        `host = "${databaseHost}"\nport = ${databasePort}\ndatabase = "${place.database}"\nuser = "${place.user}"\nreplica_lag_seconds = 0\n${options.store ?? ''}`;
      const start = async (port?: number): Promise<ServerProcess> => {
        if (isOver) throw new FleetOver();
        return startServerProcess({
          folder: own,
          toml,
          environment: options.environmentOf?.(name) ?? {},
          ...(port === undefined ? {} : { port }),
          ...(options.publicUrl === undefined ? {} : { publicUrl: options.publicUrl }),
        });
      };
      const server = await start();
      token ||= server.adminToken;
      const member = {
        name,
        folder: own,
        server,
        gate,
        api: openConsoleApi(server, token),
        stop: (signal?: NodeJS.Signals) => member.server.stop(signal),
        start: async () => {
          const { port } = member.server;
          member.server = await until('its port to be free', () =>
            start(port).catch((error: unknown) => {
              // Connections of others have ports, too.
              if (error instanceof ServerEnded && error.message.includes('EADDRINUSE')) return undefined;
              throw error;
            }),
          );
        },
      };
      members.push(member);
    }
  } catch (error) {
    await end();
    throw error;
  }
  balancer.use(members.map(({ server }) => server.port));
  return {
    folder,
    postgres,
    relay,
    place,
    balancer,
    members,
    token,
    caFile: members[0]?.server.caFile ?? '',
    member: (name) => {
      const found = members.find((one) => one.name === name);
      if (found === undefined) throw new Error(`no node is called ${name}`);
      return found;
    },
    nodes: async (from) => (await from.api.call<{ items: Node[] }>('GET', '/api/nodes')).items,
    database: (name, issued, extra = '', port = balancer.port) => {
      const { origin } = new URL(issued.config.server_url);
      const behind = JSON.parse(
        JSON.stringify(issued).replaceAll(origin, `https://127.0.0.1:${port}`),
      ) as typeof issued;
      const logDir = join(folder, 'log');
      const config = writeProviderConfig(join(folder, `${name}.toml`), behind, {
        caFile: members[0]?.server.caFile ?? '',
        logDir,
        extra,
      });
      const database = startDatabase({ config, socket, environment: { DKE_AGENT_LOG_DIR: logDir } });
      databases.push(database);
      return database;
    },
    end,
  };
};

/**
 * Waits until every node shows every change. On a busy machine, an answer can be earlier and then
 * names the other nodes.
 */
export const untilShown = (fleet: TestFleet, from: FleetMember): Promise<boolean> =>
  until('every change on every node', async () =>
    (await fleet.nodes(from)).every(({ behind }) => behind === 0) ? true : undefined,
  );

/** Waits until the first node has each of these. */
export const untilActive = (fleet: TestFleet, from: FleetMember, names: readonly string[]): Promise<boolean> =>
  until('the nodes to be known', async () => {
    const nodes = await fleet.nodes(from);
    return names.every((name) => nodes.some((node) => node.name === name && node.state === 'active'))
      ? true
      : undefined;
  });
