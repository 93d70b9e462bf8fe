// `dke provider` on a host with the real service: install, check, upgrade, rollback, uninstall, as
// the OS user of a database, and a database that uses the installation. Needs root for other users;
// as another user it installs for that user.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { upgrade } from '../../provider/install/install.ts';
import { type Layout, layoutOf } from '../../provider/install/layout.ts';
import { type Owner, parseOwner } from '../../provider/install/owner.ts';
import { buildOf, gatherPayload, type Payload } from '../../provider/install/payload.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import type { InstallReport } from '../../server/contract/provider.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { createGroup, openConsoleApi, registerApplication, writeProviderConfig } from '../support/console-api.ts';
import { endProcess, processesWith, until } from '../support/host.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const isRoot = process.getuid?.() === 0;
let folder: string;
let base: string;
let layout: Layout;
let owner: Owner;
let ownerName: string;
let logs: string;
let socket: string;
let server: ServerProcess;
let conf: string;
let guid: string;
const children: ChildProcess[] = [];

const provider = (action: string, ...args: string[]): Promise<CommandRun> =>
  runCommand(['provider', action, '--base', base, ...args], {
    environment: { DKE_PKCS11_SOCKET: socket, DKE_AGENT_LOG_DIR: logs },
  });
const reported = async (action: string, ...args: string[]): Promise<InstallReport> => {
  const { code, stdout, stderr } = await provider(action, ...args, '-o', 'json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as InstallReport;
};
const changing = () => ['--owner', ownerName, '--log-directory', logs, '--unit-directory', join(folder, 'units')];

interface Result {
  readonly id: string;
  readonly state: string;
  readonly evidence: string;
}
const checked = async (...args: string[]) => {
  const run = await provider('check', ...args, '-o', 'json');
  const parts = JSON.parse(run.stdout) as { readonly what: string; readonly results: readonly Result[] }[];
  const results = parts.flatMap((part) => part.results);
  return { ...run, results, of: (id: string) => results.find((each) => each.id === id) };
};

const own = (path: string): string => {
  if (isRoot) chownSync(path, owner.uid, owner.gid);
  return path;
};
const configFor = async (name: string, groupId: string): Promise<string> => {
  const issued = await registerApplication(openConsoleApi(server, server.adminToken), name, groupId);
  return writeConfig(name, issued);
};
const writeConfig = (name: string, issued: Pick<RegisteredApplication, 'config'>): string => {
  const path = join(folder, `${name}.toml`);
  const limits = 'connect_timeout_ms = 10000\ncall_timeout_ms = 30000\n';
  return own(writeProviderConfig(path, issued, { caFile: join(folder, 'ca.pem'), logDir: logs, extra: limits }));
};

/** A process that has the library loaded, as a database has. */
const loaded = async (): Promise<ChildProcess> => {
  const child = spawn('sleep', ['600'], { env: { ...process.env, LD_PRELOAD: layout.library }, stdio: 'ignore' });
  children.push(child);
  await until('the library is loaded', async () =>
    readFileSync(`/proc/${child.pid}/maps`, 'utf8').includes(layout.library) ? true : undefined,
  );
  return child;
};
const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, 'exit');
};

/** The real program with one file more: another build of it. */
const newer = (): Payload => {
  const real = gatherPayload();
  const changed = { ...real, agent: [...real.agent, { path: 'newer', mode: 0o644, content: Buffer.from('newer') }] };
  return { ...changed, version: '1.0.1', build: buildOf(changed) };
};
const upgradeTo = (payload: Payload, force = false): InstallReport =>
  upgrade({ layout, owner, logDirectory: logs, dryRun: false, force, unitFolder: null }, payload);

/** A real client that generates a key through the installed library, as the database's user. */
const makeKey = (
  label: string,
  file = conf,
  own: { readonly socket?: string; readonly root?: boolean } = {},
): string => {
  const as =
    isRoot && own.root !== true ? ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'] : [];
  const tool = ['pkcs11-tool', '--module', layout.library, '--login', '--pin', 'x'];
  const [command = '', ...args] = [...as, ...tool, '--keygen', '--key-type', 'AES:32', '--label', label];
  const environment = {
    PATH: process.env.PATH,
    DKE_PKCS11_CONF: file,
    DKE_PKCS11_SOCKET: own.socket ?? socket,
    DKE_AGENT_LOG_DIR: logs,
  };
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', cwd: '/', env: environment });
  return `${stdout}${stderr}`;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-provider-'));
  chmodSync(folder, 0o755);
  base = join(folder, 'extapi/64');
  layout = layoutOf('hsm', base);
  ownerName = isRoot ? 'daemon:daemon' : execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
  owner = parseOwner(ownerName);
  logs = join(folder, 'log');
  own(mkdirAnd(join(folder, 'run')));
  chmodSync(join(folder, 'run'), 0o700);
  socket = join(folder, 'run/agent.sock');
  server = await startServerProcess();
  copyFileSync(server.caFile, join(folder, 'ca.pem'));
  chmodSync(join(folder, 'ca.pem'), 0o644);
  const group = await createGroup(openConsoleApi(server, server.adminToken), 'finance');
  conf = await configFor('erp', group);
  await configFor('payroll', group);
  guid = /^access_token = "([^"]+)"$/m.exec(readFileSync(conf, 'utf8'))?.[1] ?? '';
  expect(guid).not.toBe('');
});
const mkdirAnd = (path: string): string => {
  mkdirSync(path, { recursive: true });
  return path;
};
afterAll(async () => {
  for (const child of children) await end(child);
  for (const [pid] of processesWith(socket)) await endProcess(pid);
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

describe('install', () => {
  test('as a dry run says every step and does none', async () => {
    const { steps, changed } = await reported('install', ...changing(), '--dry-run');
    expect(steps.join('\n')).toContain(`install ${layout.library}`);
    expect(changed).toBe(false);
    expect(existsSync(base)).toBe(false);
    const { stdout } = await provider('install', ...changing(), '-n');
    expect(stdout).toMatch(/^would make /);
  });

  test('lays library and agent down for the OS user of the database, mode 775', async () => {
    const { code, stdout, stderr } = await provider('install', ...changing());
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^installed {2}/m);
    for (const path of [layout.folder, layout.library, layout.agentScript]) {
      const { uid, gid, mode } = statSync(path);
      expect([uid, gid, mode & 0o777], path).toEqual([owner.uid, owner.gid, 0o775]);
    }
    const { uid, mode } = statSync(logs);
    expect([uid, mode & 0o777]).toEqual([owner.uid, 0o775]);
    // Nothing of the place where it was built.
    expect(readFileSync(layout.agentScript, 'utf8')).toContain("project=''\n");
  });

  test('repeated, has nothing to do', async () => {
    expect(await reported('install', ...changing())).toMatchObject({ changed: false, steps: [] });
  });

  test.runIf(isRoot)('by root needs to know whose database it is', async () => {
    const { code, stderr } = await provider('install', '--base', join(folder, 'elsewhere'));
    expect(code).toBe(exitCodes.config);
    expect(stderr).toMatch(/--owner oracle:oinstall/);
  });

  test('refuses a tree that holds another library, and names it', async () => {
    const other = join(base, 'hsm/other/2.0');
    mkdirSync(other, { recursive: true });
    symlinkSync('/nowhere', join(other, 'libother.so'));
    const { code, stderr } = await provider('install', ...changing());
    expect(code).toBe(exitCodes.refused);
    expect(stderr).toContain(join(other, 'libother.so'));
    expect((await checked('--conf', conf)).of('alone')).toMatchObject({ state: 'failed' });
    rmSync(join(base, 'hsm/other'), { recursive: true });
  });
});

describe('check', () => {
  test('of a host in order: from the files to a database’s first calls, with the agent that was installed', async () => {
    const { code, stdout, results, of } = await checked('--conf', conf);
    expect(results.filter(({ state }) => state === 'failed')).toEqual([]);
    expect(code).toBe(0);
    expect(stdout).not.toContain(guid);
    expect(of('calls')).toMatchObject({ state: 'ok' });
    const [[, agent] = [0, '']] = processesWith(socket);
    expect(agent).toContain(join(layout.folder, 'agent'));
    const text = await provider('check', '--conf', conf);
    expect(text.stdout).toMatch(/^the provider in .* passed all checks$/m);
    expect(text.stdout).toMatch(/^the database of .* passed all checks$/m);
  });

  test('a real client makes a key through the installed library', () => {
    expect(makeKey('INSTALLED')).toContain('INSTALLED');
  });

  test.each<[string, () => () => void, string, RegExp]>([
    [
      'a pkcs11.toml that others can read',
      () => {
        chmodSync(conf, 0o644);
        return () => chmodSync(conf, 0o600);
      },
      'configuration',
      /mode 644 gives other users access/,
    ],
    [
      'a library that any user can replace',
      () => {
        chmodSync(layout.library, 0o777);
        return () => chmodSync(layout.library, 0o775);
      },
      'place',
      /mode 777 instead of 775/,
    ],
    [
      'a program of the agent that was changed',
      () => {
        const path = join(layout.folder, 'agent', readFileSync(layout.agentName, 'utf8').trim(), 'package.json');
        const before = readFileSync(path);
        appendFileSync(path, ' ');
        return () => writeFileSync(path, before);
      },
      'whole',
      /package\.json changed or missing/,
    ],
    [
      'a library of nothing',
      () => {
        const before = readFileSync(layout.library);
        writeFileSync(layout.library, 'no library');
        return () => writeFileSync(layout.library, before);
      },
      'loads',
      /too short|invalid ELF|ELF header/,
    ],
  ])('with %s: the first line says so', async (_, spoil, id, words) => {
    const repair = spoil();
    try {
      const { code, of } = await checked('--conf', conf);
      expect(code).toBe(exitCodes['checks-failed']);
      expect(of(id)).toMatchObject({ state: 'failed' });
      expect(of(id)?.evidence).toMatch(words);
    } finally {
      repair();
    }
  });

  describe('of several databases', () => {
    const compared = async (...files: string[]) => {
      const run = await checked(...files.flatMap((file) => ['--conf', file]), '--distinct');
      return { ...run.of('blast-radius'), code: run.code, all: run.stdout + run.stderr };
    };
    const copyOf = (path: string, name: string): string => {
      copyFileSync(path, join(folder, name));
      return own(join(folder, name));
    };

    test('applications in groups of their own are distinct; in one group that is said', async () => {
      const api = openConsoleApi(server, server.adminToken);
      const sales = await configFor('sales', await createGroup(api, 'sales'));
      const apart = await compared(conf, sales);
      expect(apart).toMatchObject({
        state: 'ok',
        code: 0,
        evidence: '2 files: erp, sales are different applications in different groups, with different access_guids',
      });
      const payroll = join(folder, 'payroll.toml');
      expect(await compared(conf, payroll, sales)).toMatchObject({
        state: 'warning',
        code: 0,
        evidence: expect.stringContaining(`but ${conf}, ${payroll} are in one group`),
      });
    });

    test('an access_guid that two have is a fault', async () => {
      const copy = copyOf(conf, 'copy.toml');
      const { of } = await checked('--conf', conf, '--conf', copy);
      expect(of('blast-radius')).toMatchObject({ state: 'warning' });
      const strict = await compared(conf, join(folder, 'payroll.toml'), copy);
      expect(strict).toMatchObject({
        state: 'failed',
        code: exitCodes['checks-failed'],
        evidence: `${conf}, ${copy} share one access_guid`,
      });
      expect(strict.all).not.toContain(guid);
      // Who compares two hosts by eye sees it too.
      const addresses = [...strict.all.matchAll(/\/tde\/v1\/(\*{3}[0-9a-f]{8})\//g)].map(([, mask]) => mask);
      expect(addresses).toHaveLength(3);
      expect(new Set(addresses).size).toBe(2);
    });

    test('two access_guids of one application are a fault', async () => {
      const api = openConsoleApi(server, server.adminToken);
      const issued = await registerApplication(api, 'rotated', await createGroup(api, 'rotated'));
      const first = writeConfig('rotated', issued);
      const { id } = issued.application;
      const again = await api.call<RegisteredApplication>('POST', `/api/tde/applications/${id}/access-guids`, {});
      const second = writeConfig('rotated-again', again);
      expect(await compared(first, second)).toMatchObject({
        state: 'failed',
        code: exitCodes['checks-failed'],
        evidence: `${first}, ${second} have different access_guids of one application, rotated`,
      });
      // Without the service it is not known, and not called distinct.
      const [cut, other] = [copyOf(second, 'cut.toml'), copyOf(conf, 'cut-erp.toml')];
      for (const path of [cut, other])
        writeFileSync(path, readFileSync(path, 'utf8').replace(/https:\/\/[^/]+\//, 'https://127.0.0.1:9/'));
      expect(await compared(cut, other)).toMatchObject({
        state: 'failed',
        evidence: expect.stringContaining('the application is not known'),
      });
    });

    test('one file alone is not called distinct', async () => {
      expect(await compared(conf)).toMatchObject({
        state: 'failed',
        code: exitCodes['checks-failed'],
        evidence: 'one pkcs11.toml was named: nothing was compared',
      });
      expect((await checked('--conf', conf)).code).toBe(0);
    });
  });
});

describe('upgrade and rollback', () => {
  test('are refused while a process has the library loaded, which is named', async () => {
    const database = await loaded();
    const named = new RegExp(`a process has the library loaded: ${database.pid} \\(sleep\\).*downtime`);
    expect(() => upgradeTo(newer())).toThrow(named);
    const { of } = await checked('--conf', conf);
    expect(of('users')?.evidence).toMatch(/^loaded by one process/);
    const { code, stderr } = await provider('uninstall', ...changing());
    expect(code).toBe(exitCodes.refused);
    expect(stderr).toMatch(named);

    expect(upgradeTo(newer(), true).remarks.join('\n')).toContain('each uses the old file until it ends');
    const after = await checked('--conf', conf);
    expect(after.of('users')).toMatchObject({ state: 'warning' });
    expect(after.of('users')?.evidence).toContain(`${database.pid} (sleep) still has a replaced library loaded`);
    await end(database);
  });

  test('the agent that runs serves the new library; the next one is the new program', async () => {
    expect(makeKey('UPGRADED')).toContain('UPGRADED');
    for (const [pid] of processesWith(socket)) await endProcess(pid);
    expect(makeKey('UPGRADED-AGENT')).toContain('UPGRADED-AGENT');
    const [[, agent] = [0, '']] = processesWith(socket);
    expect(agent).toContain(readFileSync(layout.agentName, 'utf8').trim());
    expect((await checked('--conf', conf)).of('installed')?.evidence).toMatch(
      /^version 1\.0\.1, .* is kept for a rollback$/,
    );
  });

  test('a rollback brings the build before back, which works', async () => {
    const upgraded = readFileSync(layout.agentName, 'utf8').trim();
    expect(await reported('rollback', ...changing())).toMatchObject({
      previous: upgraded,
      version: expect.not.stringMatching('1.0.1'),
    });
    for (const [pid] of processesWith(socket)) await endProcess(pid);
    expect(makeKey('ROLLED-BACK')).toContain('ROLLED-BACK');
  });
});

describe('systemd', () => {
  test('units are written for the OS user of the database, and stand up to systemd-analyze', async () => {
    const units = join(folder, 'units');
    mkdirSync(units);
    const { remarks } = await reported('install', ...changing(), '--systemd');
    const service = readFileSync(join(units, 'dke-agent.service'), 'utf8');
    expect(service).toContain(`ExecStart=${layout.agentScript}\nUser=${owner.user}\nGroup=${owner.group}\n`);
    if (!existsSync('/run/systemd/system'))
      expect(remarks.join('\n')).toContain('systemctl enable --now dke-agent.socket');
    const { status, stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', ...readdirSync(units).map((name) => join(units, name))],
      { encoding: 'utf8' },
    );
    if (status === null) console.info('systemd-analyze is not installed: the units were not verified');
    else
      expect({ status, said: `${stdout}${stderr}`.split('\n').filter((line) => line.includes('dke-agent')) }).toEqual({
        status: 0,
        said: [],
      });
  });

  test('the agent takes over a socket that it is handed, and serves a database on it', async () => {
    for (const [pid] of processesWith(socket)) await endProcess(pid);
    const activate = '/usr/bin/systemd-socket-activate';
    if (!existsSync(activate))
      return console.info('systemd-socket-activate is not installed: no socket was handed over');
    rmSync(socket, { force: true });
    const as = isRoot ? ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'] : [];
    const [command = '', ...args] = [
      ...as,
      activate,
      '-l',
      socket,
      `--setenv=DKE_AGENT_LOG_DIR=${logs}`,
      layout.agentScript,
    ];
    const activator = spawn(command, args, { cwd: '/', stdio: 'ignore' });
    children.push(activator);
    await until('systemd listens', async () => (existsSync(socket) ? true : undefined));
    expect(makeKey('ACTIVATED')).toContain('ACTIVATED');
    // The activator has become the agent, and none was started next to it.
    expect(readFileSync(`/proc/${activator.pid}/cmdline`, 'utf8')).toContain(join(layout.folder, 'agent'));
    expect(
      readdirSync(logs)
        .map((name) => readFileSync(join(logs, name), 'utf8'))
        .join(''),
    ).toContain('"socket":"systemd"');
    await end(activator);
    rmSync(socket, { force: true });
  });

  test('a database that comes first waits for the agent that systemd is starting, longer than for one that runs', () => {
    const spaces = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const [command = '', ...args] = spaces;
    const possible = spawnSync(command, [...args, 'true']).status === 0;
    if (!possible || !existsSync('/usr/bin/systemd-socket-activate'))
      return console.info('skipped: it takes systemd-socket-activate, and root that may make process name spaces');
    const hasty = join(folder, 'hasty.toml');
    writeFileSync(
      hasty,
      readFileSync(conf, 'utf8').replace('connect_timeout_ms = 10000', 'connect_timeout_ms = 1000'),
      {
        mode: 0o600,
      },
    );
    // In a name space of its own the activator is process 1, as systemd is, and becomes an agent
    // that is slow to start.
    const script = `
      (until [ -S "$SOCKET" ]; do sleep 0.05; done
       DKE_PKCS11_CONF="$CONF" DKE_PKCS11_SOCKET="$SOCKET" pkcs11-tool --module "$LIBRARY" --login --pin x \\
         --keygen --key-type AES:32 --label SLOW-START >"$OUT" 2>&1
       kill -TERM 1) &
      exec systemd-socket-activate -l "$SOCKET" --setenv=DKE_AGENT_LOG_DIR="$LOGS" \\
        sh -c "sleep 1.5; exec $AGENT"`;
    const out = join(folder, 'slow-start');
    spawnSync(command, [...args, 'sh', '-c', script], {
      stdio: 'ignore',
      timeout: 600_000,
      killSignal: 'SIGKILL',
      env: {
        PATH: process.env.PATH,
        SOCKET: join(folder, 'slow.sock'),
        CONF: hasty,
        LIBRARY: layout.library,
        AGENT: layout.agentScript,
        LOGS: join(folder, 'slow-log'),
        OUT: out,
      },
    });
    expect(readFileSync(out, 'utf8')).toContain('SLOW-START');
  });
});

describe.runIf(isRoot)('root, on behalf of the owner of pkcs11.toml', () => {
  const endAgents = async (at: string): Promise<void> => {
    for (const [pid] of processesWith(at)) await endProcess(pid);
  };

  test("starts an agent that is the owner's in all it has and makes, and the database continues with it", async () => {
    const at = join(folder, 'run/root.sock');
    const before = readdirSync(logs);
    expect(makeKey('BY-ROOT', conf, { socket: at, root: true })).toContain('BY-ROOT');
    const [[pid] = [0], ...more] = processesWith(at);
    expect(more).toEqual([]);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const ids = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim().split(/\s+/).map(Number);
    expect(ids('Uid')).toEqual(Array(4).fill(owner.uid));
    expect(ids('Gid')).toEqual(Array(4).fill(owner.gid));
    expect(ids('Groups')).toEqual([owner.gid]);
    expect(/^CapEff:\s*(\w+)$/m.exec(status)?.[1]).toMatch(/^0+$/);
    const laid = readdirSync(logs).filter((name) => !before.includes(name));
    const made = [at, `${at}.lock`, ...laid.map((name) => join(logs, name))];
    for (const path of made) expect([path, statSync(path).uid]).toEqual([path, owner.uid]);
    expect(makeKey('BY-OWNER', conf, { socket: at })).toContain('BY-OWNER');
    expect(processesWith(at).map(([each]) => each)).toEqual([pid]);
    await endAgents(at);
  });

  test('uses the agent that the database has started', async () => {
    const at = join(folder, 'run/database.sock');
    expect(makeKey('FIRST', conf, { socket: at })).toContain('FIRST');
    const pids = processesWith(at).map(([pid]) => pid);
    expect(makeKey('SECOND', conf, { socket: at, root: true })).toContain('SECOND');
    expect(processesWith(at).map(([pid]) => pid)).toEqual(pids);
    await endAgents(at);
  });

  test('writes nothing where the owner may not: neither a log nor a lock', async () => {
    const secret = mkdirAnd(join(folder, 'of-root'));
    chmodSync(secret, 0o755);
    const run = own(mkdirAnd(join(folder, 'run/own')));
    const at = join(run, 'agent.sock');
    const file = join(folder, 'log-elsewhere.toml');
    writeFileSync(
      file,
      `${readFileSync(conf, 'utf8').replace(/^log_dir = .*$/m, `log_dir = "${secret}"`)}nonsense = 1\n`,
      {
        mode: 0o600,
      },
    );
    own(file);
    symlinkSync(join(secret, 'lock'), `${at}.lock`);
    expect(makeKey('NEVER', file, { socket: at, root: true })).toContain('CKR_DEVICE_REMOVED');
    rmSync(`${at}.lock`);
    expect(makeKey('NEVER', file, { socket: at, root: true })).toContain('CKR_DEVICE_ERROR');
    expect(readdirSync(secret)).toEqual([]);
    await endAgents(at);
  });
});

describe('uninstall', () => {
  test('removes what was installed, and says what stays', async () => {
    // What systemd leaves of the socket when it is stopped.
    const system = '/run/dke-pkcs11';
    if (isRoot) {
      mkdirSync(system, { recursive: true });
      writeFileSync(join(system, 'agent.sock'), '');
    }
    expect(readFileSync(join(folder, 'units/dke-agent.socket'), 'utf8')).not.toContain('RemoveOnStop');
    const { remarks } = await reported('uninstall', ...changing(), '--conf', conf);
    expect(existsSync(join(base, 'hsm'))).toBe(false);
    expect(existsSync(join(base, 'dke-provider'))).toBe(false);
    expect(readdirSync(join(folder, 'units'))).toEqual([]);
    // Other tests may have folders of their own there.
    if (isRoot && existsSync(system)) expect(readdirSync(system)).not.toHaveLength(0);
    expect(existsSync(join(system, 'agent.sock'))).toBe(false);
    expect(remarks.join('\n')).toContain(`stays: ${conf}, ${logs}`);
    expect(existsSync(conf)).toBe(true);
    const { code } = await provider('uninstall', ...changing());
    expect(code).toBe(exitCodes['not-found']);
  });

  test('is possible after another owner was named, which is refused; with --purge takes pkcs11.toml and the logs along', async () => {
    await reported('install', ...changing());
    for (const action of isRoot ? ['install', 'upgrade', 'uninstall'] : []) {
      const { code, stderr } = await provider(action, ...changing(), '--owner', 'bin:bin');
      expect([action, code, stderr]).toEqual([
        action,
        exitCodes.refused,
        expect.stringContaining(`--owner ${ownerName}`),
      ]);
    }
    await reported('uninstall', ...changing(), '--conf', join(folder, 'copy.toml'), '--purge');
    expect(existsSync(join(base, 'dke-provider'))).toBe(false);
    expect([join(folder, 'copy.toml'), logs, conf].map(existsSync)).toEqual([false, false, true]);
  });
});

describe.runIf(isRoot)('a directory for PKCS11_LIBRARY_LOCATION', () => {
  const strict = () => ['--layout', 'pkcs11', ...changing()];

  test('belongs to root alone, and its check says what Oracle would refuse', async () => {
    const { remarks } = await reported('install', ...strict());
    const { library } = layoutOf('pkcs11', base);
    expect(remarks.join('\n')).toContain(`PKCS11_LIBRARY_LOCATION='${library}'`);
    const { uid, mode } = statSync(library);
    expect([uid, mode & 0o777]).toEqual([0, 0o755]);
    // The path is the test's own and not Oracle's, which is reported and is not a fault.
    const args = ['--layout', 'pkcs11', '--owner', ownerName];
    expect((await checked(...args)).of('place')).toMatchObject({ state: 'warning' });
    chownSync(join(base, 'pkcs11/dke'), owner.uid, owner.gid);
    expect((await checked(...args)).of('place')?.evidence).toMatch(/can be changed by users other than root/);
    chownSync(join(base, 'pkcs11/dke'), 0, 0);
    const link = join(folder, 'link');
    symlinkSync(base, link);
    expect((await checked(...args, '--base', link)).of('place')?.evidence).toMatch(/link is a symbolic link/);
  });

  test('and the hsm directory of a database user are removed one by one, each by root', async () => {
    await reported('install', ...changing());
    await reported('upgrade', ...changing());
    await reported('uninstall', ...changing());
    expect(readdirSync(join(base, 'dke-provider'))).toEqual(['pkcs11']);
    await reported('uninstall', ...strict());
    expect(existsSync(join(base, 'dke-provider'))).toBe(false);
  });

  test('has a path of at most 255 characters', async () => {
    const { code, stderr } = await provider('install', ...strict(), '--base', join(folder, 'x'.repeat(240)));
    expect(code).toBe(exitCodes.config);
    expect(stderr).toMatch(/more than 255 characters/);
  });
});
