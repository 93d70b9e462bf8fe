// `dke doctor` on hosts that are in order and on hosts that are not: each fault is named by its
// layer, with what to do.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { makeAuthority } from '../support/authority.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { mountSmallDisk } from '../support/small-disk.ts';

const built = resolve(import.meta.dirname, '../../build/provider/1.0');
let server: ServerProcess;
let folder: string;
let conf: string;
let tokenFile: string;
let guid: string;

const doctor = (...args: string[]): Promise<CommandRun> =>
  runCommand(['doctor', '--socket', join(folder, 'agent.sock'), ...args], { cwd: folder });

/** The state of each check, and the run. */
const diagnosed = async (...args: string[]) => {
  const run = await doctor(...args, '-o', 'json');
  const diagnoses = JSON.parse(run.stdout) as { readonly results: readonly CheckResult[] }[];
  const results = diagnoses.flatMap((diagnosis) => diagnosis.results);
  const states = Object.fromEntries(results.map(({ id, state }) => [id, state]));
  const failed = results.filter(({ state }) => state === 'failed');
  return { run, states, failed, first: failed[0] };
};

beforeAll(async () => {
  server = await startServerProcess();
  folder = mkdtempSync(join(tmpdir(), 'dke-doctor-'));
  tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, server.adminToken, { mode: 0o600 });
  const environment = { DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile };
  conf = join(folder, 'pkcs11.toml');
  for (const args of [
    ['tde', 'group', 'create', 'finance'],
    ['tde', 'app', 'register', 'erp', '--group', 'finance', '--out', conf, '--database-ca-file', server.caFile],
  ])
    expect(await runCommand(args, { environment })).toMatchObject({ code: 0, stderr: '' });
  guid = /^access_token = "([^"]+)"$/m.exec(readFileSync(conf, 'utf8'))?.[1] ?? '';
  expect(guid).not.toBe('');
});
afterAll(async () => {
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** A configuration of its own, changed. */
const changedConf = (change: (toml: string) => string, mode = 0o600): string => {
  const path = join(mkdtempSync(join(folder, 'case-')), 'pkcs11.toml');
  writeFileSync(path, change(readFileSync(conf, 'utf8')));
  chmodSync(path, mode);
  return path;
};

test.runIf(process.getuid?.() === 0)(
  'root checks as the user who owns the files: what that user meets is what is shown',
  async () => {
    const place = mkdtempSync(join(folder, 'case-'));
    chmodSync(folder, 0o755);
    chmodSync(place, 0o755);
    const own = join(place, 'pkcs11.toml');
    // The certificate is in a folder that only root can read.
    writeFileSync(own, readFileSync(conf, 'utf8'), { mode: 0o600 });
    chownSync(own, 54_321, 54_322);
    const readable = join(place, 'ca.pem');
    copyFileSync(server.caFile, readable);
    chmodSync(readable, 0o644);
    writeFileSync(own, readFileSync(own, 'utf8').replace(server.caFile, readable));
    expect((await diagnosed('--conf', own)).states).toMatchObject({ configuration: 'ok', tls: 'ok', network: 'ok' });
    chmodSync(readable, 0o600);
    expect((await diagnosed('--conf', own)).run.code).not.toBe(exitCodes.ok);
  },
);

test.runIf(process.getuid?.() === 0)('root has only the groups of the owner, not the group of the file', async () => {
  const place = mkdtempSync(join(folder, 'case-'));
  chmodSync(folder, 0o755);
  chmodSync(place, 0o755);
  const [own, authority] = [join(place, 'pkcs11.toml'), join(place, 'ca.pem')];
  copyFileSync(server.caFile, authority);
  chmodSync(authority, 0o640);
  writeFileSync(own, readFileSync(conf, 'utf8').replace(server.caFile, authority), { mode: 0o600 });
  // The configuration belongs to the user daemon and to the group of root.
  chownSync(own, 1, 0);
  expect((await diagnosed('--conf', own)).states).not.toMatchObject({ tls: 'ok' });
  chmodSync(authority, 0o644);
  expect((await diagnosed('--conf', own)).states).toMatchObject({ configuration: 'ok', tls: 'ok' });
});

test.runIf(process.getuid?.() === 0)('root checks the data of the service as their owner', async () => {
  const place = mkdtempSync(join(folder, 'case-'));
  chmodSync(folder, 0o755);
  chmodSync(place, 0o755);
  writeFileSync(join(place, 'dke.toml'), '[data]\ndirectory = "data"\n', { mode: 0o644 });
  mkdirSync(join(place, 'data'), { mode: 0o700 });
  chownSync(join(place, 'data'), 54_321, 54_322);
  const { states } = await diagnosed('--config', join(place, 'dke.toml'));
  expect(states).toMatchObject({ configuration: 'ok' });
});

test.runIf(process.getuid?.() === 0)('files of two users are checked in one run, each as its own user', async () => {
  const place = mkdtempSync(join(folder, 'case-'));
  chmodSync(folder, 0o755);
  chmodSync(place, 0o755);
  writeFileSync(join(place, 'pkcs11.toml'), readFileSync(conf, 'utf8'), { mode: 0o600 });
  chownSync(join(place, 'pkcs11.toml'), 54_321, 54_322);
  writeFileSync(join(place, 'dke.toml'), '[server]\nport = 0\n[data]\ndirectory = "data"\n', { mode: 0o644 });
  mkdirSync(join(place, 'data'), { mode: 0o700 });
  chownSync(join(place, 'data'), 54_323, 54_323);
  const both = ['--conf', join(place, 'pkcs11.toml'), '--config', join(place, 'dke.toml')];
  const { stdout } = await doctor(...both, '-o', 'json');
  const parts = JSON.parse(stdout) as { readonly what: string; readonly results: readonly CheckResult[] }[];
  expect(parts.map(({ what }) => what)).toEqual(['this database host', 'the host of the service']);
  const found = (part: number, id: string) => parts[part]?.results.find((each) => each.id === id);
  expect(found(0, 'configuration')).toMatchObject({ state: 'ok' });
  expect(found(1, 'data')).toMatchObject({ state: 'ok', evidence: expect.stringContaining('user 54323') });
  // What is named is what is checked, whatever else is on the host.
  const only = await runCommand(['doctor', '--config', 'dke.toml', '-o', 'json'], {
    cwd: place,
    environment: { DKE_PKCS11_CONF: join(place, 'pkcs11.toml') },
  });
  expect(JSON.parse(only.stdout)).toMatchObject([{ what: 'the host of the service' }]);
});

describe('the unit of systemd', () => {
  /** A systemctl that knows one unit; the real one needs a system that was started by it. */
  const withUnit = async (config: string, properties: readonly string[]) => {
    const programs = mkdtempSync(join(folder, 'programs-'));
    chmodSync(programs, 0o755);
    const known = ['LoadState=loaded', `ExecStart={ path=/usr/bin/dke ; argv[]=dke server --config ${config} ; }`];
    writeFileSync(
      join(programs, 'systemctl'),
      `#!/bin/sh\ncat <<'END'\n${[...known, ...properties].join('\n')}\nEND\n`,
      {
        mode: 0o755,
      },
    );
    const { stdout } = await runCommand(['doctor', '--config', config, '-o', 'json'], {
      environment: { PATH: `${programs}:${process.env.PATH}` },
    });
    const [part] = JSON.parse(stdout) as { readonly results: readonly CheckResult[] }[];
    return new Map(part?.results.map((each) => [each.id, each]));
  };
  const homes = '/home';
  const logs = join(homes, 'dke-logs');
  const packaged = [
    'User=',
    'LimitMEMLOCK=67108864',
    'ProtectSystem=strict',
    'ProtectHome=yes',
    'PrivateTmp=yes',
    'StateDirectory=dke',
  ];
  const written = (toml: string): string => {
    const place = mkdtempSync(join(folder, 'unit-'));
    for (const each of [folder, place]) chmodSync(each, 0o755);
    const config = join(place, 'dke.toml');
    writeFileSync(config, `[server]\nport = 0\n[data]\ndirectory = "/var/lib/dke/data"\n${toml}`, { mode: 0o644 });
    return config;
  };

  test('its folders, with the drop-in that opens them', async () => {
    expect((await withUnit(written(''), packaged)).get('unit')).toMatchObject({ state: 'ok' });
    const toml = `[snapshots]\ndirectory = "/srv/dke snapshots"\n[access_log]\nfile = "${logs}/access.log"\n`;
    const closed = (await withUnit(written(toml), packaged)).get('unit');
    expect(closed).toMatchObject({
      state: 'failed',
      evidence:
        `${logs} (access_log.file) cannot be written inside the unit dke-server; ` +
        '/srv/dke snapshots (snapshots.directory) cannot be written inside the unit dke-server',
    });
    expect(closed?.fix).toMatch(/^install -d -o root -m 700 \/home\/dke-logs '\/srv\/dke snapshots' && /);
    const unit = mkdtempSync(join(folder, 'drop-in-'));
    const command = (closed?.fix ?? '')
      .replace(/^.*? && /, '')
      .replaceAll('/etc/systemd/system/dke-server.service.d', unit)
      .replace(/ && systemctl daemon-reload$/, '');
    execFileSync('sh', ['-c', command]);
    // Below /home nothing is opened by ReadWritePaths=, nor while it is inaccessible.
    expect(readFileSync(join(unit, 'folders.conf'), 'utf8')).toBe(
      `[Service]\nProtectHome=tmpfs\nBindPaths=${logs}\nReadWritePaths="/srv/dke snapshots"\n`,
    );
    const snapshots = 'ReadWritePaths="/srv/dke snapshots"';
    const bound = `BindPaths=${logs}:${logs}:rbind`;
    const open = packaged.map((each) => each.replace('ProtectHome=yes', 'ProtectHome=tmpfs'));
    expect((await withUnit(written(toml), [...open, snapshots, bound])).get('unit')).toMatchObject({ state: 'ok' });
    for (const closing of [
      [...packaged, snapshots, bound],
      [...open, `${snapshots} ${logs}`],
    ])
      expect((await withUnit(written(toml), closing)).get('unit')).toMatchObject({ state: 'failed' });
  });

  test('a folder that systemd reads otherwise, or that a boot empties, gets no command', async () => {
    const log = (path: string): string => `[access_log]\nfile = ${JSON.stringify(path)}\n`;
    const mapped = 'systemd reads a quotation mark, ":" or "\\" in a name as its own';
    for (const [path, fault] of [
      ['/srv/a:b/log', mapped],
      ['/srv/a"b/log', mapped],
      ['/srv/a\\/log', mapped],
      ['/tmp/access.log', 'the unit has another folder in its place'],
      [join(homes, 'access.log'), 'the unit has another folder in its place'],
      ['/run/user/dke/access.log', 'it is empty after a boot'],
      ['/tmp/dke/access.log', 'it is empty after a boot'],
      ['/var/tmp/dke/access.log', 'users other than root can write /var/tmp: name a folder that only root can rename'],
    ] as const)
      expect((await withUnit(written(log(path)), packaged)).get('unit')).toMatchObject({
        state: 'failed',
        fix: `name another folder than ${dirname(path)} in dke.toml: ${fault}`,
      });
    const line = (await withUnit(written(log('/srv/a\nExecStartPre=+/x/log')), packaged)).get('configuration');
    expect(line).toMatchObject({
      state: 'failed',
      evidence: expect.stringContaining('a path without control characters'),
    });
  });

  test.runIf(process.getuid?.() === 0)(
    'a folder that another user can replace gets no command, and root sees what the user does not',
    async () => {
      const place = mkdtempSync('/srv/dke-doctor-');
      try {
        chmodSync(place, 0o755);
        mkdirSync(join(place, 'theirs'));
        chownSync(join(place, 'theirs'), 65_534, 65_534);
        mkdirSync(join(place, 'closed/there'), { recursive: true });
        chmodSync(join(place, 'closed'), 0o700);
        symlinkSync(join(place, 'theirs'), join(place, 'link'));
        const daemon = packaged.map((each) => each.replace('User=', 'User=daemon'));
        const fixOf = async (path: string) =>
          (await withUnit(written(`[snapshots]\ndirectory = "${join(place, path)}"\n`), daemon)).get('unit')?.fix;
        for (const path of ['theirs/snapshots', 'link/snapshots'])
          expect(await fixOf(path)).toBe(
            `name another folder than ${join(place, path)} in dke.toml: ${join(place, 'theirs')} belongs to user 65534: ` +
              'name a folder that only root can rename',
          );
        expect(await fixOf('closed/there')).toMatch(/^install -d \/etc\/systemd/);
        expect(await fixOf('new/snapshots')).toMatch(`install -d -o daemon -m 700 ${join(place, 'new/snapshots')} && `);
      } finally {
        rmSync(place, { recursive: true, force: true });
      }
    },
  );

  test('its memory and its port', async () => {
    const small = packaged.map((each) => each.replace('67108864', '65536'));
    expect((await withUnit(written(''), small)).get('memory')).toMatchObject({
      state: 'failed',
      evidence: 'the unit of the service may lock 64 KiB of memory for keys, and 4096 KiB are needed',
    });
    const low = written('');
    writeFileSync(low, readFileSync(low, 'utf8').replace('port = 0', 'port = 1'));
    const user = packaged.map((each) => each.replace('User=', `User=${process.getuid?.() === 0 ? 'daemon' : ''}`));
    const found = (await withUnit(low, user)).get('unit');
    if (process.getuid?.() === 0)
      expect(found).toMatchObject({
        evidence: 'user daemon may not listen on port 1',
        fix: expect.stringContaining('CAP_NET_BIND_SERVICE'),
      });
  });
});

describe('a database host', () => {
  test('in order: every check that was asked for is ok, and the credential is not shown', async () => {
    const { run, states } = await diagnosed('--conf', conf, '--library', join(built, 'libdke_pkcs11.so'));
    expect(run.code).toBe(exitCodes.ok);
    expect(states).toMatchObject({
      configuration: 'ok',
      library: 'ok',
      socket: 'ok',
      network: 'ok',
      tls: 'ok',
      token: 'ok',
      label: 'skipped',
    });
    expect(run.stdout + run.stderr).not.toContain(guid);
    const text = await doctor('--conf', conf);
    expect(text.stdout).toMatch(/^this database host passed all checks\n/);
    expect(text.stdout).not.toContain(guid);
  });

  test.each<[string, (toml: string) => string, string, RegExp]>([
    ['an unknown field', (toml) => `${toml}\ntypo = 1\n`, 'configuration', /typo is unknown/],
    [
      'a token of another service',
      (toml) =>
        toml.replaceAll(
          guid,
          guid.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A')),
        ),
      'token',
      /./,
    ],
    ['no certificate to trust', (toml) => toml.replace(/^ca_file.*$/m, ''), 'tls', /SELF_SIGNED/],
    ['a port without a listener', (toml) => toml.replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9'), 'network', /ECONNREFUSED/],
    [
      'a name that does not exist',
      (toml) => toml.replace(/127\.0\.0\.1:\d+/, 'nowhere.invalid'),
      'network',
      /ENOTFOUND|EAI_AGAIN/,
    ],
    [
      'a certificate file that is missing',
      (toml) => toml.replace(/^ca_file.*$/m, 'ca_file = "/nowhere.pem"'),
      'tls',
      /nowhere\.pem/,
    ],
  ])('with %s: named by its layer, what depends on it is skipped', async (_, change, id, words) => {
    const { run, first, states } = await diagnosed('--conf', changedConf(change));
    expect(run.code).toBe(exitCodes['checks-failed']);
    expect(first?.id).toBe(id);
    expect(first?.evidence).toMatch(words);
    const order = ['configuration', 'network', 'tls', 'token'];
    for (const later of order.slice(order.indexOf(id) + 1)) expect(states[later]).toBe('skipped');
    expect(run.stdout + run.stderr).not.toContain(guid);
  });

  test('with a file that others can read', async () => {
    const { first } = await diagnosed(
      '--conf',
      changedConf((toml) => toml, 0o640),
    );
    expect(first).toMatchObject({ id: 'configuration', layer: 'configuration' });
    expect(first).toMatchObject({ fix: expect.stringMatching(/^chmod 600 \//), predicts: 'CKR_DEVICE_ERROR' });
  });

  test('without the key', async () => {
    const { first, run } = await diagnosed('--conf', conf, '--label', 'NO.SUCH.KEY');
    expect(first).toMatchObject({ id: 'label', layer: 'key' });
    expect(first?.evidence).toContain('NO.SUCH.KEY');
    expect(run.code).toBe(exitCodes['checks-failed']);
  });

  test('with a library that any user can replace, without its agent, or with another library next to it', async () => {
    const library = join(mkdtempSync(join(folder, 'library-')), 'libdke_pkcs11.so');
    copyFileSync(join(built, 'libdke_pkcs11.so'), library);
    expect((await diagnosed('--conf', conf, '--library', library)).first?.evidence).toContain('dke-agent');
    copyFileSync(join(built, 'dke-agent'), join(library, '../dke-agent'));
    expect((await diagnosed('--conf', conf, '--library', library)).states.library).toBe('ok');
    chmodSync(library, 0o777);
    expect((await diagnosed('--conf', conf, '--library', library)).first?.fix).toContain('chmod 775');
    chmodSync(library, 0o775);
    writeFileSync(join(library, '../libother.so'), '');
    expect((await diagnosed('--conf', conf, '--library', library)).first?.evidence).toContain('libother.so');
    writeFileSync(library, 'no library');
    expect((await diagnosed('--conf', conf, '--library', library)).first?.evidence).toContain('not a 64-bit library');
  });

  test('with a socket that no agent serves, and one that an agent serves', async () => {
    const path = join(folder, 'agent.sock');
    const agent: Server = createServer();
    await new Promise<void>((done) => agent.listen(path, done));
    try {
      expect((await diagnosed('--conf', conf)).states.socket).toBe('ok');
    } finally {
      await new Promise((done) => agent.close(done));
    }
    mkdirSync(path);
    try {
      expect((await diagnosed('--conf', conf)).first?.id).toBe('socket');
    } finally {
      rmSync(path, { recursive: true });
    }
  });

  test('whose application is disabled', async () => {
    const environment = { DKE_SERVER: server.url, DKE_CA_FILE: server.caFile, DKE_TOKEN_FILE: tokenFile };
    expect((await runCommand(['tde', 'app', 'disable', 'erp'], { environment })).code).toBe(0);
    expect((await diagnosed('--conf', conf)).first?.id).toBe('token');
    expect((await runCommand(['tde', 'app', 'enable', 'erp'], { environment })).code).toBe(0);
    expect((await diagnosed('--conf', conf)).states.token).toBe('ok');
  });
});

describe('the host of the service', () => {
  const config = (): string => join(server.folder, 'dke.toml');

  test('in order', async () => {
    const { run, states } = await diagnosed('--config', config());
    expect(run.code).toBe(exitCodes.ok);
    expect(states).toMatchObject({
      configuration: 'ok',
      data: 'ok',
      'root-key': 'ok',
      certificate: 'ok',
      memory: 'ok',
    });
  });

  test('packages to distribute: none, a folder that is missing, and one whose package was changed', async () => {
    const base = mkdtempSync(join(folder, 'case-'));
    const path = join(base, 'dke.toml');
    writeFileSync(path, '[server]\nport = 0\n', { mode: 0o600 });
    expect((await diagnosed('--config', path)).states).toMatchObject({ packages: 'skipped' });
    writeFileSync(path, '[server]\nport = 0\npackages_directory = "packages"\n');
    expect((await diagnosed('--config', path)).first).toMatchObject({
      id: 'packages',
      evidence: expect.stringContaining('SHA256SUMS cannot be read (ENOENT)'),
      fix: expect.stringContaining(join(base, 'packages')),
    });
    mkdirSync(join(base, 'packages'));
    const name = 'dke-provider_1.0.0_amd64.deb';
    writeFileSync(join(base, 'packages', name), 'as it was built');
    execFileSync('sh', ['-c', `sha256sum ${name} > SHA256SUMS`], { cwd: join(base, 'packages') });
    expect((await diagnosed('--config', path)).states).toMatchObject({ packages: 'ok' });
    writeFileSync(join(base, 'packages', name), 'changed on its way');
    expect((await diagnosed('--config', path)).first).toMatchObject({
      id: 'packages',
      evidence: `the package ${name} does not match its checksum in SHA256SUMS`,
    });
  });

  test('with a fault in dke.toml', async () => {
    const path = join(folder, 'wrong.toml');
    writeFileSync(path, '[server]\nprot = 1\n', { mode: 0o600 });
    const { first } = await diagnosed('--config', path);
    expect(first).toMatchObject({ id: 'configuration' });
    expect(first?.evidence).toContain('prot');
  });

  test('with open data', async () => {
    const base = mkdtempSync(join(folder, 'server-'));
    const path = join(base, 'dke.toml');
    writeFileSync(path, '', { mode: 0o600 });
    expect((await diagnosed('--config', path)).states).toMatchObject({ data: 'ok', 'root-key': 'ok' });
    mkdirSync(join(base, 'dke-data'), { mode: 0o755 });
    expect((await diagnosed('--config', path)).first).toMatchObject({
      id: 'data',
      fix: expect.stringContaining('chmod 700'),
    });
  });
});

describe('a service that cannot start again, or not write', () => {
  let stopped: ServerProcess;
  beforeAll(async () => {
    stopped = await startServerProcess();
    await stopped.stop();
  });
  afterAll(() => stopped?.remove());
  /** A copy of the stopped service's folder. */
  const copied = (): { readonly config: string; readonly data: string } => {
    const base = mkdtempSync(join(folder, 'stopped-'));
    cpSync(stopped.dataDirectory, join(base, 'dke-data'), { recursive: true });
    chmodSync(join(base, 'dke-data'), 0o700);
    const config = join(base, 'dke.toml');
    writeFileSync(config, '[server]\nport = 0\n', { mode: 0o600 });
    return { config, data: join(base, 'dke-data') };
  };

  test('the database is sound, cut off, damaged or of a newer version', async () => {
    const { config, data } = copied();
    const path = join(data, 'dke.db');
    const files = readdirSync(data).sort();
    expect((await diagnosed('--config', config)).states).toMatchObject({ database: 'ok', folders: 'ok' });
    expect(readdirSync(data).sort()).toEqual(files);
    const whole = readFileSync(path);
    const database = new DatabaseSync(path);
    database.exec("insert into kysely_migration (name, timestamp) values ('2099-01-future', '2099')");
    database.close();
    const { first: newer } = await diagnosed('--config', config);
    expect(newer).toMatchObject({ id: 'database-file', evidence: expect.stringContaining('2099-01-future') });
    writeFileSync(path, whole.subarray(0, whole.length / 2));
    expect((await diagnosed('--config', config)).first).toMatchObject({
      id: 'database-file',
      evidence: expect.stringContaining('cut off'),
    });
    const spoilt = Buffer.from(whole);
    spoilt.fill(0xaa, 8192, 16_384);
    writeFileSync(path, spoilt);
    expect((await diagnosed('--config', config)).first).toMatchObject({ id: 'database-file' });
  });

  test('a folder is missing', async () => {
    const { config } = copied();
    writeFileSync(config, '[server]\nport = 0\n[snapshots]\ndirectory = "/nowhere/deep/snapshots"\n');
    // The start would create the whole path, which only root may do; the doctor checks the same.
    const { first, states } = await diagnosed('--config', config);
    if (process.getuid?.() === 0) expect(states.snapshots).toBe('ok');
    else expect(first).toMatchObject({ id: 'snapshots', evidence: expect.stringContaining('cannot write /') });
    writeFileSync(config, '[server]\nport = 0\n[root]\npath = "/nowhere/root.key"\n');
    expect((await diagnosed('--config', config)).first).toMatchObject({
      id: 'root-folder',
      evidence: 'the folder /nowhere (root.path) is missing',
    });
  });

  test('the disk is read-only', async ({ skip }) => {
    const disk = mountSmallDisk('32m');
    if (typeof disk === 'string') return skip(disk);
    try {
      const { config, data } = copied();
      cpSync(data, join(disk.folder, 'data'), { recursive: true });
      chmodSync(join(disk.folder, 'data'), 0o700);
      execFileSync('mount', ['-o', 'remount,ro', disk.folder]);
      writeFileSync(config, `[server]\nport = 0\n[data]\ndirectory = "${disk.folder}/data"\n`);
      expect((await diagnosed('--config', config)).first).toMatchObject({
        id: 'data',
        evidence: expect.stringContaining('read-only'),
      });
    } finally {
      disk.end();
    }
  });
});

test('a certificate that an authority issued is not a fault; one that differs from the file is reported', async () => {
  const authority = makeAuthority(folder, 'doctor');
  const issue = () =>
    authority
      .below('doctor issuing')
      .issue({ commonName: 'keys', names: ['IP:127.0.0.1', 'DNS:localhost'], usage: 'serverAuth' });
  const [certificate, key] = [join(folder, 'issued.crt'), join(folder, 'issued.key')];
  const first = issue();
  copyFileSync(first.certificate, certificate);
  copyFileSync(first.key, key);
  const issued = await startServerProcess({ toml: `[tls]\ncertificate = "${certificate}"\nkey = "${key}"\n` });
  try {
    const config = join(issued.folder, 'dke.toml');
    writeFileSync(config, readFileSync(config, 'utf8').replace('port = 0', `port = ${issued.port}`));
    expect((await diagnosed('--config', config)).states).toMatchObject({ certificate: 'ok', listener: 'ok' });
    copyFileSync(issue().certificate, certificate);
    expect((await diagnosed('--config', config)).states).toMatchObject({ listener: 'warning' });
  } finally {
    await issued.remove();
  }
});

test('nothing to check is an error that says what to give', async () => {
  const run = await runCommand(['doctor'], { cwd: folder });
  expect(run.code).toBe(exitCodes.config);
  expect(run.stderr).toContain('--conf pkcs11.toml');
});
