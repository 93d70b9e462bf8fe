// The packages inside the root file system of an older release, with its C and C++ libraries: the service starts, its command registers
// a database, the library starts its agent, and a client encrypts and decrypts. Everything that is native runs in it.
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import { isElf, missingOnOldSystems } from '../support/elf.ts';
import { endProcess, processesWith } from '../support/host.ts';
import { makeOldSystem, runInside, startInside } from '../support/old-system.ts';

const project = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'dke-old-system-'));
const system = join(folder, 'system');
const sockets = `/run/${folder.split('/').at(-1)}`;
mkdirSync(system);
const whyNot = process.getuid?.() === 0 ? makeOldSystem(system, folder) : 'it takes root';
if (whyNot !== undefined) console.info(`older systems are not tested: ${whyNot}`);
let service: ChildProcess | undefined;

afterAll(async () => {
  if (service !== undefined && service.exitCode === null) {
    service.kill();
    await once(service, 'exit');
  }
  for (const [pid] of processesWith(sockets)) await endProcess(pid);
  rmSync(folder, { recursive: true, force: true });
});

test.runIf(whyNot === undefined)('the packages run on an older system', async () => {
  const built = join(folder, 'packages');
  execFileSync(process.execPath, [join(project, 'provider/packaging/main.ts'), '--fast', '--out', built], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const name of readdirSync(built).filter((each) => each.endsWith('.deb')))
    execFileSync('dpkg-deb', ['--extract', join(built, name), system]);

  const native = readdirSync(join(system, 'usr/lib'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\/(dke-(server|provider)|mysql)(\/|$)/.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(isElf);
  expect(native.length).toBeGreaterThanOrEqual(6);
  for (const path of native) expect(missingOnOldSystems(path), path).toEqual([]);

  const config = readFileSync(join(system, 'etc/dke/dke.toml'), 'utf8')
    .replace('port = 443', 'port = 0')
    .replace('host = "0.0.0.0"', 'host = "127.0.0.1"')
    .replace('"/var/lib/dke/data"', '"/tmp/data"');
  writeFileSync(join(system, 'tmp/dke.toml'), config);
  const dke = '/usr/lib/dke-server/bin/dke';
  const token = '/tmp/administrator-token';
  service = startInside(system, [dke, 'server', '--config', '/tmp/dke.toml', '--token-out', token]);
  let url = '';
  for await (const line of createInterface({ input: service.stdout as NodeJS.ReadableStream })) {
    if (!line.startsWith('listening on ')) continue;
    url = line.slice('listening on '.length);
    break;
  }
  expect(url).toMatch(/^https:/);
  service.stdout?.resume();

  const access = { DKE_SERVER: url, DKE_CA_FILE: '/tmp/data/tls.crt', DKE_TOKEN_FILE: token };
  runInside(system, [dke, 'tde', 'group', 'create', 'finance'], access);
  const files = ['--out', '/tmp/pkcs11.toml', '--database-ca-file', '/tmp/data/tls.crt'];
  runInside(system, [dke, 'tde', 'app', 'register', 'erp', '--group', 'finance', ...files], access);

  for (const each of ['index.js', 'package.json', 'build/Release/pkcs11.node'])
    cpSync(join(project, 'node_modules/pkcs11js', each), join(system, 'tmp/pkcs11js', each));
  cpSync(join(project, 'test/support/old-system-child.ts'), join(system, 'tmp/old-system-child.ts'));
  mkdirSync(join(system, sockets), { mode: 0o700 });
  mkdirSync(join(system, 'tmp/log'));
  const database = {
    DKE_PKCS11_CONF: '/tmp/pkcs11.toml',
    DKE_PKCS11_SOCKET: `${sockets}/agent.sock`,
    DKE_AGENT_LOG_DIR: '/tmp/log',
  };
  const library = '/usr/lib/dke-provider/1.0/libdke_pkcs11.so';
  const client = ['/usr/lib/dke-provider/bin/node', '/tmp/old-system-child.ts', '/tmp/pkcs11js', library];
  const result = runInside(system, client, database);
  expect(JSON.parse(result)).toEqual({ isEncrypted: true, isDecrypted: true });
  expect(runInside(system, ['/usr/lib/dke-provider/1.0/dke-probe', library, '--call'], database)).toContain(
    'token erp',
  );
  expect(runInside(system, [dke, 'tde', 'key', 'list', 'erp'], access)).toContain('OLD-SYSTEM');
});
