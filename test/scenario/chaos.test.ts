// Attacks from outside, one after the other, beside steady calls of a cloud: none of them fails, and what an attack has opened is released. Each state is one in
// which the service is then stopped.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { Agent } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { until } from '../support/host.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-chaos-'));
let site: Site | undefined;
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await site?.end();
  site = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const openTls = async (here: Site, localAddress: string): Promise<TLSSocket> => {
  const raw = connect({ port: here.server.port, host: '127.0.0.1', localAddress });
  raw.on('error', () => undefined);
  await once(raw, 'connect');
  const socket = connectTls({ socket: raw, rejectUnauthorized: false });
  socket.on('error', () => undefined);
  ends.push(() => raw.destroy());
  await Promise.race([once(socket, 'secureConnect'), once(raw, 'close')]);
  return socket;
};
const post = async (here: Site, path: string, type: string, body: Buffer): Promise<void> => {
  await fetchRaw(await openTls(here, '127.0.0.9'), path, type, body);
};
const fetchRaw = async (socket: TLSSocket, path: string, type: string, body: Buffer): Promise<void> => {
  socket.resume();
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  if (!socket.closed) await once(socket, 'close');
};

const attacks: Readonly<Record<string, (here: Site) => Promise<void>>> = {
  'idle connections of one address': async (here) => {
    for (let made = 0; made < 300; made += 20)
      await Promise.all(Array.from({ length: 20 }, () => openTls(here, '127.0.0.9')));
  },
  'answers that are never read': async (here) => {
    for (let made = 0; made < 20; made += 1) {
      const socket = await openTls(here, '127.0.0.8');
      socket.pause();
      for (let asked = 0; asked < 50; asked += 1) socket.write('GET /api/openapi.json HTTP/1.1\r\nHost: here\r\n\r\n');
    }
  },
  'uploads over HTTP/2 that end abruptly': async (here) => {
    for (let made = 0; made < 50; made += 1) {
      const session = connectHttp2(here.server.url, { rejectUnauthorized: false });
      session.on('error', () => undefined);
      const stream = session.request({ ':method': 'POST', ':path': '/api/vaults' });
      stream.on('error', () => undefined);
      stream.write(Buffer.alloc(10_000));
      await once(session, 'connect');
      session.destroy();
    }
  },
  'deeply nested and garbled bodies before a sign-in': async (here) => {
    const nested = Buffer.from(`${'['.repeat(30_000)}${']'.repeat(30_000)}`);
    for (let sent = 0; sent < 30; sent += 1) {
      await post(here, '/api/session/password', 'application/json', nested);
      await post(here, '/api/session/password', 'application/json', Buffer.from('{"name":"a\\u0000"}'));
    }
  },
  'a disk that hangs': async () => {
    for (const name of ['mark', 'draft'] as const) {
      const path = { mark: join(folder, 'snapshots/folder'), draft: join(folder, 'root/root.key.checkpoint.new') }[
        name
      ];
      if (name === 'mark') renameSync(path, `${path}.whole`);
      execFileSync('mkfifo', ['-m', '600', path]);
    }
  },
};

const start = async (): Promise<{ readonly here: Site; readonly endpoint: XksEndpoint }> => {
  for (const name of ['root', 'snapshots']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  const here = await startSite({
    toml:
      `[root]\npath = "${join(folder, 'root/root.key')}"\n[snapshots]\ndirectory = "${join(folder, 'snapshots')}"\n` +
      '[limits]\nconnections = 200\n',
  });
  site = here;
  return { here, endpoint: await createXksEndpoint(here, 'chaos') };
};
const sockets = (here: Site): number =>
  readdirSync(`/proc/${here.server.child.pid}/fd`).filter((name) => {
    try {
      return readlinkSync(`/proc/${here.server.child.pid}/fd/${name}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;

test('no attack lets a call of the cloud fail, or keeps what it has opened; and the service stops in the last state', async () => {
  const { here, endpoint } = await start();
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  ends.push(() => agent.destroy());
  const call = async (): Promise<number> =>
    (
      await callXks(
        { server: here.server, configuration: endpoint.configuration },
        {
          agent,
          target: `/keys/${endpoint.endpoint.keyId}/encrypt`,
          body: { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
        },
      )
    ).status;
  const statuses = new Map<number | string, number>();
  let isOver = false;
  const callers = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const status = await call().catch((error: Error) => error.message);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  const before = sockets(here);
  for (const [name, attack] of Object.entries(attacks)) {
    const made = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    await attack(here);
    // Many calls during the attack and after it.
    await until(`calls beside ${name}`, async () =>
      [...statuses.values()].reduce((sum, count) => sum + count, 0) > made + 200 ? true : undefined,
    );
    expect([name, [...statuses.keys()]]).toEqual([name, [200]]);
    for (const end of ends.splice(1)) end();
    await until(`the end of ${name}`, async () => (sockets(here) <= before + 8 ? true : undefined));
  }
  expect((await here.api.send('GET', '/health')).status).toBe(200);
  isOver = true;
  await Promise.all(callers);
  expect(await here.server.stop()).toBe(0);
});
