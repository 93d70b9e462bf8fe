// The packages of the real builder. Those for Debian are unpacked and configured by the real dpkg
// into a separate folder (no file of this system changes), then used: the packaged service, the
// packaged command, the library that the packaged provider installs. Both kinds in another root:
// test/scenario/old-system.test.ts.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { notParts } from '../../provider/packaging/sbom.ts';
import { readRunbooks } from '../../server/adapters/runbooks/read-runbooks.ts';
import { missingVersions } from '../support/elf.ts';
import { endProcess, processesWith, until } from '../support/host.ts';
import { installed } from '../support/tools.ts';

const builder = resolve(import.meta.dirname, '../../provider/packaging/main.ts');
const isRoot = process.getuid?.() === 0;
const canRun = isRoot && installed('dpkg', 'dpkg', 'dpkg-deb') && installed('rpm', 'rpmbuild', 'rpm');
if (!canRun) console.info('the packages are not tested: it takes root, dpkg and rpm');
/** The packages with programs. */
const names = ['dke-server', 'dke-provider'] as const;
const allNames = [...names, 'dke-mariadb'];

let folder: string;
let system: string;
let service: ChildProcess | undefined;
let url = '';

const dpkg = (...args: string[]): string => {
  const options = [
    `--root=${system}`,
    `--log=${join(folder, 'dpkg.log')}`,
    '--force-script-chrootless',
    '--force-depends',
    '--force-confold',
    '--force-unsafe-io',
  ];
  const { status, stdout, stderr } = spawnSync('dpkg', [...options, ...args], { encoding: 'utf8', cwd: '/' });
  // An unmet dependency is a warning here: the folder has no other package.
  if (status !== 0) throw new Error(`dpkg ${args.join(' ')}: ${stderr}`);
  return stdout;
};
const stateOf = (name: string): string | undefined => {
  const { stdout } = spawnSync('dpkg-query', [`--root=${system}`, '-s', name], { encoding: 'utf8' });
  return /^Status: (.*)$/m.exec(stdout)?.[1];
};
const packaged = (name: (typeof names)[number], ...path: string[]): string => join(system, 'usr/lib', name, ...path);
const dke = (name: (typeof names)[number], ...args: string[]): string =>
  execFileSync(packaged(name, 'bin/dke'), args, {
    encoding: 'utf8',
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      DKE_SERVER: url,
      DKE_CA_FILE: join(folder, 'ca.pem'),
      DKE_TOKEN_FILE: join(folder, 'administrator-token'),
      DKE_AGENT_LOG_DIR: join(folder, 'log'),
      DKE_PKCS11_SOCKET: join(folder, 'agent.sock'),
    },
  });

/** A real client that generates a key, as the given user. */
const makeKey = (library: string, user: number, socket: string, label: string): string => {
  const tool = [
    'pkcs11-tool',
    '--module',
    library,
    '--login',
    '--pin',
    'x',
    '--keygen',
    '--key-type',
    'AES:32',
    '--label',
    label,
  ];
  const as = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const { stdout, stderr } = spawnSync('setpriv', [...as, ...tool], {
    encoding: 'utf8',
    cwd: '/',
    env: {
      PATH: process.env.PATH,
      DKE_PKCS11_CONF: join(folder, 'pkcs11.toml'),
      DKE_PKCS11_SOCKET: socket,
      DKE_AGENT_LOG_DIR: join(folder, 'log'),
    },
  });
  return `${stdout}${stderr}`;
};

beforeAll(() => {
  if (!canRun) return;
  folder = mkdtempSync(join(tmpdir(), 'dke-packages-'));
  chmodSync(folder, 0o755);
  system = join(folder, 'system');
  for (const each of [
    'var/lib/dpkg/info',
    'var/lib/dpkg/updates',
    'var/lib/dpkg/alternatives',
    'etc/alternatives',
    'usr/bin',
  ])
    mkdirSync(join(system, each), { recursive: true });
  writeFileSync(join(system, 'var/lib/dpkg/status'), '');
  execFileSync(process.execPath, [builder, '--fast', '--out', join(folder, 'packages')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
});
afterAll(async () => {
  if (!canRun) return;
  if (service !== undefined && service.exitCode === null) {
    service.kill();
    await once(service, 'exit');
  }
  for (const [pid] of processesWith(join(folder, 'agent.sock'))) await endProcess(pid);
  rmSync(folder, { recursive: true, force: true });
});

test.runIf(canRun)('are installed by dpkg: files, users, configuration, and one dke command of two', () => {
  const all = readdirSync(join(folder, 'packages'));
  const files = all.filter((name) => name.endsWith('.deb')).map((name) => join(folder, 'packages', name));
  expect(files).toHaveLength(3);
  expect(all.filter((name) => !/[.](deb|rpm|oci[.]tar|cdx[.]json)$/.test(name))).toEqual([
    'SHA256SUMS',
    'dke-1.0.0.provenance.json',
  ]);
  const sums = spawnSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: join(folder, 'packages'), encoding: 'utf8' });
  expect(sums.stdout.match(/: OK$/gm), sums.stderr).toHaveLength(12);
  const said = dpkg('--install', ...files);
  for (const name of allNames) expect(stateOf(name)).toBe('install ok installed');
  expect(said).toContain('dke provider install --owner');
  const users = readFileSync(join(system, 'etc/passwd'), 'utf8');
  expect(users).toMatch(/^dke:.*:\/var\/lib\/dke:.*nologin$/m);
  expect(users).toMatch(/^dke-agent:/m);
  expect(readlinkSync(join(system, 'etc/alternatives/dke'))).toBe('/usr/lib/dke-server/bin/dke');
  expect(readlinkSync(join(system, 'usr/bin/dke'))).toBe('/etc/alternatives/dke');
  // The manual page and completion go with the command.
  expect(readlinkSync(join(system, 'etc/alternatives/dke.1.gz'))).toBe('/usr/lib/dke-server/share/dke.1.gz');
  const shellLinks = ['man/man1/dke.1.gz', 'bash-completion/completions/dke', 'zsh/site-functions/_dke'];
  for (const link of [...shellLinks, 'fish/vendor_completions.d/dke.fish'])
    expect(readlinkSync(join(system, 'usr/share', link))).toMatch(/^\/etc\/alternatives\/dke\./);
  expect(existsSync(packaged('dke-provider', 'share/dke.1.gz'))).toBe(true);
  expect(existsSync(join(system, 'usr/lib/mysql/plugin/dke_key_management.so'))).toBe(true);
  expect(existsSync(join(system, 'usr/share/java/dke-jce.jar'))).toBe(true);
  for (const name of names)
    expect(readRunbooks(packaged(name, 'dist/server/adapters/runbooks/runbooks'))).toEqual(readRunbooks());
  // Files that only a build needs are not included, and licences are.
  expect(existsSync(packaged('dke-server', 'node_modules/cmake-js'))).toBe(false);
  expect(existsSync(packaged('dke-server', 'node_modules/vitest'))).toBe(false);
  for (const name of names) {
    const doc = join(system, 'usr/share/doc', name);
    for (const file of ['copyright', 'licences-of-packages.gz', 'licences-of-node.gz'])
      expect(existsSync(join(doc, file)), file).toBe(true);
    expect(readFileSync(join(doc, 'copyright'), 'utf8')).toContain('License: Apache-2.0\n');
    const { uid, gid, mode } = statSync(packaged(name, 'bin/dke'));
    expect([uid, gid, mode & 0o7777]).toEqual([0, 0, 0o755]);
  }
  const ofPlugin = readFileSync(join(system, 'usr/share/doc/dke-mariadb/copyright'), 'utf8');
  expect(ofPlugin).toContain('License: Apache-2.0 or GPL-2.0-or-later');
  expect(ofPlugin).toContain('/usr/share/common-licenses/GPL-2.');
});

test.runIf(canRun)('ask for no newer libraries than the oldest systems have', () => {
  for (const name of allNames) {
    const file = readdirSync(join(folder, 'packages')).find((each) => each.startsWith(`${name}-`)) as string;
    const wanted = execFileSync('rpm', ['--query', '--package', '--requires', join(folder, 'packages', file)], {
      encoding: 'utf8',
    });
    expect(wanted).toContain('GLIBC_');
    expect(missingVersions(wanted), file).toEqual([]);
  }
});

type Part = Readonly<Record<'bom-ref', string>>;
interface Bill {
  readonly components: readonly Item[];
}
interface Item {
  readonly name: string;
  readonly purl: string;
  readonly version?: string;
  readonly components?: readonly Item[];
}

test.runIf(canRun)('list everything of others that is inside them', () => {
  const read = (name: string): Bill =>
    JSON.parse(readFileSync(join(system, 'usr/share/doc', name, 'sbom.cdx.json'), 'utf8')) as Bill;
  const server = read('dke-server').components;
  // From npm's own list of installed packages.
  const npm = join(process.execPath, '../../lib/node_modules/npm/bin/npm-cli.js');
  const program = existsSync(npm) ? [process.execPath, npm] : ['npm'];
  const text = spawnSync(program[0] as string, [...program.slice(1), 'sbom', '--sbom-format', 'cyclonedx'], {
    cwd: resolve(import.meta.dirname, '../..'),
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const known = new Set((JSON.parse(text.stdout) as Bill).components.map(({ purl }) => purl));
  const ofNpm = server.filter(({ purl }) => purl.startsWith('pkg:npm/'));
  expect(ofNpm.filter(({ purl }) => !known.has(purl))).toEqual([]);
  // Packages in the console's pages count, and build dependencies do not.
  const names = ofNpm.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['hono', 'kysely', 'react', 'react-dom', 'radix-ui', 'uplot']));
  for (const each of ['vite', 'cmake-js', 'vitest', 'typescript']) expect(names).not.toContain(each);
  // Every folder of a package that was installed is listed.
  const installedPackages = readdirSync(packaged('dke-server', 'node_modules'), { withFileTypes: true }).flatMap(
    ({ name }) =>
      name.startsWith('@')
        ? readdirSync(packaged('dke-server', 'node_modules', name)).map((each) => `${name}/${each}`)
        : [name],
  );
  expect(installedPackages.filter((each) => !names.includes(each))).toEqual([]);
  // The Node of this process says what is built into it, with the version of each.
  const parts = server.find(({ name }) => name === 'node')?.components ?? [];
  const built = Object.entries(process.versions).filter(([name, version]) => !notParts.has(name) && version !== '');
  expect(built.length).toBeGreaterThan(10);
  expect(parts.map(({ name, version }) => [name, version])).toEqual(
    built.toSorted(([one], [other]) => (one < other ? -1 : 1)),
  );
  expect(parts.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['llhttp', 'nghttp2', 'openssl', 'sqlite', 'undici', 'uv', 'v8', 'zlib']),
  );
  for (const { name, version } of server.filter(({ purl }) => !purl.startsWith('pkg:npm/')))
    expect(version, name).toMatch(/^(\d+:)?\d+\.\d+/);
  expect(read('dke-mariadb').components.map(({ name }) => name)).toEqual(['mysqlservices']);
});

test.runIf(canRun)('have bills of materials that the published schema of CycloneDX 1.5 accepts', async () => {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5);
  const bills = readdirSync(join(folder, 'packages')).filter((name) => name.endsWith('.cdx.json'));
  expect(bills.map((name) => name.replace(/_.*/, '')).sort()).toEqual([...allNames, 'dke-image'].sort());
  for (const name of bills) {
    const text = readFileSync(join(folder, 'packages', name), 'utf8');
    expect(await validator.validate(text), name).toBeNull();
    // A missing or empty schema would also accept these.
    const bill = JSON.parse(text) as {
      readonly components: readonly (Part & { readonly components?: readonly Part[] })[];
      readonly dependencies: readonly { readonly dependsOn: readonly string[] }[];
    };
    // Who needs whom names only what is listed.
    const refs = bill.components.flatMap((each) => [each, ...(each.components ?? [])]).map((each) => each['bom-ref']);
    const needed = bill.dependencies.flatMap(({ dependsOn }) => dependsOn);
    expect(needed.length).toBeGreaterThan(0);
    expect(needed.filter((each) => !refs.includes(each))).toEqual([]);
    const [first, ...others] = bill.components;
    const damaged = [
      { ...bill, specVersion: 1.5 },
      { ...bill, serialNumber: 'urn:uuid:0' },
      { ...bill, components: [{ ...first, name: undefined }, ...others] },
      { ...bill, components: [{ ...first, licenses: [{ license: { id: 'no licence of SPDX' } }] }, ...others] },
      { ...bill, unknown: true },
    ];
    for (const each of damaged) expect(await validator.validate(JSON.stringify(each)), name).not.toBeNull();
  }
});

test.runIf(canRun)('are the same bytes from another path, with another umask, time zone and locale', () => {
  const project = resolve(import.meta.dirname, '../..');
  const other = join(folder, 'another place');
  const parts = ['addon', 'dist', 'docs', 'provider', 'server', 'build/Release', 'build/provider', 'CHANGELOG.md'];
  for (const each of [...parts, 'package.json', 'package-lock.json'])
    cpSync(join(project, each), join(other, each), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(other, 'node_modules'));
  const make = (root: string, umask: string, environment: NodeJS.ProcessEnv): string => {
    const out = join(root === project ? folder : other, 'same');
    execFileSync(
      'sh',
      [
        '-c',
        `umask ${umask}; exec "$@"`,
        'sh',
        process.execPath,
        join(root, 'provider/packaging/main.ts'),
        ...['--only', 'dke-provider', '--out', out],
      ],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...environment, SOURCE_DATE_EPOCH: '1700000000' },
      },
    );
    // A folder without a repository does not know its commit, which the statement of provenance
    // names.
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8');
    return sums.replace(/^.*[.]provenance[.]json\n/m, '');
  };
  const first = make(project, '022', { TZ: 'UTC', LC_ALL: 'C' });
  expect(first.split('\n')).toHaveLength(4);
  expect(make(other, '077', { TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8' })).toBe(first);
});

test.runIf(canRun)('are not made without what they need, and the line that helps is printed', () => {
  const empty = join(folder, 'no-tools');
  mkdirSync(empty);
  const { status, stderr } = spawnSync(process.execPath, [builder, '--out', join(folder, 'none')], {
    encoding: 'utf8',
    env: { PATH: empty },
  });
  expect(status).toBe(1);
  expect(stderr).toContain('rpmbuild is not installed: apt-get install -y --no-install-recommends rpm;');
  expect(existsSync(join(folder, 'none'))).toBe(false);
});

test.runIf(canRun)('name no place of the project that made them', () => {
  const project = resolve(import.meta.dirname, '../..');
  const texts = ['1.0/dke-agent', 'bin/dke', 'package.json', '1.0/libdke_pkcs11.so', 'dke_core.node'];
  for (const path of texts) expect(readFileSync(packaged('dke-provider', path)).includes(project), path).toBe(false);
});

test.runIf(canRun)('units pass systemd-analyze', () => {
  const units = ['dke-server.service', 'dke-agent.service', 'dke-agent.socket'].map((name) =>
    join(system, 'usr/lib/systemd/system', name),
  );
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...units], {
    encoding: 'utf8',
  });
  if (status === null) return console.info('systemd-analyze is not installed: the units were not verified');
  // The programs lie in another root.
  const said = `${stdout}${stderr}`
    .split('\n')
    .filter((line) => line.includes('dke-') && !/is not executable: No such file/.test(line));
  expect(said).toEqual([]);
});

test.runIf(canRun)('the packaged service starts, and its first token is in a file and in no log', async () => {
  const config = join(folder, 'dke.toml');
  const token = join(folder, 'administrator-token');
  writeFileSync(
    config,
    readFileSync(join(system, 'etc/dke/dke.toml'), 'utf8')
      .replace('port = 443', 'port = 0')
      .replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
      .replace('"/var/lib/dke/data"', JSON.stringify(join(folder, 'data'))),
  );
  const started = spawn(packaged('dke-server', 'bin/dke'), ['server', '--config', config, '--token-out', token], {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  service = started;
  let said = '';
  started.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  for await (const line of createInterface({ input: started.stdout })) {
    said += `${line}\n`;
    if (line.startsWith('listening on ')) {
      url = line.slice('listening on '.length);
      break;
    }
  }
  expect(url, said).toMatch(/^https:/);
  started.stdout.resume();
  expect(statSync(token).mode & 0o777).toBe(0o600);
  const secret = readFileSync(token, 'utf8').trim();
  expect(secret).toMatch(/^dket_/);
  expect(said).toContain(`administrator token: in ${token}\n`);
  expect(said).not.toContain(secret);
  writeFileSync(join(folder, 'ca.pem'), readFileSync(join(folder, 'data/tls.crt')), { mode: 0o644 });
  expect(dke('dke-server', 'status')).toMatch(/^health\.healthy\s+true$/m);
  const pages = await fetchPages();
  expect(pages).toContain('<html');
});
/** The console's pages are part of the service. */
const fetchPages = async (): Promise<string> =>
  execFileSync('curl', ['--silent', '--cacert', join(folder, 'ca.pem'), `${url}/`], { encoding: 'utf8' });

test.runIf(canRun)('the packaged provider installs, is in order, and a real client makes a key through it', () => {
  dke('dke-server', 'tde', 'group', 'create', 'finance');
  const conf = join(folder, 'pkcs11.toml');
  dke(
    'dke-server',
    'tde',
    'app',
    'register',
    'erp',
    '--group',
    'finance',
    '--out',
    conf,
    '--database-ca-file',
    join(folder, 'ca.pem'),
  );
  appendFileSync(
    conf,
    `log_dir = ${JSON.stringify(join(folder, 'log'))}\nconnect_timeout_ms = 10000\ncall_timeout_ms = 30000\n`,
  );
  chownSync(conf, 1, 1);
  const base = join(folder, 'extapi/64');
  const place = ['--base', base, '--owner', '1:1'];
  expect(dke('dke-provider', 'provider', 'install', ...place, '--log-directory', join(folder, 'log'))).toMatch(
    /^installed {2}/m,
  );
  mkdirSync(join(folder, 'run'));
  chmodSync(join(folder, 'run'), 0o700);
  chownSync(join(folder, 'run'), 1, 1);
  const library = join(base, 'hsm/dke/1.0/libdke_pkcs11.so');
  expect(makeKey(library, 1, join(folder, 'run/agent.sock'), 'PACKAGED')).toContain('PACKAGED');
  const [[pid, agent] = [0, '']] = processesWith(join(folder, 'run/agent.sock'));
  expect(agent).toContain(join(base, 'hsm/dke/1.0/agent'));
  process.kill(pid);
  expect(dke('dke-server', 'tde', 'key', 'list', 'erp')).toContain('PACKAGED');
});

test.runIf(canRun)(
  'the packaged agent, by its socket and under its own user, serves a database of another user',
  async () => {
    const activate = '/usr/bin/systemd-socket-activate';
    if (!existsSync(activate))
      return console.info('systemd-socket-activate is not installed: no socket was handed over');
    const [, uid = ''] = /^dke-agent:[^:]*:(\d+):/m.exec(readFileSync(join(system, 'etc/passwd'), 'utf8')) ?? [];
    const socket = join(folder, 'shared.sock');
    const logs = join(folder, 'agent-log');
    mkdirSync(logs);
    chownSync(logs, Number(uid), Number(uid));
    // The agent runs as its unit has it: systemd listens, the agent has its user's rights and may
    // open files as other users.
    const unit = readFileSync(join(system, 'usr/lib/systemd/system/dke-agent.service'), 'utf8');
    expect(unit).toContain('AmbientCapabilities=CAP_SETUID CAP_SETGID');
    const caps = ['--inh-caps=+setuid,+setgid', '--ambient-caps=+setuid,+setgid'];
    const as = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', ...caps];
    const program = packaged('dke-provider', '1.0/dke-agent');
    const activator = spawn(activate, ['-l', socket, `--setenv=DKE_AGENT_LOG_DIR=${logs}`, ...as, program], {
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    activator.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    try {
      await until('systemd listens', async () => (existsSync(socket) ? true : undefined));
      chmodSync(socket, 0o666);
      expect(makeKey(packaged('dke-provider', '1.0/libdke_pkcs11.so'), 1, socket, 'SHARED-AGENT'), said).toContain(
        'SHARED-AGENT',
      );
      // pkcs11.toml belongs to user 1: no other user's process is served by it.
      expect(makeKey(packaged('dke-provider', '1.0/libdke_pkcs11.so'), 2, socket, 'FOREIGN')).not.toContain('FOREIGN');
      expect(statSync(`/proc/${activator.pid}`).uid).toBe(Number(uid));
    } finally {
      activator.kill();
      await once(activator, 'exit');
    }
  },
);

test.runIf(canRun)(
  'an upgrade keeps a configuration that was changed; a removal keeps it and the keys; a purge says what stays',
  async () => {
    const config = join(system, 'etc/dke/dke.toml');
    appendFileSync(config, '# changed\n');
    mkdirSync(join(system, 'var/lib/dke/data'), { recursive: true });
    writeFileSync(join(system, 'var/lib/dke/data/root.key'), 'stands for a root key');
    dpkg(
      '--install',
      ...readdirSync(join(folder, 'packages'))
        .filter((name) => name.startsWith('dke-server') && name.endsWith('.deb'))
        .map((name) => join(folder, 'packages', name)),
    );
    expect(readFileSync(config, 'utf8')).toMatch(/# changed\n$/);

    dpkg('--remove', 'dke-server');
    expect(stateOf('dke-server')).toBe('deinstall ok config-files');
    expect(readFileSync(config, 'utf8')).toMatch(/# changed\n$/);
    // The other package's command takes over.
    expect(readlinkSync(join(system, 'etc/alternatives/dke'))).toBe('/usr/lib/dke-provider/bin/dke');
    const said = dpkg('--purge', ...allNames);
    expect(said).toContain('dke-server: what stays: /var/lib/dke with the keys');
    expect(existsSync(config)).toBe(false);
    expect(existsSync(join(system, 'var/lib/dke/data/root.key'))).toBe(true);
    expect(existsSync(join(system, 'usr/bin/dke'))).toBe(false);
    // The programs are removed completely.
    expect(
      readdirSync(join(system, 'usr'), { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('dke')),
    ).toEqual([]);
  },
);
