// How the real server starts, refuses to start, and stops. Every refusal has its exit code and one
// line that helps, and changes nothing that was there.
import { X509Certificate } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { lockDirectory } from '../../server/adapters/store/engine/sqlite/lock.ts';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { startDaemon } from '../support/daemon.ts';
import { folderOfTest } from '../support/folders.ts';
import { until } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { startSpoilt, usedFolder } from '../support/spoilt-server.ts';
import { installed } from '../support/tools.ts';

const started: ServerProcess[] = [];
const start = async (...options: Parameters<typeof startServerProcess>): Promise<ServerProcess> => {
  const server = await startServerProcess(...options);
  started.push(server);
  return server;
};
afterEach(async () => {
  for (const server of started.splice(0)) await server.remove();
});

const get = (server: ServerProcess, path: string): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const request = httpsRequest(
      `${server.url}${path}`,
      { ca: readFileSync(server.caFile), agent: false },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    request.on('error', reject).end();
  });

test.skipIf(!installed('python3', 'python3'))(
  'tells systemd when it serves also where others fill its queue',
  async () => {
    const folder = folderOfTest();
    const socket = join(folder, 'notify');
    const receiver = await startDaemon(
      'python3',
      [
        '-c',
        `import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
others = []
while True:
  others.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
  others[-1].setblocking(False)
  sent = 0
  try:
    while True:
      others[-1].sendto(b"noise", sys.argv[1])
      sent += 1
  except BlockingIOError:
    if sent == 0: break
print("full", flush=True)
while not os.path.exists(sys.argv[1] + ".go"): time.sleep(0.01)
while True: print(s.recv(4096).decode(), flush=True)`,
        socket,
      ],
      { folder, ready: /full/ },
    );
    try {
      const server = await start({ environment: { NOTIFY_SOCKET: socket } });
      await get(server, '/health');
      expect(receiver.printed()).not.toContain('READY');
      writeFileSync(`${socket}.go`, '');
      await until('READY=1', async () => (receiver.printed().includes('READY=1\nSTATUS=listening') ? true : undefined));
      expect(await server.stop()).toBe(0);
    } finally {
      await receiver.stop();
    }
  },
);

test.skipIf(!installed('python3', 'python3'))('tells systemd when it serves, and when it stops', async () => {
  const folder = folderOfTest();
  const socket = join(folder, 'notify');
  // Unix datagrams, which Node does not have.
  const receiver = await startDaemon(
    'python3',
    [
      '-c',
      'import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.bind(sys.argv[1])\nprint("bound", flush=True)\nwhile True: print(s.recv(4096).decode(), flush=True)',
      socket,
    ],
    { folder, ready: /bound/ },
  );
  try {
    const server = await start({ environment: { NOTIFY_SOCKET: socket } });
    await until('READY=1', async () =>
      receiver.printed().includes(`READY=1\nSTATUS=listening on ${server.url}`) ? true : undefined,
    );
    expect(receiver.printed()).not.toContain('STOPPING');
    expect(await server.stop()).toBe(0);
    await until('STOPPING=1', async () => (receiver.printed().includes('STOPPING=1\n') ? true : undefined));
  } finally {
    await receiver.stop();
  }
});

describe('the first start', () => {
  test('makes data, root key and certificate for the service alone, and shows one administrator token', async () => {
    const server = await start();
    expect(server.adminToken).toMatch(/^dket_/);
    const mode = (name: string) => (statSync(join(server.dataDirectory, name)).mode & 0o777).toString(8);
    expect(mode('.')).toBe('700');
    expect(mode('root.key')).toBe('400');
    expect(mode('tls.key')).toBe('600');
    expect(mode('dke.db')).toBe('600');
    // While it runs: the database's side files contain the same data as the database.
    const names = readdirSync(server.dataDirectory);
    expect(names).toContain('dke.db-wal');
    for (const name of names) expect(statSync(join(server.dataDirectory, name)).mode & 0o077, name).toBe(0);
    expect(await get(server, '/health')).toEqual({ status: 200, body: '{"status":"healthy"}' });
    expect(await server.stop()).toBe(0);
  });

  test('writes the token to no file and no log, and the next start shows none', async () => {
    const server = await start();
    await server.stop();
    const files = readdirSync(server.dataDirectory, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    expect(files.map(({ name }) => name)).toContain('dke.db');
    for (const { parentPath, name } of files)
      expect(readFileSync(join(parentPath, name)).includes(server.adminToken), name).toBe(false);
    expect(server.log()).not.toContain(server.adminToken);
    const again = await start({ folder: server.folder });
    expect(again.adminToken).toBe('');
    expect(await get(again, '/health')).toMatchObject({ status: 200 });
  });
});

test('an operator of the host makes an administrator token while the service is stopped', async () => {
  const server = await start();
  const command = (...more: readonly string[]) =>
    runCommand(['-o', 'json', 'server', 'new-administrator', '--config', join(server.folder, 'dke.toml'), ...more], {
      cwd: server.folder,
    });
  const running = await command();
  expect([running.code, running.stdout]).toEqual([expect.any(Number), '']);
  expect(running.code).not.toBe(0);
  await server.stop();
  const file = join(server.folder, 'administrator.token');
  const made = await command('--out', file);
  expect([made.code, made.stderr]).toEqual([0, '']);
  expect(Date.parse((JSON.parse(made.stdout) as { expiresAt: string }).expiresAt)).toBeGreaterThan(Date.now());
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const again = await start({ folder: server.folder });
  const api = openConsoleApi(again, readFileSync(file, 'utf8').trim());
  expect(await api.call('GET', '/health')).toEqual({ status: 'healthy' });
  const [record] = await api.audit('kind=administrator.recovered');
  expect(record).toMatchObject({ actorName: expect.stringContaining("of the service's host") });
  // All administrators hear of it, within a minute of the start.
  const inbox = () =>
    api.call<{ items: { severity: string; text: string }[] }>('GET', '/api/notifications?kind=administrator.recovered');
  await expect
    .poll(async () => (await inbox()).items)
    .toMatchObject([{ severity: 'critical', text: expect.stringContaining("of the service's host") as unknown }]);
  // The token expires: it does not replace the one that does not.
  const { items } = await api.call<{ items: { id: string; expiresAt: string | null }[] }>('GET', '/api/tokens');
  const lasting = items.find(({ expiresAt }) => expiresAt === null);
  const refused = await api.send('DELETE', `/api/tokens/${lasting?.id}`);
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('does not expire')]);
  await api.call('POST', '/api/tokens', {
    name: 'next',
    grants: [{ role: 'administrator', scope: null, tenantId: null }],
  });
  expect((await api.send('DELETE', `/api/tokens/${lasting?.id}`)).status).toBe(200);
  const own = items.find(({ expiresAt }) => expiresAt !== null);
  expect((await api.send('DELETE', `/api/tokens/${own?.id}`)).status).toBe(200);
});

test('a start that has lost the self-signed certificate creates another one, and says what clients need', async () => {
  const server = await start();
  const api = () => openConsoleApi(server, server.adminToken);
  expect(await api().audit('kind=tls.certificate-created')).toEqual([]);
  await server.stop();
  const [certificate, key] = ['tls.crt', 'tls.key'].map((name) => join(server.dataDirectory, name)) as [string, string];
  const formerKey = readFileSync(key);
  rmSync(certificate);
  const again = await start({ folder: server.folder });
  const fingerprint = new X509Certificate(readFileSync(again.caFile)).fingerprint256;
  const warned = again
    .log()
    .split('\n')
    .find((line) => line.includes('clients that trust the former one refuse it'));
  expect(JSON.parse(warned ?? '{}')).toMatchObject({ level: 40, fingerprint });
  expect(readFileSync(`${key}.former`).equals(formerKey)).toBe(true);
  const now = openConsoleApi(again, server.adminToken);
  expect(await now.audit('kind=tls.certificate-created')).toMatchObject([{ details: { fingerprint } }]);
  const inbox = () =>
    now.call<{ items: { severity: string; text: string }[] }>('GET', '/api/notifications?kind=tls.certificate-created');
  await expect.poll(async () => (await inbox()).items).toMatchObject([{ severity: 'high' }]);
  // The next start finds it without a message.
  await again.stop();
  const third = await start({ folder: server.folder });
  expect(third.log()).not.toContain('refuse it');
});

describe('a server that cannot start', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await usedFolder();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const attempt = (spoil: (data: string, copy: string) => void, toml?: string, through: readonly string[] = []) =>
    startSpoilt(folder, spoil, { through, ...(toml === undefined ? {} : { toml }) });

  test('because the configuration has an unknown field: 2', async () => {
    const { code, message, changed } = await attempt(() => undefined, '[limits]\nspeed = 9\n');
    expect({ code, changed }).toEqual({ code: 2, changed: [] });
    expect(message).toContain('unknown field limits.speed');
  });

  test('because others may read the root key: 3', async () => {
    const { code, message, changed } = await attempt((data) => chmodSync(join(data, 'root.key'), 0o444));
    expect({ code, changed }).toEqual({ code: 3, changed: [] });
    expect(message).toContain('root.key');
  });

  test('because others may enter the data directory: 3', async () => {
    const { code, message } = await attempt((data) => chmodSync(data, 0o755));
    expect(code).toBe(3);
    expect(message).toContain('mode 700');
  });

  test('because the certificate is not there: 3', async () => {
    const { code, message } = await attempt(
      (_data, copy) => writeFileSync(join(copy, 'k.pem'), 'x', { mode: 0o600 }),
      '[tls]\ncertificate = "none.pem"\nkey = "k.pem"\n',
    );
    expect(code).toBe(3);
    expect(message).toContain('none.pem');
  });

  test('because the certificate is none: 2', async () => {
    const { code, message } = await attempt((_data, copy) => {
      writeFileSync(join(copy, 'c.pem'), 'not a certificate', { mode: 0o644 });
      writeFileSync(join(copy, 'k.pem'), 'not a key', { mode: 0o600 });
    }, '[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n');
    expect(code).toBe(2);
    expect(message).toContain('[tls]');
  });

  test('because the port is in use: 4', async () => {
    const squatter = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => {
      squatter.once('listening', resolve);
    });
    const { port } = squatter.address() as AddressInfo;
    try {
      const refused = startServerProcess({ port });
      await expect(refused).rejects.toMatchObject({ exitCode: 4, message: expect.stringContaining(`port ${port}`) });
      // The token is created once: the next start shows none.
      const own = mkdtempSync(join(tmpdir(), 'dke-port-'));
      const file = join(own, 'token');
      writeFileSync(join(own, 'dke.toml'), `[server]\nhost = "127.0.0.1"\nport = ${port}\n`);
      const { code } = await runCommand(['server', '--config', 'dke.toml', '--token-out', file], { cwd: own });
      expect([code, readFileSync(file, 'utf8')]).toEqual([4, expect.stringMatching(/^dket_\S+\n$/)]);
      rmSync(own, { recursive: true });
    } finally {
      squatter.close();
    }
  });

  test.each([
    [
      'text instead of a database',
      (path: string) => writeFileSync(path, 'these are not the bytes you look for, they are text'.repeat(4)),
    ],
    ['a cut-off database', (path: string) => truncateSync(path, Math.floor(statSync(path).size / 2))],
    [
      'a database with damaged pages',
      (path: string) => {
        const bytes = readFileSync(path);
        bytes.fill(0xa5, 4096, Math.min(bytes.length, 40_960));
        writeFileSync(path, bytes);
      },
    ],
    ['a few bytes', (path: string) => writeFileSync(path, 'SQLite')],
  ])('because of %s: 5', async (_what, spoil) => {
    const { code, message, changed } = await attempt((data) => spoil(join(data, 'dke.db')));
    expect({ code, changed }).toEqual({ code: 5, changed: [] });
    expect(message).toMatch(/nothing was changed/);
  });

  test('because another server uses the data directory: 5', async () => {
    const server = await start();
    const second = startServerProcess({ folder: server.folder });
    await expect(second).rejects.toMatchObject({ exitCode: 5, message: expect.stringContaining('another server') });
    expect(await get(server, '/health')).toMatchObject({ status: 200 });
  });

  test('because another process has the data directory, before a database that it writes looks damaged: 5', async () => {
    const folder = folderOfTest();
    mkdirSync(join(folder, 'dke-data'), { mode: 0o700 });
    writeFileSync(join(folder, 'dke-data/dke.db'), 'half a page of a database', { mode: 0o600 });
    const lock = lockDirectory(join(folder, 'dke-data/lock'));
    try {
      const refused = startServerProcess({ folder });
      await expect(refused).rejects.toMatchObject({ exitCode: 5, message: expect.stringContaining('another server') });
    } finally {
      lock.release();
    }
  });

  test('because the root key belongs to another store: 6', async () => {
    const other = await usedFolder();
    const { code, message, changed } = await attempt((data) => {
      rmSync(join(data, 'root.key'));
      copyFileSync(join(other, 'dke-data', 'root.key'), join(data, 'root.key'));
      chmodSync(join(data, 'root.key'), 0o400);
    });
    rmSync(other, { recursive: true, force: true });
    expect({ code, changed }).toEqual({ code: 6, changed: [] });
    expect(message).toContain('root key');
  });

  test('because the root key is missing: 6, and none is made', async () => {
    const { code, message, changed } = await attempt((data) => rmSync(join(data, 'root.key')));
    expect({ code, changed }).toEqual({ code: 6, changed: [] });
    expect(message).toContain('root.key is missing');
  });

  test('because the root key is damaged: 6', async () => {
    const { code, changed } = await attempt((data) => {
      const path = join(data, 'root.key');
      const bytes = readFileSync(path);
      bytes.fill(0, 0, 16);
      rmSync(path);
      writeFileSync(path, bytes, { mode: 0o400 });
    });
    expect({ code, changed }).toEqual({ code: 6, changed: [] });
  });

  test('because the memory for keys is set to less than one page of keys: 2', async () => {
    const { code, message } = await attempt(() => undefined, '[memory]\nlocked_bytes = 65536\n');
    expect(code).toBe(2);
    expect(message).toContain('memory.locked_bytes');
  });

  test('because the system lets it lock too little memory: 7', async () => {
    const limit = ['prlimit', '--memlock=65536:65536'];
    // The capability lifts the limit, so the superuser has to do without it.
    const through = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-ipc_lock', ...limit] : limit;
    const { code, message, changed } = await attempt(() => undefined, undefined, through);
    expect({ code, changed }).toEqual({ code: 7, changed: [] });
    expect(message).toMatch(/memlock|locked/i);
  });
});

describe('a disk that is full', () => {
  const disk = mountSmallDisk('400k');
  afterAll(() => (typeof disk === 'string' ? undefined : disk.end()));
  if (typeof disk === 'string') console.log(`skipped: ${disk}`);

  test.skipIf(typeof disk === 'string')('is a clear error at start, without a crash', async () => {
    const { folder } = disk as SmallDisk;
    writeFileSync(join(folder, 'ballast'), Buffer.alloc(380_000));
    const refused = startServerProcess({ folder });
    await expect(refused).rejects.toMatchObject({ exitCode: expect.any(Number) });
    await refused.catch((error: { exitCode: number; message: string }) => {
      expect([3, 5, 6]).toContain(error.exitCode);
      expect(error.message).toMatch(/room|full|space|written|ENOSPC/i);
    });
  });
});

describe('the listener', () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startServerProcess();
  });
  afterAll(() => server.remove());

  const raw = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket: TLSSocket = connect(
        { host: '127.0.0.1', port: server.port, ca: readFileSync(server.caFile) },
        () => {
          socket.write(text);
        },
      );
      let answer = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        answer += part;
      });
      socket.on('close', () => resolve(answer)).on('error', reject);
    });

  test.each([
    ['two Host headers', 'GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n'],
    ['no Host header', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['an absolute-form target', 'GET https://127.0.0.1/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
    [
      'a list of transfer codings',
      'POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n',
    ],
    [
      'a repeated transfer coding',
      'POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n',
    ],
    ['garbage', 'what is this\r\n\r\n'],
    ['a header line without a colon', 'GET /health HTTP/1.1\r\nHost: a\r\nwhat\r\n\r\n'],
    ['a folded header line', 'GET /health HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n'],
  ])('refuses %s as JSON', async (_what, text) => {
    const answer = await raw(text);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    if (answer.includes('{'))
      expect(JSON.parse(answer.slice(answer.indexOf('{')))).toMatchObject({ code: 'validation' });
  });

  test('refuses headers longer than 8 KiB with 431', async () => {
    const answer = await raw(`GET /health HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(9000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('speaks TLS 1.2 and 1.3 with authenticated suites only', async () => {
    const handshake = (options: object): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(
          { host: '127.0.0.1', port: server.port, ca: readFileSync(server.caFile), ...options },
          () => {
            resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
            socket.destroy();
          },
        );
        socket.on('error', (error: NodeJS.ErrnoException) => resolve(`refused ${error.code}`));
      });
    expect(await handshake({})).toBe('TLSv1.3 TLS_AES_256_GCM_SHA384');
    expect(await handshake({ maxVersion: 'TLSv1.2' })).toBe('TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384');
    expect(await handshake({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES256-SHA384' })).toMatch(/^refused/);
    expect(await handshake({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })).toMatch(
      /^refused/,
    );
  });

  test('answers an unknown path without a body that helps an intruder', async () => {
    for (const path of ['/api/nowhere', '/tde/v1/nowhere', '/xks/nowhere', '/nowhere.txt']) {
      const { status, body } = await get(server, path);
      // Without the built pages, a file of theirs is 503.
      expect([401, 404, 503], path).toContain(status);
      expect(body, path).not.toMatch(/node_modules|\.ts\b|at .*:\d+:\d+/);
    }
  });

  test("keeps V8's helpers out of the way, by flags that V8 knows", async () => {
    const source = [
      "import v8 from 'node:v8'",
      "import { syncBuiltinESMExports } from 'node:module'",
      'const set = v8.setFlagsFromString',
      "v8.setFlagsFromString = (flag) => { console.error('set ' + flag); set(flag); }",
      'syncBuiltinESMExports()',
    ].join(';');
    const main = join(import.meta.dirname, '../../server/app/process.ts');
    const server = await start({ program: ['--import', `data:text/javascript,${encodeURIComponent(source)}`, main] });
    // Its output arrives separately from the line that it listens.
    await expect.poll(() => server.log()).toContain('set --no-parallel-scavenge');
    expect(server.log()).toContain('set --concurrent-marking-max-worker-num=1');
    expect(server.log()).not.toContain('unrecognized flag');
  });

  test('reads a certificate again on SIGHUP and continues', async () => {
    server.child.kill('SIGHUP');
    expect(await get(server, '/health')).toMatchObject({ status: 200 });
  });
});
