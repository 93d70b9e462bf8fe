// The packages, of both kinds and with their scripts, in the root file system of an older release
// with its C and C++ libraries: they are installed, the service starts, its command registers a
// database, the library starts its agent, a client encrypts and decrypts, and an upgrade and a
// removal keep configuration and data.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isElf, missingOnOldSystems } from '../support/elf.ts';
import { endProcess, processesWith } from '../support/host.ts';
import { makeOldSystem, runInside, startInside } from '../support/old-system.ts';
import { copyProject, makePackages, project } from '../support/package-builds.ts';
import { installed } from '../support/tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-old-system-'));
const system = join(folder, 'system');
const sockets = `/run/${folder.split('/').at(-1)}`;
mkdirSync(system);
const whyNot =
  process.getuid?.() !== 0
    ? 'it takes root'
    : installed('rpm', 'rpmbuild')
      ? makeOldSystem(system, folder)
      : 'packages of both kinds cannot be made';
if (whyNot !== undefined) console.info(`older systems are not tested: ${whyNot}`);
let service: ChildProcess | undefined;

const stopService = async (): Promise<void> => {
  if (service !== undefined && service.exitCode === null) {
    service.kill();
    await once(service, 'exit');
  }
  service = undefined;
  for (const [pid] of processesWith(sockets)) await endProcess(pid);
};

beforeAll(() => {
  if (whyNot !== undefined) return;
  makePackages(project, join(system, 'tmp/packages'));
  copyProject(join(folder, 'next'), '1.0.1');
  makePackages(join(folder, 'next'), join(system, 'tmp/next'), '--only', 'dke-server');
});
afterAll(async () => {
  await stopService();
  rmSync(folder, { recursive: true, force: true });
});

const names = ['dke-server', 'dke-provider', 'dke-mariadb'];
const filesIn = (where: string, kind: string): string[] =>
  readdirSync(join(system, where))
    .filter((name) => name.endsWith(`.${kind}`))
    .map((name) => `${where}/${name}`);

// biome-ignore lint/suspicious/noTemplateCurlyInString: a field of dpkg-query.
const versionField = '${Version}';
/** The commands for packages, by kind. RPM's database of this system contains no other package. */
const managers = {
  deb: {
    install: (where: string) => runInside(system, ['dpkg', '--install', ...filesIn(where, 'deb')]),
    remove: () => runInside(system, ['dpkg', '--remove', ...names]),
    version: () => runInside(system, ['dpkg-query', '--show', '--showformat', versionField, 'dke-server']),
    saved: '',
  },
  rpm: {
    install: (where: string) =>
      runInside(system, ['rpm', '--upgrade', '--oldpackage', '--replacepkgs', '--nodeps', ...filesIn(where, 'rpm')]),
    remove: () => runInside(system, ['rpm', '--erase', '--nodeps', ...names]),
    version: () => runInside(system, ['rpm', '--query', '--queryformat', '%{VERSION}', 'dke-server']),
    saved: '.rpmsave',
  },
} as const;

/** All steps from a first start to a client that encrypts. */
const useService = async (label: string): Promise<void> => {
  const config = readFileSync(join(system, 'etc/dke/dke.toml'), 'utf8')
    .replace('port = 443', 'port = 0')
    .replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
    .replace('"/var/lib/dke/data"', JSON.stringify(`/tmp/${label}/data`));
  mkdirSync(join(system, 'tmp', label));
  writeFileSync(join(system, 'tmp', label, 'dke.toml'), config);
  const at = (name: string): string => `/tmp/${label}/${name}`;
  const dke = '/usr/bin/dke';
  service = startInside(system, [dke, 'server', '--config', at('dke.toml'), '--token-out', at('token')]);
  let url = '';
  for await (const line of createInterface({ input: service.stdout as NodeJS.ReadableStream })) {
    if (!line.startsWith('listening on ')) continue;
    url = line.slice('listening on '.length);
    break;
  }
  expect(url).toMatch(/^https:/);
  service.stdout?.resume();

  const access = { DKE_SERVER: url, DKE_CA_FILE: at('data/tls.crt'), DKE_TOKEN_FILE: at('token') };
  runInside(system, [dke, 'tde', 'group', 'create', 'finance'], access);
  const files = ['--out', at('pkcs11.toml'), '--database-ca-file', at('data/tls.crt')];
  runInside(system, [dke, 'tde', 'app', 'register', 'erp', '--group', 'finance', ...files], access);

  for (const each of ['index.js', 'package.json', 'build/Release/pkcs11.node'])
    cpSync(join(project, 'node_modules/pkcs11js', each), join(system, 'tmp/pkcs11js', each));
  cpSync(join(project, 'test/support/old-system-child.ts'), join(system, 'tmp/old-system-child.ts'));
  mkdirSync(join(system, sockets, label), { mode: 0o700, recursive: true });
  mkdirSync(join(system, at('log')));
  const database = {
    DKE_PKCS11_CONF: at('pkcs11.toml'),
    DKE_PKCS11_SOCKET: `${sockets}/${label}/agent.sock`,
    DKE_AGENT_LOG_DIR: at('log'),
  };
  const library = '/usr/lib/dke-provider/1.0/libdke_pkcs11.so';
  const client = ['/usr/lib/dke-provider/bin/node', '/tmp/old-system-child.ts', '/tmp/pkcs11js', library];
  const result = runInside(system, client, database);
  expect(JSON.parse(result)).toEqual({ isEncrypted: true, isDecrypted: true });
  expect(runInside(system, ['/usr/lib/dke-provider/1.0/dke-probe', library, '--call'], database)).toContain(
    'token erp',
  );
  expect(runInside(system, [dke, 'tde', 'key', 'list', 'erp'], access)).toContain('OLD-SYSTEM');
};

describe.runIf(whyNot === undefined).each(['deb', 'rpm'] as const)('%s packages on an older system', (kind) => {
  const manager = managers[kind];
  const config = join(system, 'etc/dke/dke.toml');

  test('are installed with their users and the command, and each native file can be loaded', () => {
    manager.install('/tmp/packages');
    expect(manager.version()).toBe('1.0.0');
    const users = readFileSync(join(system, 'etc/passwd'), 'utf8');
    for (const user of ['dke', 'dke-agent']) expect(users).toMatch(new RegExp(`^${user}:`, 'm'));
    expect(runInside(system, ['readlink', '-f', '/usr/bin/dke'])).toBe('/usr/lib/dke-server/bin/dke\n');
    const native = readdirSync(join(system, 'usr'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\/(dke-(server|provider)|mysql\/plugin)(\/|$)/.test(entry.parentPath))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter(isElf);
    expect(native.length).toBeGreaterThanOrEqual(7);
    for (const path of native) expect(missingOnOldSystems(path), path).toEqual([]);
  });

  test('serve a database', async () => {
    await useService(kind);
    await stopService();
  });

  test('an upgrade and a downgrade keep the configuration that was changed, and the command', () => {
    appendFileSync(config, '# changed\n');
    for (const [where, version] of [
      ['/tmp/next', '1.0.1'],
      ['/tmp/packages', '1.0.0'],
    ] as const) {
      manager.install(where);
      expect(manager.version()).toBe(version);
      expect(runInside(system, ['/usr/bin/dke', '--version'])).toContain(version);
      expect(readFileSync(config, 'utf8')).toMatch(/# changed\n$/);
    }
  });

  test('a removal leaves the changed configuration and nothing of the programs', () => {
    manager.remove();
    expect(readFileSync(`${config}${manager.saved}`, 'utf8')).toMatch(/# changed\n$/);
    expect(existsSync(join(system, 'usr/bin/dke'))).toBe(false);
    const left = readdirSync(join(system, 'usr'), { recursive: true, encoding: 'utf8' });
    expect(left.filter((name) => /(^|\/)dke/.test(name))).toEqual([]);
    rmSync(join(system, 'etc/dke'), { recursive: true });
    if (kind === 'deb') runInside(system, ['dpkg', '--purge', ...names]);
  });
});
