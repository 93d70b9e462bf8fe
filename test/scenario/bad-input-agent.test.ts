// Faults of a database host: a wrong configuration, foreign processes and noise at the agent's
// socket, a socket that another user prepared, an agent that hangs, a service that is unreachable.
// Each has its code and one line in a log; the others continue.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { startAgent } from '../support/agent-process.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type Database, startDatabase } from '../support/database.ts';
import { processesWith, until } from '../support/host.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { type Site, startSite } from '../support/site.ts';

const isRoot = process.getuid?.() === 0;
if (whyNoOtherUsers !== undefined) console.log(`skipped: ${whyNoOtherUsers}`);
const nobody = 65_534;

const zeroIv = '00'.repeat(16);
const plain = '42'.repeat(32);

let site: Site;
let application: RegisteredApplication;
let config: string;
let database: Database;
let handle: number;
let wrapped: string;
/** A key of the session, which needs no service. */
let temporary: number;

const logged = (folder = site.logDirectory): string =>
  existsSync(folder)
    ? readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'utf8'))
        .join('')
    : '';
const errors = (): readonly string[] =>
  logged()
    .split('\n')
    .filter((line) => line.includes('"level":50'));
const libraryLog = (folder: string): string => {
  // The library writes its own messages into log_dir, else into the system's folder, else next to
  // the socket.
  for (const path of [
    join(site.logDirectory, 'library.log'),
    '/var/log/dke-pkcs11/library.log',
    join(folder, 'library.log'),
  ])
    if (existsSync(path)) return readFileSync(path, 'utf8');
  return '';
};

beforeAll(async () => {
  site = await startSite();
  application = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
  config = site.config('pkcs11', application);
  database = site.database(config);
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  handle = (await database.call('generate', { label: 'MASTER' })).handle ?? 0;
  wrapped = (await database.call('encrypt', { handle, iv: zeroIv, data: plain })).data ?? '';
  temporary = (await database.call('generate', { label: 'temporary', token: false })).handle ?? 0;
});
afterAll(() => site.end());

const works = async (): Promise<void> => {
  expect(await database.call('decrypt', { handle, iv: zeroIv, data: wrapped })).toEqual({ rv: 'CKR_OK', data: plain });
  expect((await database.call('encrypt', { handle: temporary, iv: zeroIv, data: plain })).rv).toBe('CKR_OK');
};
afterEach(works);

describe('pkcs11.toml', () => {
  const good = (): string => readFileSync(config, 'utf8');
  const attempt = async (name: string, text: string | null, spoil: (path: string) => void = () => undefined) => {
    const path = join(site.folder, `${name}.toml`);
    if (text !== null) writeFileSync(path, text, { mode: 0o600 });
    spoil(path);
    const process_ = site.database(path);
    const answer = await process_.call('open', { pin: '' });
    await process_.stop();
    return { answer, path };
  };

  test.each<[string, (text: string) => string, RegExp]>([
    ['is not TOML', (text) => `${text}\nserver_url = [`, /not valid TOML \(line \d+, column \d+\)/],
    ['has an unknown field', (text) => `${text}speed = 9\n`, /speed is unknown; known fields: server_url/],
    ['has no access_token', (text) => text.replace(/^access_token.*$/m, ''), /access_token is missing/],
    [
      'has an empty server_url',
      (text) => text.replace(/^server_url.*$/m, 'server_url = ""'),
      /server_url must be a string/,
    ],
    ['is not HTTPS', (text) => text.replace('https://', 'http://'), /server_url must be https:/],
    [
      'has another access_guid in its address',
      (text) => text.replace(/^access_token = "(.)/m, 'access_token = "x$1'),
      /another access_guid than access_token/,
    ],
    [
      'has a deadline out of range',
      (text) => text.replace(/^call_timeout_ms.*$/m, 'call_timeout_ms = 1'),
      /call_timeout_ms must be an integer from/,
    ],
    [
      'has text for a number',
      (text) => text.replace(/^call_timeout_ms.*$/m, 'call_timeout_ms = "1000"'),
      /call_timeout_ms must be an integer/,
    ],
    [
      'names a certificate that is not there',
      (text) => text.replace(/^ca_file.*$/m, 'ca_file = "/nowhere/ca.pem"'),
      /\/nowhere\/ca\.pem: cannot be used as ca_file \(ENOENT\)/,
    ],
    [
      'names a relative path',
      (text) => text.replace(/^ca_file.*$/m, 'ca_file = "ca.pem"'),
      /ca_file must be an absolute path/,
    ],
    ['is empty', () => '', /server_url is missing/],
    ['is not UTF-8 text', () => '\u0000\u0001\u0002', /not valid TOML/],
  ])('that %s: CKR_DEVICE_ERROR and one line', async (what, change, line) => {
    const before = errors().length;
    const { answer } = await attempt(what.replaceAll(' ', '-'), change(good()));
    expect(answer).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    // The agent may answer before its line is in the log.
    const lines = () => errors().slice(before);
    await expect.poll(lines).toHaveLength(1);
    expect(lines()[0]).toMatch(line);
    expect(logged()).not.toContain(application.accessGuid);
  });

  test.each([0o640, 0o604, 0o666, 0o660])('with mode %o is refused', async (mode) => {
    const { answer, path } = await attempt(`mode-${mode.toString(8)}`, good(), (each) => chmodSync(each, mode));
    expect(answer).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    await expect
      .poll(() => logged())
      .toContain(`${path}: mode ${mode.toString(8)} gives other users access; chmod 600 `);
  });

  test('that is not there is refused, and its variable is named', async () => {
    const { answer } = await attempt('absent', null);
    expect(answer).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    await expect
      .poll(() => logged())
      .toMatch(/absent\.toml: no such file; create the file, or start the database with DKE_PKCS11_CONF/);
  });

  test('that is a directory is refused', async () => {
    const { answer } = await attempt('directory', null, (path) => mkdirSync(path));
    expect(answer).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    await expect.poll(() => logged()).toMatch(/directory\.toml: cannot be read \(not a regular file\)/);
  });

  test('whose certificate is another server’s reaches nothing: CKR_DEVICE_ERROR at the first call', async () => {
    const text = good().replace(/^ca_file.*$/m, `ca_file = "${join(site.folder, 'other.pem')}"`);
    const other = await startSite();
    writeFileSync(join(site.folder, 'other.pem'), readFileSync(other.server.caFile));
    await other.end();
    const path = join(site.folder, 'other.toml');
    writeFileSync(path, text, { mode: 0o600 });
    const process_ = site.database(path);
    expect(await process_.call('open', { pin: '' })).toEqual({ rv: 'CKR_OK' });
    expect(await process_.call('find', { label: 'MASTER' })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    await process_.stop();
    await expect
      .poll(() => logged())
      .toMatch(/is not trusted \((DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED|UNABLE_TO|CERT|ERR_TLS)/);
  });
});

describe('noise at the agent’s socket', () => {
  const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    return bytes;
  };
  const frame = (code: number, options: number, body: number, ...parts: Buffer[]): Buffer =>
    Buffer.concat([u32(code), u32(options), u32(body), ...parts]);
  const array = (bytes: Buffer): Buffer => Buffer.concat([u32(bytes.length), bytes]);
  /** Frees the thread to others until the peer has hung up. */
  const closed = (socket: Socket): Promise<void> =>
    new Promise((resolve) => {
      socket.once('close', () => resolve());
    });
  const speak = async (...parts: Buffer[]): Promise<Buffer> => {
    const socket = createConnection(site.socket);
    const answers: Buffer[] = [];
    socket.on('data', (part: Buffer) => answers.push(part)).on('error', () => undefined);
    await once(socket, 'connect');
    const gone = closed(socket);
    for (const part of parts) socket.write(part);
    socket.end();
    await gone;
    return Buffer.concat(answers);
  };
  const hello = Buffer.from([0xd1]);
  const initialize = (text: string, reserved: Buffer): Buffer => {
    const body = Buffer.concat([
      u32(1),
      array(Buffer.from('ayyay')),
      Buffer.from([1]),
      array(Buffer.from(text)),
      Buffer.from([1, 1]),
      array(reserved),
    ]);
    return frame(1, 0, body.length, body);
  };
  const handshake = 'PRIVATE-GNOME-KEYRING-PKCS11-PROTOCOL-V-1';
  const nested = (depth: number): Buffer =>
    depth === 0
      ? Buffer.alloc(0)
      : Buffer.concat([u32(0x40000211), Buffer.from([1]), u32(24), u32(1), nested(depth - 1)]);

  test.each<[string, Buffer[]]>([
    ['nothing', []],
    ['an unknown version', [Buffer.from([0x7f])]],
    ['HTTP', [Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')]],
    ['noise', [randomBytes(4096)]],
    ['noise after the greeting', [hello, randomBytes(4096)]],
    ['half a header', [hello, Buffer.from([0, 0, 0, 1, 0, 0])]],
    ['a header and no body', [hello, frame(1, 0, 100)]],
    ['a body of 4 GiB', [hello, frame(1, 0, 0xffffffff)]],
    ['options of 4 GiB', [hello, frame(1, 0xffffffff, 4)]],
    ['a body of 1 MiB and a byte', [hello, frame(1, 0, (1 << 20) + 1, Buffer.alloc((1 << 20) + 1))]],
    ['call code 0', [hello, frame(0, 0, 4, u32(1))]],
    ['an empty body', [hello, frame(1, 0, 0)]],
    ['an unknown call', [hello, frame(1, 0, 8, u32(9999), u32(0))]],
    ['a call before C_Initialize', [hello, frame(1, 0, 8, u32(4), u32(0))]],
    ['a signature that is longer than its message', [hello, frame(1, 0, 8, u32(1), u32(0x7fffffff))]],
    ['another handshake', [hello, initialize('LET ME IN', Buffer.alloc(1))]],
    ['a hello that is not JSON', [hello, initialize(handshake, Buffer.from('{"config":\0'))]],
    ['a hello that is a list', [hello, initialize(handshake, Buffer.from('[]\0'))]],
    ['a hello with 100,000 brackets', [hello, initialize(handshake, Buffer.from(`${'['.repeat(100_000)}\0`))]],
    [
      'a hello with sessions that are none',
      [
        hello,
        initialize(
          handshake,
          Buffer.from(`{"config":"/x","library":"1","pid":1,"process":"p","login":9,"sessions":[[1e99,-1,"x"]]}\0`),
        ),
      ],
    ],
    ['templates within templates', [hello, frame(2, 0, 4096, u32(26), array(Buffer.from('uaA')), nested(300))]],
  ])('%s harms no one', async (_what, parts) => {
    await speak(...parts);
    await works();
    expect(site.agents()).toHaveLength(1);
  });

  test('300 connections that say nothing leave room for the next process', async () => {
    const silent = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const socket = createConnection(site.socket);
        await once(socket, 'connect');
        return socket;
      }),
    );
    const process_ = site.database(config);
    expect((await process_.call('open', { pin: '' })).rv).toBe('CKR_OK');
    await process_.stop();
    for (const socket of silent) socket.destroy();
  });
});

describe.runIf(isRoot)('a process of another user', () => {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  /** A folder that everyone may enter, with a configuration of `no one`'s own. */
  const shared = (): { folder: string; own: string } => {
    const folder = mkdtempSync(join(tmpdir(), 'dke-shared-'));
    folders.push(folder);
    chmodSync(folder, 0o755);
    const own = join(folder, 'pkcs11.toml');
    writeFileSync(own, readFileSync(config, 'utf8'), { mode: 0o600 });
    chownSync(own, nobody, nobody);
    return { folder, own };
  };

  test('does not get through to the agent’s socket: CKR_DEVICE_REMOVED', async () => {
    const { own } = shared();
    const stranger = startDatabase({ config: own, socket: site.socket, user: nobody });
    expect(await stranger.call('open', { pin: '' })).toEqual({ rv: 'CKR_DEVICE_REMOVED' });
    await stranger.stop();
  });

  test('is refused by the agent itself where the socket lets it through', async () => {
    const { folder, own } = shared();
    const agent = await startAgent(folder);
    try {
      chmodSync(agent.socket, 0o666);
      const stranger = startDatabase({ config: own, socket: agent.socket, user: nobody });
      expect(await stranger.call('open', { pin: '' })).toEqual({ rv: 'CKR_DEVICE_REMOVED' });
      await stranger.stop();
      await until('the line', async () => (agent.log().includes('peer-refused') ? true : undefined));
      await expect.poll(() => agent.log()).toMatch(new RegExp(`"uid":${nobody}`));
    } finally {
      await agent.stop();
    }
  });

  test('that plays the agent is refused by the library', async () => {
    const { folder } = shared();
    const socket = join(folder, 'agent.sock');
    chmodSync(folder, 0o777);
    // A listener of another user, which answers the version byte as the agent would.
    const script =
      `process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody});` +
      "require('net').createServer((s) => s.on('data', () => s.write(Buffer.from([0xd1])))).listen(process.argv[1], () => console.log('up'))";
    const listener = spawn(process.execPath, ['-e', script, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(listener.stdout, 'data');
      const victim = startDatabase({ config, socket });
      expect(await victim.call('open', { pin: 'secret' })).toEqual({ rv: 'CKR_DEVICE_REMOVED' });
      await victim.stop();
      expect(libraryLog(folder)).toContain(
        `the process that listens at ${socket} runs as uid ${nobody}, which is neither this OS user nor root`,
      );
    } finally {
      listener.kill('SIGKILL');
    }
  });
});

describe.runIf(whyNoOtherUsers === undefined)('the folder of the socket, prepared by another user', () => {
  const uid = 47_111;
  const folder = `/tmp/dke-pkcs11-${uid}`;
  const spares = () => readdirSync('/tmp').filter((name) => name.startsWith(`dke-pkcs11-${uid}-`));
  const target = mkdtempSync(join(tmpdir(), 'dke-target-'));
  afterEach(() => {
    for (const [pid] of processesWith(`${folder}-`)) process.kill(pid);
    for (const path of [folder, ...spares().map((name) => `/tmp/${name}`)])
      rmSync(path, { recursive: true, force: true });
  });
  afterAll(() => rmSync(target, { recursive: true, force: true }));

  test.each<[string, () => void]>([
    ['that belongs to another user', () => mkdirSync(folder, { mode: 0o755 })],
    [
      'that is a link',
      () => {
        chownSync(target, uid, uid);
        chmodSync(target, 0o700);
        symlinkSync(target, folder);
      },
    ],
    ['that is a file', () => writeFileSync(folder, '')],
    [
      // Others can link a file that they may write, and move one out of a directory of theirs.
      'that is a file of this user',
      () => {
        writeFileSync(folder, '');
        chownSync(folder, uid, uid);
      },
    ],
  ])('%s is not used: all processes of the user find the same one instead', async (_what, prepare) => {
    prepare();
    const environment = { DKE_PKCS11_SOCKET: undefined, XDG_RUNTIME_DIR: undefined };
    const victims = [0, 1, 2].map(() => startDatabase({ config, socket: '', user: uid, environment }));
    // The agent runs, as this user, who may not read the configuration.
    const answers = await Promise.all(victims.map((each) => each.call('open', { pin: 'secret' })));
    expect(answers.map(({ rv }) => rv)).not.toContain('CKR_DEVICE_REMOVED');
    for (const each of victims) await each.stop();
    expect(existsSync(join(target, 'agent.sock'))).toBe(false);
    expect(existsSync(join(folder, 'agent.sock'))).toBe(false);
    expect(spares()).toHaveLength(1);
    const agents = processesWith(`${folder}-`).filter(([, line]) => line.includes('--socket'));
    expect(agents).toHaveLength(1);
    // Its memory is for no other process of its user either: its files in /proc belong to root.
    for (const [pid] of agents) expect(statSync(`/proc/${pid}/maps`).uid).toBe(0);
  });

  test('that is the user’s own, but that others may enter, is refused: CKR_DEVICE_REMOVED', async () => {
    mkdirSync(folder);
    chownSync(folder, uid, uid);
    chmodSync(folder, 0o755);
    const environment = { DKE_PKCS11_SOCKET: undefined, XDG_RUNTIME_DIR: undefined };
    const victim = startDatabase({ config, socket: '', user: uid, environment });
    expect(await victim.call('open', { pin: 'secret' })).toEqual({ rv: 'CKR_DEVICE_REMOVED' });
    await victim.stop();
    expect(existsSync(join(folder, 'agent.sock'))).toBe(false);
  });
});

/** Every thread of the process is stopped: the signal reaches them one by one. */
const standsStill = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((task) =>
    /\) T /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')),
  );
/** A process whose deadlines are over soon: on a busy machine it may miss them at any call. */
const startHasty = (): Database =>
  site.database(site.config('hasty', application, 'connect_timeout_ms = 500\ncall_timeout_ms = 1000\n'));
const openHasty = (): Promise<Database> =>
  until('its session', async () => {
    const hasty = startHasty();
    if ((await hasty.call('open', { pin: '' })).rv === 'CKR_OK') return hasty;
    await hasty.stop();
    return undefined;
  });

describe('an agent that stands still', () => {
  test('costs each call its deadline and CKR_DEVICE_ERROR; a process that begins then gets CKR_DEVICE_REMOVED', async () => {
    const hasty = await openHasty();
    const [agent = 0] = site.agents();
    process.kill(agent, 'SIGSTOP');
    await until('its standstill', async () => (standsStill(agent) ? true : undefined));
    try {
      expect((await hasty.call('random', { length: 8 })).rv).toBe('CKR_DEVICE_ERROR');
      expect((await hasty.call('sessionInfo', {})).rv).toBe('CKR_DEVICE_ERROR');
      expect((await hasty.call('encrypt', { handle, iv: zeroIv, data: plain })).rv).toBe('CKR_DEVICE_ERROR');
      const late = startHasty();
      expect((await late.call('open', { pin: '' })).rv).toBe('CKR_DEVICE_REMOVED');
      await late.stop();
    } finally {
      process.kill(agent, 'SIGCONT');
    }
    // Late answers are dropped; the same connection continues.
    await until('an answer', async () =>
      (await hasty.call('random', { length: 8 })).rv === 'CKR_OK' ? true : undefined,
    );
    await hasty.stop();
    expect(site.agents()).toEqual([agent]);
  });
});

describe('a service that is away', () => {
  const use = () => ({ handle, iv: zeroIv, data: plain });

  test('leaves session keys working; token keys answer CKR_DEVICE_ERROR, and work again when it is back', async () => {
    expect(await site.stopServer()).toBe(0);
    for (let round = 0; round < 3; round++) {
      expect((await database.call('encrypt', { ...use(), handle: temporary })).rv).toBe('CKR_OK');
      expect((await database.call('generate', { label: 'another', token: false })).rv).toBe('CKR_OK');
      expect((await database.call('random', { length: 32 })).rv).toBe('CKR_OK');
      expect(await database.call('encrypt', use())).toEqual({ rv: 'CKR_DEVICE_ERROR' });
      expect(await database.call('find', { label: 'MASTER' })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
      expect(await database.call('generate', { label: 'NEW' })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
      expect(await database.call('destroy', { handle })).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    }
    const begun = site.database(config);
    expect((await begun.call('open', { pin: '' })).rv).toBe('CKR_OK');
    expect(await begun.call('encrypt', use())).toEqual({ rv: 'CKR_DEVICE_ERROR' });
    await site.startServer();
    expect(await database.call('encrypt', use())).toEqual({ rv: 'CKR_OK', data: wrapped });
    expect(await begun.call('encrypt', use())).toEqual({ rv: 'CKR_OK', data: wrapped });
    expect(await begun.call('find', { label: 'NEW' })).toEqual({ rv: 'CKR_OK', handles: [] });
    await begun.stop();
    await expect.poll(() => logged()).toMatch(/cannot be reached \(ECONNREFUSED\)/);
  });

  test('that stands still costs a call its deadline and CKR_DEVICE_ERROR', async () => {
    const hasty = await openHasty();
    const { pid = 0 } = site.server.child;
    process.kill(pid, 'SIGSTOP');
    await until('its standstill', async () => (standsStill(pid) ? true : undefined));
    try {
      expect(await hasty.call('encrypt', use())).toEqual({ rv: 'CKR_DEVICE_ERROR' });
      expect((await database.call('encrypt', { ...use(), handle: temporary })).rv).toBe('CKR_OK');
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const answer = await until('an answer', async () => {
      const called = await hasty.call('encrypt', use());
      return called.rv === 'CKR_DEVICE_ERROR' ? undefined : called;
    });
    expect(answer).toEqual({ rv: 'CKR_OK', data: wrapped });
    await hasty.stop();
  });
});
