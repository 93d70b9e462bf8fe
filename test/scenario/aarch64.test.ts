// The packages for AArch64, cross-built by the real builder: their content, and their programs in
// an emulator. The service starts, its command registers a database, the library starts its agent,
// and a client generates a key, encrypts and decrypts. Their scripts are those of the packages for
// x86-64: scenario/packages, scenario/old-system.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseNames, packagesFor, readPackageName, systemNames } from '../../server/domain/bundle-targets.ts';
import {
  isElf,
  librariesOf,
  machineOf,
  missingOnOldSystems,
  ofGlibc,
  openSymbols,
  searchFoldersOf,
} from '../support/elf.ts';
import { runEmulated, startEmulated, whyNotEmulated } from '../support/emulated.ts';
import { endProcess, processesWith, until } from '../support/host.ts';
import { patient } from '../support/patience.ts';
import { installed } from '../support/tools.ts';

const project = resolve(import.meta.dirname, '../..');
const built = join(project, 'build/aarch64');
const canBuild =
  installed('g++-aarch64-linux-gnu', 'aarch64-linux-gnu-g++') &&
  installed('dpkg', 'dpkg-deb') &&
  installed('rpm', 'rpmbuild');
// What the build adds to it does not matter here.
mkdirSync(join(built, 'system/usr/lib'), { recursive: true });
const whyNoRun = canBuild ? whyNotEmulated(join(built, 'system')) : 'there are no packages';
if (whyNoRun !== undefined) console.info(`programs for AArch64 are not run: ${whyNoRun}`);

const folder = mkdtempSync(join(tmpdir(), 'dke-aarch64-'));
const packages = join(folder, 'packages');
const names = ['dke-server', 'dke-provider', 'dke-mariadb'] as const;
const unpacked = (name: (typeof names)[number], ...path: string[]): string => join(folder, name, ...path);
const program = (name: (typeof names)[number], ...path: string[]): string => unpacked(name, 'usr/lib', name, ...path);
let service: ChildProcess | undefined;

beforeAll(() => {
  if (!canBuild) return;
  const build = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] });
  build('sh', 'provider/packaging/cross.sh');
  build(process.execPath, 'provider/packaging/main.ts', '--fast', '--architecture', 'aarch64', '--out', packages);
  for (const name of names) {
    const [file = ''] = readdirSync(packages).filter((each) => each.startsWith(`${name}_`) && each.endsWith('.deb'));
    execFileSync('dpkg-deb', ['--extract', join(packages, file), unpacked(name)]);
  }
});
afterAll(async () => {
  if (service !== undefined && service.exitCode === null) {
    service.kill();
    await once(service, 'exit');
  }
  for (const [pid] of processesWith(folder)) await endProcess(pid);
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(canBuild)('packages for aarch64', () => {
  test('have the names by which a bundle for such a database host finds them', () => {
    const available = readdirSync(packages).flatMap((name) => readPackageName(name) ?? []);
    expect(available).toHaveLength(6);
    for (const system of systemNames)
      for (const database of databaseNames)
        expect(packagesFor({ system, database, architecture: 'aarch64' }, available).missing).toEqual([]);
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: packages });
    const ofDeb = execFileSync('dpkg-deb', ['--field', join(packages, 'dke-provider_1.0.0_arm64.deb'), 'Architecture']);
    expect(ofDeb.toString()).toBe('arm64\n');
    const ofRpm = [
      '--query',
      '--queryformat',
      '%{ARCH}',
      '--package',
      join(packages, 'dke-provider-1.0.0-1.aarch64.rpm'),
    ];
    expect(execFileSync('rpm', ofRpm).toString()).toBe('aarch64');
  });

  test('have nothing native that is for another machine or needs more than glibc 2.28', () => {
    const files = names.flatMap((name) =>
      readdirSync(unpacked(name), { recursive: true, withFileTypes: true, encoding: 'utf8' })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter(isElf),
    );
    const ours = files.filter((path) => !path.endsWith('/bin/node'));
    expect(ours.map((path) => path.split('/').at(-1)).sort()).toEqual([
      ...['dke-probe', 'dke_core.node', 'dke_core.node', 'dke_key_management.so', 'libdke_pkcs11.so'],
    ]);
    expect(files).toHaveLength(ours.length + 2);
    for (const path of files) {
      expect(machineOf(path), path).toBe('AArch64');
      expect(missingOnOldSystems(path), path).toEqual([]);
    }
    for (const path of ours) {
      expect(
        librariesOf(path).filter((name) => !ofGlibc.test(name)),
        path,
      ).toEqual([]);
      expect(searchFoldersOf(path), path).toEqual([]);
      expect(openSymbols(path), path).toEqual([]);
    }
  });

  test('list in their bills the files and versions for this machine', () => {
    const { components } = JSON.parse(
      readFileSync(unpacked('dke-server', 'usr/share/doc/dke-server/sbom.cdx.json'), 'utf8'),
    ) as { readonly components: readonly Readonly<Record<string, unknown>>[] };
    const of = (name: string) => components.find((each) => each.name === name);
    const content = createHash('sha256')
      .update(readFileSync(program('dke-server', 'bin/node')))
      .digest('hex');
    expect(of('node')).toMatchObject({ version: process.versions.node, hashes: [{ alg: 'SHA-256', content }] });
    const debs = readdirSync(join(project, '.libcrypto/arm64/debs')).map(decodeURIComponent);
    expect(debs).toContain(`libssl-dev_${of('libcrypto')?.version}_arm64.deb`);
  });
});

/** A client of the library, as a program for AArch64: pkcs11js, whose sources are these. */
const makeClient = (to: string): void => {
  const from = join(project, 'node_modules/pkcs11js');
  mkdirSync(join(to, 'build/Release'), { recursive: true });
  for (const each of ['index.js', 'package.json']) cpSync(join(from, each), join(to, each));
  const headers = ['node-api-headers/include', 'node-addon-api', 'pkcs11js/includes', 'pkcs11js/includes/pkcs11'];
  execFileSync('aarch64-linux-gnu-g++', [
    ...['-std=c++17', '-shared', '-fPIC', '-w', '-DNAPI_VERSION=8', '-DNAPI_DISABLE_CPP_EXCEPTIONS'],
    ...headers.map((each) => `-I${join(project, 'node_modules', each)}`),
    ...['dl.cpp', 'common.cpp', 'main.cpp'].map((each) => join(from, 'src', each)).filter((each) => existsSync(each)),
    ...['-o', join(to, 'build/Release/pkcs11.node')],
  ]);
};

test.runIf(whyNoRun === undefined)(
  'the service for AArch64 starts, and a client encrypts through the library and the agent that it starts',
  async () => {
    const libraries = join(built, 'system');
    const at = (name: string): string => join(folder, name);
    writeFileSync(
      at('dke.toml'),
      readFileSync(unpacked('dke-server', 'etc/dke/dke.toml'), 'utf8')
        .replace('port = 443', 'port = 0')
        .replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
        .replace('"/var/lib/dke/data"', JSON.stringify(at('data'))),
    );
    const dke = program('dke-server', 'bin/dke');
    service = startEmulated(libraries, [dke, 'server', '--config', at('dke.toml'), '--token-out', at('token')]);
    let url = '';
    for await (const line of createInterface({ input: service.stdout as NodeJS.ReadableStream })) {
      if (!line.startsWith('listening on ')) continue;
      url = line.slice('listening on '.length);
      break;
    }
    expect(url).toMatch(/^https:/);
    service.stdout?.resume();
    const health = ['--silent', '--fail', '--cacert', at('data/tls.crt'), `${url}/health`];
    expect(execFileSync('curl', health, { encoding: 'utf8' })).toContain('healthy');

    const access = { DKE_SERVER: url, DKE_CA_FILE: at('data/tls.crt'), DKE_TOKEN_FILE: at('token') };
    const command = (...args: string[]) => runEmulated(libraries, [dke, ...args], access);
    expect(await command('status')).toMatch(/^health\.healthy\s+true$/m);
    await command('tde', 'group', 'create', 'finance');
    const files = ['--out', at('pkcs11.toml'), '--database-ca-file', at('data/tls.crt')];
    await command('tde', 'app', 'register', 'erp', '--group', 'finance', ...files);

    makeClient(at('pkcs11js'));
    cpSync(join(project, 'test/support/old-system-child.ts'), at('client.ts'));
    for (const each of ['run', 'log']) mkdirSync(at(each), { mode: 0o700 });
    writeFileSync(at('pkcs11.toml'), patient(readFileSync(at('pkcs11.toml'), 'utf8')));
    const database = {
      DKE_PKCS11_CONF: at('pkcs11.toml'),
      DKE_PKCS11_SOCKET: at('run/agent.sock'),
      DKE_AGENT_LOG_DIR: at('log'),
    };
    const library = program('dke-provider', '1.0/libdke_pkcs11.so');
    const probe = [program('dke-provider', '1.0/dke-probe'), library, '--call'];
    // The probe starts the agent. In an emulator, that may take longer than the library waits.
    await runEmulated(libraries, probe, database).catch(() => undefined);
    await until('the agent listens', async () => (existsSync(at('run/agent.sock')) ? true : undefined));
    const agents = processesWith(at('run/agent.sock')).map(([, line]) => line);
    expect(agents).toEqual([expect.stringContaining(program('dke-provider', ''))]);
    expect(await runEmulated(libraries, probe, database)).toContain('token erp');
    const client = [program('dke-provider', 'bin/node'), at('client.ts'), at('pkcs11js'), library];
    expect(JSON.parse(await runEmulated(libraries, client, database))).toEqual({
      isEncrypted: true,
      isDecrypted: true,
    });
    expect(await command('tde', 'key', 'list', 'erp')).toContain('OLD-SYSTEM');
  },
);
