// Attacks on a service, from outside, by callers of one tenant and on its database, for a run
// beside steady calls of a cloud (scenario/chaos, bench/chaos): one after the other. Each resolves
// at its height; what it holds open is ended by `ends`.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import pg from 'pg';
import { makeAuthority } from './authority.ts';
import { until } from './host.ts';
import { type PostgresServer, startPostgres } from './postgresql.ts';
import { flags, frame, frameTypes, headerBlock, preface, uint32 } from './raw-http2.ts';
import { type Site, startSite } from './site.ts';
import { createXksEndpoint, type XksEndpoint } from './xks-call.ts';

/** How a receiver of ours answers. */
type Manner = 'takes' | 'hangs' | 'drips' | 'never ends' | 'refuses';

export interface AttackedSite {
  readonly site: Site;
  readonly endpoint: XksEndpoint;
  readonly folder: string;
  /**
   * Sets how the sink and the webhook over HTTPS answer. `called`: how often they were called
   * since.
   */
  behave(manner: Manner): void;
  readonly called: () => number;
  readonly collector: { hang(): void; kill(): void; taken(): number };
  readonly auditor: string;
  /** Its database, where it is a server of its own. */
  readonly postgres: PostgresServer | undefined;
  /** What the attack has open. */
  readonly ends: (() => unknown)[];
  close(): Promise<void>;
}

/** A stranger's addresses, and the one of a balancer. */
const [strangers, balancer] = ['127.0.0.9', '127.0.0.3'] as const;
/** The name of the database on a PostgreSQL. */
const database = 'attacked';

const answerAs = (manner: Manner, response: ServerResponse): void => {
  if (manner === 'takes') response.end();
  if (manner === 'refuses') response.writeHead(422).end();
  if (manner === 'drips' || manner === 'never ends') {
    const part = Buffer.alloc(manner === 'drips' ? 1 : 65_536);
    const timer = setInterval(() => response.write(part), manner === 'drips' ? 200 : 5);
    response.once('close', () => clearInterval(timer));
  }
};

/** An HTTPS receiver and a syslog collector. */
const startReceivers = async (folder: string) => {
  const authority = makeAuthority(folder, 'receivers');
  const issued = authority.issue({ commonName: 'receiver', names: ['IP:127.0.0.1'], usage: 'serverAuth' });
  const tls = { cert: readFileSync(issued.certificate), key: readFileSync(issued.key) };
  let manner: Manner = 'takes';
  let called = 0;
  const receiver = createServer(tls, (request, response) => {
    called += 1;
    response.on('error', () => undefined);
    request.resume().once('end', () => answerAs(manner, response));
  });
  const raw = new Set<Socket>();
  let hangs = false;
  let taken = 0;
  const collector = createTlsServer(tls, (socket) => {
    socket.on('error', () => undefined);
    if (hangs) socket.pause();
    else socket.on('data', (bytes) => (taken += bytes.length));
  });
  collector.on('connection', (socket: Socket) => raw.add(socket.once('close', () => raw.delete(socket))));
  for (const server of [receiver, collector]) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  const kill = (): void => {
    for (const socket of raw) socket.resetAndDestroy();
  };
  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  return {
    authority: authority.certificate,
    url: `https://127.0.0.1:${portOf(receiver)}/`,
    collectorPort: portOf(collector),
    behave: (next: Manner) => {
      manner = next;
      called = 0;
    },
    called: () => called,
    collector: {
      hang: () => {
        hangs = true;
        kill();
      },
      kill: () => {
        hangs = false;
        kill();
      },
      taken: () => taken,
    },
    close: () => {
      kill();
      receiver.closeAllConnections();
      receiver.close();
      collector.close();
    },
  };
};

/** A database of its own, where one is asked for. */
const startStore = async (postgresql: boolean) => {
  if (!postgresql) return { postgres: undefined, store: '' };
  const postgres = await startPostgres();
  const { host, database: name, user } = postgres.createDatabase(database);
  const lines = ['[store]', 'type = "postgresql"', `host = "${host}"`, `database = "${name}"`, `user = "${user}"`];
  return { postgres, store: [...lines, 'replica_lag_seconds = 0', ''].join('\n') };
};

export const startAttackedSite = async ({
  program,
  environment,
  postgresql = false,
}: {
  readonly program?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** On a PostgreSQL of its own. */
  readonly postgresql?: boolean;
} = {}): Promise<AttackedSite> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-attacks-'));
  for (const name of ['root', 'snapshots', 'log', 'tls']) mkdirSync(join(folder, name), { mode: 0o700 });
  const place = (name: string): string => join(folder, name);
  const subject = ['-subj', '/CN=attacked', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', place('tls/tls.key')];
  execFileSync('openssl', ['req', '-x509', ...key, ...subject, '-days', '30', '-out', place('tls/tls.crt')], {
    stdio: 'pipe',
  });
  chmodSync(place('tls/tls.key'), 0o600);
  writeFileSync(place('secret'), 'a secret of a webhook', { mode: 0o600 });
  const receivers = await startReceivers(folder);
  const { url, authority } = receivers;
  const { postgres, store } = await startStore(postgresql);
  const site = await startSite({
    ...(program === undefined ? {} : { program }),
    ...(environment === undefined ? {} : { environment }),
    toml:
      `trusted_proxies = ["${balancer}"]\n[limits]\nconnections = 400\n[root]\npath = "${place('root/root.key')}"\n` +
      `[snapshots]\ndirectory = "${place('snapshots')}"\n[tls]\ncertificate = "${place('tls/tls.crt')}"\nkey = "${place('tls/tls.key')}"\n` +
      `[audit]\nsinks = [{ name = "file", type = "file", path = "${place('log/audit')}" }, ` +
      `{ name = "syslog", type = "syslog", host = "127.0.0.1", port = ${receivers.collectorPort}, ca = "${authority}" }, ` +
      `{ name = "lake", type = "https", url = "${url}", ca = "${authority}" }]\n` +
      `[notifications]\ntargets = [{ name = "hook", type = "webhook", url = "${url}", ca = "${authority}", secret_file = "${place('secret')}", allow_private = true }]\n${store}`,
  });
  // Callers have a copy: the disk of the other one will hang.
  const caFile = place('ca.crt');
  copyFileSync(place('tls/tls.crt'), caFile);
  const endpoint = await createXksEndpoint({ api: site.api, server: { url: site.server.url, caFile } }, 'attacked');
  const { secret } = await site.api.call<{ secret: string }>('POST', '/api/tokens', {
    name: 'auditor',
    grants: [{ role: 'auditor', scope: null }],
  });
  return {
    ...{ site, endpoint, folder, auditor: secret, postgres, ends: [] },
    ...{ behave: receivers.behave, called: receivers.called, collector: receivers.collector },
    close: async () => {
      await site.end();
      await postgres?.remove();
      receivers.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Resolves at the first of these; an error of the connection is one way to its end. */
const first = (...events: readonly (readonly [Socket, string])[]): Promise<void> =>
  new Promise((resolve) => {
    for (const [socket, event] of events) socket.once(event, () => resolve());
  });

// --- connections and requests of strangers
// --------------------------------------------------------------------------
const openSocket = async (on: AttackedSite, localAddress: string): Promise<Socket> => {
  const socket = connect({ port: on.site.server.port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  on.ends.push(() => socket.destroy());
  await first([socket, 'connect'], [socket, 'close']);
  return socket;
};
const openTls = async (
  on: AttackedSite,
  localAddress: string,
  alpn = 'http/1.1',
  proxied?: Buffer,
): Promise<TLSSocket> => {
  const raw = await openSocket(on, localAddress);
  if (proxied !== undefined) raw.write(proxied);
  const socket = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: [alpn] });
  socket.on('error', () => undefined);
  if (!raw.destroyed) await first([socket, 'secureConnect'], [raw, 'close']);
  return socket;
};
/**
 * One request over a connection of its own; resolves with the status at the end of the connection.
 */
const ask = async (
  socket: TLSSocket,
  line: string,
  headers: readonly string[],
  body: Buffer | string = '',
): Promise<number> => {
  let text = '';
  socket.on('data', (part: Buffer) => {
    if (text.length < 20) text += part.toString('latin1');
  });
  const head = [line, 'Host: here', 'Connection: close', `Content-Length: ${Buffer.byteLength(body)}`, ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(body);
  if (!socket.closed) await first([socket, 'close']);
  return Number(text.slice(9, 12));
};
const json = ['Content-Type: application/json'];
/** Does the work so many `times`, at most `atOnce` at the same time. */
const repeat = async (times: number, atOnce: number, work: (at: number) => Promise<unknown>): Promise<void> => {
  let at = 0;
  const one = async (): Promise<void> => {
    while (at < times) await work(at++);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
};
/** A header of the PROXY protocol, version 2, that names an IPv4 address as an IPv6 one. */
const proxyHeader = (last: number): Buffer =>
  Buffer.concat([
    Buffer.from('0d0a0d0a000d0a515549540a21210024', 'hex'),
    Buffer.from(`00000000000000000000ffffcb0071${last.toString(16).padStart(2, '0')}`, 'hex'),
    Buffer.from('00000000000000000000ffff7f000001', 'hex'),
    Buffer.from([0x80, 0x00, 0x01, 0xbb]),
  ]);
const signIn = (socket: TLSSocket): Promise<number> =>
  ask(socket, 'POST /api/session HTTP/1.1', json, JSON.stringify({ user: 'admin', password: 'a wrong password' }));
/** A file that hangs: a FIFO takes its place. Answers its repair. */
const hang = (path: string): (() => void) => {
  execFileSync('mkfifo', ['-m', '600', `${path}.fifo`]);
  if (existsSync(path)) renameSync(path, `${path}.whole`);
  renameSync(`${path}.fifo`, path);
  return () => {
    rmSync(path, { force: true });
    if (existsSync(`${path}.whole`)) renameSync(`${path}.whole`, path);
  };
};
const change = (on: AttackedSite, name: string): Promise<unknown> => on.site.api.send('POST', '/api/vaults', { name });
/** What auditors may read; only the status of an answer counts. */
const read = async (on: AttackedSite, path: string): Promise<number> =>
  ask(await openTls(on, '127.0.0.5'), `GET ${path} HTTP/1.1`, [`Authorization: Bearer ${on.auditor}`]);
const withReceiver =
  (manner: Manner) =>
  async (on: AttackedSite): Promise<void> => {
    on.behave(manner);
    on.ends.push(() => on.behave('takes'));
    await change(on, `received: ${manner}`);
    void on.site.api.send('POST', '/api/notifications/test').catch(() => undefined);
    await until(`a call of a receiver that ${manner}`, async () => (on.called() > 0 ? true : undefined));
  };

export const attacks: Readonly<Record<string, (on: AttackedSite) => Promise<unknown>>> = {
  'uploads over HTTP/2 that end abruptly': (on) =>
    repeat(300, 10, async () => {
      const socket = await openTls(on, strangers, 'h2');
      const headers = headerBlock([
        [':method', 'POST'],
        [':scheme', 'https'],
        [':authority', 'here'],
        [':path', '/api/vaults'],
      ]);
      socket.write(Buffer.concat([Buffer.from(preface), frame(frameTypes.settings, 0, 0)]));
      socket.write(frame(frameTypes.headers, flags.endHeaders, 1, headers));
      const padded = frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.from([200]), Buffer.alloc(10_000)]));
      await new Promise<void>((resolve) => socket.write(Buffer.concat([padded, padded]), () => resolve()));
      socket.destroy();
    }),
  'streams over HTTP/2 that are reset at once': (on) =>
    repeat(20, 5, async () => {
      const socket = await openTls(on, strangers, 'h2');
      const headers = headerBlock([
        [':method', 'GET'],
        [':scheme', 'https'],
        [':authority', 'here'],
        [':path', '/health'],
      ]);
      socket.write(Buffer.concat([Buffer.from(preface), frame(frameTypes.settings, 0, 0)]));
      for (let stream = 1; stream < 400 && !socket.destroyed; stream += 2)
        socket.write(
          Buffer.concat([
            frame(frameTypes.headers, flags.endHeaders | flags.endStream, stream, headers),
            frame(frameTypes.reset, 0, stream, uint32(8)),
          ]),
        );
      socket.destroy();
    }),
  'idle connections of one address': (on) => repeat(500, 20, () => openTls(on, strangers)),
  'handshakes that stop in their middle': (on) =>
    repeat(200, 20, async () => (await openSocket(on, strangers)).write(Buffer.from('16030100', 'hex'))),
  'answers that are never read': (on) =>
    repeat(20, 5, async () => {
      const socket = (await openTls(on, '127.0.0.8')).pause();
      socket.write('GET /api/openapi.json HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(50));
    }),
  'deeply nested and garbled bodies before a sign-in': (on) =>
    repeat(100, 5, async (at) => {
      const nested = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
      const body = at % 2 === 0 ? nested : '{"user":"a\\u0000","password":"b"}';
      await ask(await openTls(on, strangers), 'POST /api/session HTTP/1.1', json, body);
    }),
  'a flood of unsigned and wrongly signed calls': (on) =>
    repeat(500, 10, async () => {
      const { XksProxyUriPath: path } = on.endpoint.configuration;
      await ask(await openTls(on, strangers), `POST ${path}/health HTTP/1.1`, json, '{"requestMetadata":{}}');
    }),
  'wrong passwords': (on) => repeat(100, 5, async () => signIn(await openTls(on, strangers))),
  'wrong passwords behind a balancer that writes IPv4 addresses as IPv6': (on) =>
    repeat(100, 5, async (at) => signIn(await openTls(on, balancer, 'http/1.1', proxyHeader(at % 200)))),
  'paths with zero bytes': (on) =>
    repeat(50, 5, async () =>
      ask(await openTls(on, strangers), 'GET /api/vaults/a%00b HTTP/1.1', [`Authorization: Bearer ${on.auditor}`]),
    ),
  'imports of snapshots that are garbage, and that drip': async (on) => {
    const headers = [`Authorization: Bearer ${on.site.token}`, 'Content-Type: application/octet-stream'];
    await repeat(4, 2, async () =>
      ask(await openTls(on, strangers), 'POST /api/snapshot-imports HTTP/1.1', headers, Buffer.alloc(8_000_000, 7)),
    );
    for (let at = 0; at < 4; at += 1) {
      const socket = await openTls(on, strangers);
      const head = ['POST /api/snapshot-imports HTTP/1.1', 'Host: here', 'Transfer-Encoding: chunked', ...headers];
      socket.write(`${head.join('\r\n')}\r\n\r\n1\r\nx\r\n`);
    }
  },
  'expensive reads of an auditor': async (on) => {
    const from = encodeURIComponent('2026-01-01T00:00:00Z');
    await repeat(40, 8, (at) =>
      read(on, at % 2 === 0 ? `/api/requests/verification?from=${from}` : `/api/audit?from=${from}&limit=1000`),
    );
  },
  'exports of an auditor that are not read': (on) =>
    repeat(30, 10, async (at) => {
      const socket = (await openTls(on, '127.0.0.5')).pause();
      const path = at % 2 === 0 ? '/api/audit/export' : '/api/requests/export';
      socket.write(`GET ${path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer ${on.auditor}\r\n\r\n`);
    }),
  'diagnoses of an endpoint': (on) =>
    repeat(40, 10, () => on.site.api.send('POST', `/api/endpoints/${on.endpoint.endpoint.id}/diagnostics`, {})),
  'many changes of one tenant': (on) => repeat(200, 8, (at) => change(on, `change ${at}`)),
  'a receiver that hangs': withReceiver('hangs'),
  'a receiver that drips': withReceiver('drips'),
  'a receiver whose answer never ends': withReceiver('never ends'),
  'a receiver that refuses everything': withReceiver('refuses'),
  'a syslog collector that hangs and is killed': async (on) => {
    on.collector.hang();
    await repeat(20, 4, (at) => change(on, `hung ${at}`));
    on.collector.kill();
    const before = on.collector.taken();
    await change(on, 'killed');
    await until('the collector to be written to', async () => (on.collector.taken() > before ? true : undefined));
  },
  'disks of sink, snapshots, root key and certificate that hang': async (on) => {
    for (const name of ['log/audit', 'snapshots/folder', 'root/root.key.checkpoint.new', 'tls/tls.crt'])
      on.ends.push(hang(join(on.folder, name)));
    await change(on, 'hung disks');
    on.site.server.child.kill('SIGHUP');
    await on.site.api.send('POST', '/api/snapshots', {});
    await until('the sink', async () => (on.site.server.log().includes('a sink is unreachable') ? true : undefined));
  },
  'signals of a user of the host': async (on) => {
    for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) on.site.server.child.kill(signal);
  },
};

const databaseOf = ({ postgres }: AttackedSite): PostgresServer => {
  if (postgres === undefined) throw new Error('the site has no PostgreSQL of its own');
  return postgres;
};
/** Every connection to the service's database ends, but the one that says so. */
const cutConnections = (on: AttackedSite): Promise<string> =>
  databaseOf(on).ask(
    'postgres',
    `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${database}' and backend_type = 'client backend'`,
  );
/** Someone else's session locks tables; some changes wait or are refused in the meantime. */
const lock = async (on: AttackedSite, mode: string, ...tables: readonly string[]): Promise<void> => {
  const held = databaseOf(on).hold(database, `begin; lock table ${tables.join(', ')} in ${mode} mode`);
  on.ends.push(() => held.end());
  await held.ready;
  for (let at = 0; at < 8; at += 1) void change(on, `behind a lock ${at}`).catch(() => undefined);
  const waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
  await until('a change behind the lock', async () =>
    Number(await databaseOf(on).ask('postgres', waiting)) > 0 ? true : undefined,
  );
};
const untilChanged = (on: AttackedSite, name: string): Promise<true> =>
  until('a change', async () => {
    const answer = await on.site.api.send('POST', '/api/vaults', { name }).catch(() => undefined);
    return answer?.status === 201 ? true : undefined;
  });

/** Attacks of others who use the PostgreSQL of a site, and restarts of it. */
export const databaseAttacks: typeof attacks = {
  'a session that locks what every change writes': (on) => lock(on, 'exclusive', 'audit_head'),
  'a session that locks what is read': (on) =>
    lock(on, 'access exclusive', 'keys', 'vaults', 'endpoints', 'audit_events', 'request_log'),
  'connections to the database that are ended, again and again': (on) =>
    repeat(20, 1, async (at) => {
      await cutConnections(on);
      await Promise.all([
        on.site.api.send('POST', '/api/vaults', { name: `cut ${at}` }).catch(() => undefined),
        read(on, '/api/audit?limit=1000'),
      ]);
    }),
  'a database that takes no new connections': async (on) => {
    const set = (to: boolean): string =>
      databaseOf(on).run('postgres', `alter database ${database} with allow_connections ${to}`);
    set(false);
    on.ends.push(() => set(true));
    await cutConnections(on);
    await repeat(8, 4, (at) => change(on, `no connections ${at}`));
  },
  'others that take every place for connections': async (on) => {
    const others: pg.Client[] = [];
    on.ends.push(() => Promise.allSettled(others.map((each) => each.end())));
    const take = async (): Promise<boolean> => {
      const other = new pg.Client({ host: dirname(databaseOf(on).socket), user: 'dke', database: 'postgres' });
      other.on('error', () => undefined);
      return other.connect().then(
        () => others.push(other) > 0,
        () => false,
      );
    };
    while (await take());
    await repeat(20, 4, (at) => change(on, `no place ${at}`));
  },
  'a database that ends without notice and starts again': async (on) => {
    await databaseOf(on).stop('SIGQUIT');
    await repeat(8, 4, (at) => change(on, `no database ${at}`));
    await databaseOf(on).start();
    await untilChanged(on, 'after the crash of the database');
  },
  'a database that is restarted under changes': async (on) => {
    const restarted = databaseOf(on).restart();
    await repeat(40, 4, (at) =>
      on.site.api.send('POST', '/api/vaults', { name: `restart ${at}` }).catch(() => undefined),
    );
    await restarted;
    await untilChanged(on, 'after the restart of the database');
  },
};
