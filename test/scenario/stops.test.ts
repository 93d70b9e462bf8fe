// A server ends after SIGTERM, by its own doing, whatever it is about and whatever does not answer:
// in good order, or with exit code 5 where what it waits for never comes
// (server/app/end-in-time.ts). The run prints the times (support/stops.ts).
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { openConsoleApi } from '../support/console-api.ts';
import { openDatabaseRelay } from '../support/database-relay.ts';
import { processesWith, until } from '../support/host.ts';
import { makeHungDisk } from '../support/hung-disk.ts';
import { startPostgres } from '../support/postgresql.ts';
import { connectRaw } from '../support/raw-tls.ts';
import { ServerEnded, type ServerProcess, startServerProcess } from '../support/server-process.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-stops-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
const start = async (options: Parameters<typeof startServerProcess>[0] = {}): Promise<ServerProcess> => {
  const server = await startServerProcess({ ...options, folder: options.folder ?? newFolder() });
  undo.push(() => server.stop('SIGKILL'));
  return server;
};
const apiOf = (server: ServerProcess, token = server.adminToken) => openConsoleApi(server, token);
const createVault = (server: ServerProcess): Promise<unknown> =>
  apiOf(server)
    .send('POST', '/api/vaults', { name: 'one' })
    .catch(() => undefined);
/** What accepts connections and says nothing. */
const listenSilently = async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, sockets };
};
const onPostgres = async () => {
  const postgres = await startPostgres();
  undo.push(() => postgres.remove());
  const { database } = postgres.createDatabase('dke');
  const relay = await openDatabaseRelay(postgres.socket);
  undo.push(() => relay.close());
  const toml = `[store]\ntype = "postgresql"\nhost = "${relay.host}"\nport = ${relay.port}\ndatabase = "${database}"\n`;
  return { postgres, relay, toml };
};

type State = readonly [exitCode: number, enter: () => Promise<ServerProcess>];
const states: Readonly<Record<string, State>> = {
  idle: [0, () => start()],
  'the disk of the data directory hangs': [
    5,
    async () => {
      const disk = makeHungDisk();
      undo.push(
        () => disk.remove(),
        () => disk.goOn(),
      );
      const server = await start({ environment: disk.environment });
      disk.hang();
      void createVault(server);
      await disk.reached();
      return server;
    },
  ],
  'the database server has ended': [
    5,
    async () => {
      const { postgres, toml } = await onPostgres();
      const server = await start({ toml });
      await postgres.stop('SIGQUIT');
      return server;
    },
  ],
  'a change waits for a database server that does not answer': [
    5,
    async () => {
      const { relay, toml } = await onPostgres();
      const server = await start({ toml });
      relay.swallow();
      void createVault(server);
      await until('the change', async () => (relay.swallowed() > 2 ? true : undefined));
      return server;
    },
  ],
  'sealed, as no provider opens the root key': [
    0,
    async () => {
      const folder = newFolder();
      const passphrase = join(folder, 'passphrase');
      writeFileSync(passphrase, 'correct horse battery staple\n', { mode: 0o600 });
      const options = {
        folder,
        toml: `[root]\nproviders = [{ name = "people", type = "passphrase", file = "${passphrase}" }]\n`,
      };
      await (await start(options)).stop();
      rmSync(passphrase);
      return start(options);
    },
  ],
  'in quarantine': [
    0,
    async () => {
      const folder = newFolder();
      const first = await start({ folder });
      const token = first.adminToken;
      await first.stop();
      cpSync(first.dataDirectory, join(folder, 'older'), { recursive: true });
      const second = await start({ folder });
      expect((await apiOf(second, token).send('GET', '/api/audit/export')).status).toBe(200);
      await second.stop();
      for (const name of ['dke.db', 'dke.db-wal', 'dke.db-shm', 'dke.db.committed'])
        rmSync(join(second.dataDirectory, name), { force: true });
      cpSync(join(folder, 'older/dke.db'), join(second.dataDirectory, 'dke.db'));
      const third = await start({ folder });
      expect(third.output()).toContain('quarantine confirmation code');
      return third;
    },
  ],
  'sinks, targets and the receiver of traces do not answer': [
    0,
    async () => {
      const { port, sockets } = await listenSilently();
      const folder = newFolder();
      const secret = join(folder, 'secret');
      writeFileSync(secret, 'a secret of a webhook', { mode: 0o600 });
      const url = `https://127.0.0.1:${port}/`;
      const server = await start({
        folder,
        toml:
          `[audit]\nsinks = [{ name = "s", type = "syslog", host = "127.0.0.1", port = ${port} }, { name = "h", type = "https", url = "${url}" }]\n` +
          `[notifications]\ntargets = [{ name = "w", type = "webhook", url = "${url}", secret_file = "${secret}", allow_private = true }]\n` +
          `[telemetry]\nendpoint = "${url}"\n`,
      });
      await createVault(server);
      await until('the receivers', async () => (sockets.length >= 3 ? true : undefined));
      return server;
    },
  ],
  'the disks of sink, snapshots and root key hang': [
    0,
    async () => {
      const folder = newFolder();
      for (const name of ['root', 'snapshots', 'log']) mkdirSync(join(folder, name), { mode: 0o700 });
      const server = await start({
        folder,
        toml:
          `[root]\npath = "${join(folder, 'root/root.key')}"\n[snapshots]\ndirectory = "${join(folder, 'snapshots')}"\n` +
          `[audit]\nsinks = [{ name = "f", type = "file", path = "${join(folder, 'log/audit')}" }]\n`,
      });
      for (const path of ['snapshots/folder', 'log/audit', 'root/root.key.checkpoint.new']) {
        const place = join(folder, path);
        execFileSync('mkfifo', ['-m', '600', `${place}.fifo`]);
        renameSync(`${place}.fifo`, place);
      }
      await createVault(server);
      void apiOf(server)
        .send('POST', '/api/snapshots', {})
        .catch(() => undefined);
      await until('the sink', async () => (server.log().includes('a sink is unreachable') ? true : undefined));
      return server;
    },
  ],
  'an erasure run is under way': [
    0,
    async () => {
      const server = await start();
      const api = apiOf(server);
      const vault = await api.call<{ readonly id: string }>('POST', '/api/vaults', { name: 'many keys' });
      for (let at = 0; at < 300; at += 1) await api.call('POST', '/api/keys', { name: `key ${at}`, vaultId: vault.id });
      await api.call('POST', '/api/root/rotate', {});
      const state = async () =>
        (await api.call<{ readonly erasure: { readonly state: string } }>('GET', '/api/status')).erasure.state;
      await until('the run', async () => ((await state()) === 'running' ? true : undefined));
      return server;
    },
  ],
  'requests, uploads and answers are under way, and connections idle': [
    0,
    async () => {
      const server = await start();
      const head = `Host: here\r\nAuthorization: Bearer ${server.adminToken}\r\n`;
      const requests = [
        '',
        'GET /api/openapi.json HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(50),
        `POST /api/vaults HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
        `POST /api/snapshot-imports HTTP/1.1\r\n${head}Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n`,
      ];
      for (const request of requests) {
        const socket = (await connectRaw(server, 'http/1.1')).pause();
        undo.push(() => socket.destroy());
        socket.write(request);
      }
      const session = await connectRaw(server, 'h2');
      undo.push(() => session.destroy());
      return server;
    },
  ],
};

test.each(Object.entries(states))('%s', async (_, [exitCode, enter]) => {
  const server = await enter();
  expect([await server.stop(), server.child.signalCode], server.log()).toEqual([exitCode, null]);
});

test('a start that waits for its database', async () => {
  const { postgres, toml } = await onPostgres();
  const folder = newFolder();
  const first = await start({ folder, toml });
  await first.stop();
  postgres.run('postgres', 'alter database dke with allow_connections false');
  const started = startServerProcess({ folder, toml }).catch((error: unknown) => error);
  const pid = await until('the process', async () => processesWith(join(folder, 'dke.toml'))[0]?.[0]);
  // Before that, the signal is Node's own.
  await until('its first connection', async () =>
    postgres.printed().includes('not currently accepting') ? true : undefined,
  );
  process.kill(pid, 'SIGTERM');
  const ended = await started;
  expect(ended).toBeInstanceOf(ServerEnded);
  expect((ended as ServerEnded).exitCode).toBe(0);
});
