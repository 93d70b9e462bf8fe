// What opens the root key of a real server: a passphrase, a hardware module, a key file, each
// alone; a service that has none of them waits sealed. The commands that change providers run as
// people run them.
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { until } from '../support/host.ts';
import { builtServer } from '../support/killed-server.ts';
import {
  ServerEnded,
  type ServerProcess,
  type ServerProcessOptions,
  startServerProcess,
} from '../support/server-process.ts';
import { makeSoftToken, softhsmModule } from '../support/softhsm.ts';
import { storeToml } from '../support/test-store.ts';
import { inLongTier } from '../support/tiers.ts';

const passphrase = 'correct horse battery staple';
const other = 'another passphrase of people';
const folders: string[] = [];
const started: ServerProcess[] = [];
afterEach(async () => {
  for (const server of started.splice(0)) await server.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-root-'));
  folders.push(folder);
  writeFileSync(join(folder, 'passphrase'), `${passphrase}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'other'), `${other}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'wrong'), 'not the passphrase at all\n', { mode: 0o600 });
  return folder;
};
const people = (more = ''): string => `[[root.providers]]\nname = "people"\ntype = "passphrase"\n${more}\n`;
const fromFile = people('file = "passphrase"');
const stick = '[[root.providers]]\nname = "stick"\ntype = "file"\npath = "stick.key"\n';
const start = async (
  folder: string,
  toml: string,
  more: Partial<ServerProcessOptions> = {},
): Promise<ServerProcess> => {
  const server = await startServerProcess({
    folder,
    program: [builtServer],
    toml: `[erasure]\ngather_ms = 20\n${toml}`,
    ...more,
  });
  started.push(server);
  return server;
};
const health = async (server: ServerProcess): Promise<{ status: number; text: string }> => {
  const { status, text } = await openConsoleApi(server, 'none').send('GET', '/health');
  return { status, text };
};
const untilHealthy = (server: ServerProcess): Promise<true> =>
  until('the service is healthy', async () => ((await health(server)).status === 200 ? true : undefined));
const command = (server: ServerProcess, ...args: readonly string[]) =>
  runCommand(['--server', server.url, '--ca-file', server.caFile, ...args]);
const offline = (folder: string, ...args: readonly string[]) =>
  runCommand(['root', ...args, '--config', join(folder, 'dke.toml')]);
const asAdministrator = (folder: string, token: string): string => {
  const path = join(folder, 'token');
  writeFileSync(path, token, { mode: 0o600 });
  return path;
};
const makeVault = async (server: ServerProcess, token: string): Promise<string> =>
  (await openConsoleApi(server, token).call<{ id: string }>('POST', '/api/vaults', { name: `vault ${Date.now()}` })).id;

/** With the other passphrase. */
const unseal = async (server: ServerProcess, folder: string): Promise<void> => {
  const { code, stderr } = await command(server, 'root', 'unseal', '--passphrase-file', join(folder, 'other'));
  expect([code, stderr]).toEqual([0, '']);
  await untilHealthy(server);
};
/**
 * A sealed service tells everyone, refuses a wrong passphrase without locking, and serves after it
 * got the right one.
 */
const expectSealed = async (sealed: ServerProcess, token: string, folder: string): Promise<void> => {
  expect(sealed.output()).toMatch(/^sealed: dke root unseal$/m);
  const api = openConsoleApi(sealed, token);
  expect(await health(sealed)).toEqual({ status: 503, text: '{"status":"sealed"}' });
  expect((await openConsoleApi(sealed, 'none').send('GET', '/health/live')).status).toBe(200);
  const xks = await api.send('POST', '/xks/some/kms/xks/v1/health', {});
  expect([xks.status, JSON.parse(xks.text)]).toEqual([
    503,
    { errorName: 'DependencyTimeoutException', errorMessage: 'the service is sealed' },
  ]);
  const tde = await api.send('POST', '/tde/v1/guid/app/info', {});
  expect([tde.status, JSON.parse(tde.text)]).toMatchObject([503, { code: 'unavailable' }]);
  const read = await api.send('GET', '/api/vaults');
  expect([read.status, JSON.parse(read.text)]).toMatchObject(
    [503, { code: 'unavailable', hint: /dke root unseal/ }].map((each) =>
      typeof each === 'number' ? each : { code: 'unavailable', hint: expect.stringMatching(/dke root unseal/) },
    ),
  );

  const wrong = await command(sealed, 'root', 'unseal', '--passphrase-file', join(folder, 'wrong'));
  expect([wrong.code, wrong.stderr]).toEqual([9, expect.stringMatching(/the passphrase is wrong/)]);
  const soon = await command(sealed, 'root', 'unseal', '--passphrase-file', join(folder, 'passphrase'));
  if (soon.code !== 0) {
    expect(soon.stderr).toMatch(/a wrong passphrase was just entered from this address/);
    await until('another try is taken', async () => {
      const { code } = await command(sealed, 'root', 'unseal', '--passphrase-file', join(folder, 'passphrase'));
      return code === 0 ? true : undefined;
    });
  }
  await untilHealthy(sealed);
  const [record] = (await api.audit('kind=service.started')).slice(-1);
  expect(record?.details).toMatchObject({ rootProvider: 'people', failedUnseals: 1 });
  const late = await command(sealed, 'root', 'unseal', '--passphrase-file', join(folder, 'passphrase'));
  expect(late.code).not.toBe(0);
  expect(sealed.log()).not.toContain(passphrase);
};

describe('a passphrase', () => {
  test('wraps the root key at first start, and opens it at the next: from a systemd credential, a descriptor, and by hand', async () => {
    const folder = newFolder();
    const inCredentials = { environment: { CREDENTIALS_DIRECTORY: folder } };
    const first = await start(folder, people('credential = "passphrase"'), inCredentials);
    const vault = await makeVault(first, first.adminToken);
    await first.stop();
    const file = readFileSync(join(first.dataDirectory, 'root.key'));
    expect(file.readUInt32BE(8)).toBe(2);
    expect(statSync(join(first.dataDirectory, 'root.key')).mode & 0o777).toBe(0o600);
    const again = await start(folder, people('descriptor = 3'), {
      through: ['sh', '-c', `exec 3< '${join(folder, 'passphrase')}'; exec "$0" "$@"`],
    });
    expect(await openConsoleApi(again, first.adminToken).call('GET', `/api/vaults/${vault}`)).toMatchObject({
      id: vault,
    });
    await again.stop();
    for (const text of [again.log(), again.output(), first.log()]) expect(text).not.toContain(passphrase);

    const wrong = await start(folder, people('credential = "wrong"'), inCredentials);
    expect(await health(wrong)).toEqual({ status: 503, text: '{"status":"sealed"}' });
    expect(wrong.log()).toMatch(/the passphrase is wrong/);
    // A sealed service stops in order.
    expect(await wrong.stop()).toBe(0);

    const sealed = await start(folder, people());
    await expectSealed(sealed, first.adminToken, folder);
    expect(await openConsoleApi(sealed, first.adminToken).call('GET', `/api/vaults/${vault}`)).toMatchObject({
      id: vault,
    });
  });

  test('that is not given at first start stops it, before there is a root key', async () => {
    const folder = newFolder();
    const refusal = await start(folder, people()).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ServerEnded);
    expect(String(refusal)).toMatch(
      /the root key cannot be created: .*the first start requires every declared provider/,
    );
    expect(readdirSync(join(folder, 'dke-data'))).not.toContain('root.key');
  });

  test('that is short is refused', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'passphrase'), 'short\n', { mode: 0o600 });
    expect(String(await start(folder, fromFile).catch((error: unknown) => error))).toMatch(/at least 12 bytes/);
  });
});

describe('two providers', () => {
  test('open the root key alone; one that is removed no longer opens it, and a new passphrase replaces the old one', async () => {
    const folder = newFolder();
    const first = await start(folder, fromFile + stick);
    await first.stop();
    renameSync(join(folder, 'stick.key'), join(folder, 'away'));
    const byPassphrase = await start(folder, fromFile + stick);
    expect((await health(byPassphrase)).status).toBe(200);
    await byPassphrase.stop();
    renameSync(join(folder, 'away'), join(folder, 'stick.key'));
    const byStick = await start(folder, people() + stick);
    expect((await health(byStick)).status).toBe(200);
    const token = asAdministrator(folder, first.adminToken);
    const shown = await command(byStick, '--token-file', token, 'root', 'show');
    expect(shown.stdout).toMatch(/people +passphrase/);
    expect(shown.stdout).toMatch(/stick +file .*at this start/);

    const busy = await offline(folder, 'remove-provider', 'stick');
    expect([busy.code, busy.stderr]).toEqual([5, expect.stringMatching(/another server uses this data directory/)]);
    await byStick.stop();
    const rewrapped = await offline(folder, 'rewrap', 'people', '--new-passphrase-file', join(folder, 'other'));
    expect([rewrapped.code, rewrapped.stderr]).toEqual([0, '']);
    const removed = await offline(folder, 'remove-provider', 'stick', '--passphrase-file', join(folder, 'other'));
    expect([removed.code, removed.stderr]).toEqual([0, '']);
    const last = await offline(folder, 'remove-provider', 'people', '--passphrase-file', join(folder, 'other'));
    expect([last.code, last.stderr]).toEqual([2, expect.stringMatching(/the only provider/)]);
    // Neither the provider that was removed opens it, nor the old passphrase; the new one does.
    const now = await start(folder, fromFile + stick);
    expect((await health(now)).text).toBe('{"status":"sealed"}');
    await unseal(now, folder);
    const kinds = (await openConsoleApi(now, first.adminToken).audit('subjectId=service')).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind.startsWith('root.provider'))).toEqual([
      'root.provider-rewrapped',
      'root.provider-removed',
    ]);
    expect(readdirSync(now.dataDirectory).filter((name) => /\.(old|new)$/.test(name))).toEqual([]);
  });

  test('a passphrase is changed while the service runs: the former one opens nothing, not even an older copy of the file', async () => {
    const folder = newFolder();
    const server = await start(folder, fromFile);
    const api = openConsoleApi(server, server.adminToken);
    const backup = ['backup', '--out', join(folder, 'backup.key'), '--passphrase-file', join(folder, 'passphrase')];
    const backedUp = await offline(folder, ...backup, '--new-passphrase-file', join(folder, 'wrong'));
    expect([backedUp.code, backedUp.stderr]).toEqual([0, '']);
    const path = join(server.dataDirectory, 'root.key');
    const older = readFileSync(path);
    const by = (from: string) =>
      offline(
        folder,
        'rewrap',
        'people',
        '--passphrase-file',
        join(folder, from),
        '--new-passphrase-file',
        join(folder, 'other'),
      );
    const refused = await by('wrong');
    expect([refused.code, refused.stderr]).toEqual([6, expect.stringMatching(/the passphrase is wrong/)]);
    expect(readFileSync(path).equals(older)).toBe(true);
    // While others work.
    let busy = true;
    const working = (async () => {
      for (let i = 0; busy; i += 1) await api.call('POST', '/api/vaults', { name: `during ${i}` });
    })();
    const changed = await by('passphrase');
    busy = false;
    await working;
    expect([changed.code, changed.stderr]).toEqual([0, '']);
    expect(changed.stdout).toMatch(/people +passphrase/);
    const notified = await until('the rotation, and that the backup is out of date', async () => {
      const { epoch, rotating } = await api.call<{ epoch: number; rotating: boolean }>('GET', '/api/root');
      const { items } = await api.call<{ items: { kind: string }[] }>('GET', '/api/notifications');
      return epoch === 2 && !rotating ? items.find(({ kind }) => kind === 'root.backup-old') : undefined;
    });
    expect(notified).toBeDefined();
    expect((await health(server)).status).toBe(200);
    expect(readdirSync(server.dataDirectory).filter((name) => /^root\.key\.(old|new|change)/.test(name))).toEqual([]);
    await server.stop();
    const now = await start(folder, fromFile);
    expect((await health(now)).text).toBe('{"status":"sealed"}');
    await unseal(now, folder);
    await now.stop();
    writeFileSync(path, older);
    const copy = String(await start(folder, fromFile).catch((error: unknown) => error));
    expect(copy).toMatch(/the database needs root epoch 2/);
  });

  test('an unencrypted root key is wrapped, and then rotated', async () => {
    const folder = newFolder();
    const first = await start(folder, '');
    const vault = await makeVault(first, first.adminToken);
    await first.stop();
    const early = String(await start(folder, fromFile).catch((error: unknown) => error));
    expect(early).toMatch(/is not wrapped yet.*run dke root add-provider people/);
    const wrapped = await offline(
      folder,
      'add-provider',
      'people',
      '--new-passphrase-file',
      join(folder, 'passphrase'),
    );
    expect([wrapped.code, wrapped.stderr]).toEqual([0, '']);
    const server = await start(folder, fromFile);
    const token = asAdministrator(folder, first.adminToken);
    const rotated = await command(server, '--token-file', token, 'root', 'rotate', '--wait');
    expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringMatching(/^epoch +2$/m)]);
    await server.stop();
    const again = await start(folder, fromFile);
    expect(await openConsoleApi(again, first.adminToken).call('GET', `/api/vaults/${vault}`)).toMatchObject({
      id: vault,
    });
  });
});

describe.skipIf(softhsmModule === undefined)('a hardware module (SoftHSM2)', () => {
  const hardware = (
    pinFile: string,
    more: { readonly module?: string; readonly key?: string; readonly seconds?: number } = {},
  ): string =>
    `[[root.providers]]\nname = "hsm"\ntype = "pkcs11"\nmodule = "${more.module ?? softhsmModule}"\ntoken = "dke"\n` +
    `key = "${more.key ?? 'dke-root'}"\npin_file = "${pinFile}"\ntimeout_seconds = ${more.seconds ?? 60}\n`;

  test('opens the root key with its own key, alone or together with a passphrase', async () => {
    const folder = newFolder();
    const { environment, pinFile, addKey } = makeSoftToken(folder, 'dke', '4711');
    addKey('dke-root');
    const first = await start(folder, hardware(pinFile) + fromFile, { environment });
    const vault = await makeVault(first, first.adminToken);
    const token = asAdministrator(folder, first.adminToken);
    const rotated = await command(first, '--token-file', token, 'root', 'rotate', '--wait');
    expect(rotated.code).toBe(0);
    await first.stop();
    const alone = await start(folder, hardware(pinFile) + people(), { environment });
    expect(await openConsoleApi(alone, first.adminToken).call('GET', `/api/vaults/${vault}`)).toMatchObject({
      id: vault,
    });
    await alone.stop();
    // Without the module the passphrase opens it.
    renameSync(join(folder, 'tokens'), join(folder, 'gone'));
    const without = await start(folder, hardware(pinFile) + fromFile, { environment });
    expect((await health(without)).status).toBe(200);
    await without.stop();
    // Without either it waits, and continues on its own when the module is back.
    const waits = await start(folder, hardware(pinFile) + people(), { environment });
    expect((await health(waits)).text).toBe('{"status":"sealed"}');
    expect(waits.log()).toMatch(/libsofthsm2\.so/);
    rmSync(join(folder, 'tokens'), { recursive: true, force: true });
    renameSync(join(folder, 'gone'), join(folder, 'tokens'));
    await untilHealthy(waits);
    for (const text of [waits.log(), waits.output()]) expect(text).not.toContain('4711');
  });

  test.each([
    ['a key that could leave the module', 'weak', /can be extracted from the module/],
    ['a key that is not there', 'missing', /AES key missing not found/],
  ])('%s is refused', async (_, key, message) => {
    const folder = newFolder();
    const { environment, pinFile, addKey } = makeSoftToken(folder, 'dke', '4711');
    addKey('weak', '--extractable');
    const refusal = await start(folder, hardware(pinFile, { key }), { environment }).catch((error: unknown) => error);
    expect(String(refusal)).toMatch(message);
  });

  test('a wrong PIN is named, and not tried again on its own', async () => {
    const folder = newFolder();
    const { environment, pinFile, addKey } = makeSoftToken(folder, 'dke', '4711');
    addKey('dke-root');
    writeFileSync(pinFile, '9999\n', { mode: 0o600 });
    const refusal = await start(folder, hardware(pinFile), { environment }).catch((error: unknown) => error);
    expect(String(refusal)).toMatch(/the PIN is wrong/);
  });

  test.each<readonly [string, string, string, RegExp]>([
    [
      'crashes',
      'libdke-crash.so',
      '__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 0; }',
      /SIGSEGV/,
    ],
    ...(inLongTier('scenario/root-providers: a library that hangs')
      ? [
          [
            'hangs',
            'libdke-hang.so',
            '#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); }',
            /did not answer within 5 s/,
          ] as const,
        ]
      : []),
  ])('a library that %s takes its own process along, not the service', async (_, name, source, message) => {
    const folder = newFolder();
    const { environment, pinFile } = makeSoftToken(folder, 'dke', '4711');
    const first = await start(folder, fromFile);
    await first.stop();
    writeFileSync(join(folder, 'library.c'), source);
    const { execFileSync } = await import('node:child_process');
    const library = join(folder, name);
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'library.c')]);
    const configured = hardware(pinFile, { module: library, ...(name.includes('hang') ? { seconds: 5 } : {}) });
    const toml = fromFile + configured;
    writeFileSync(join(folder, 'dke.toml'), toml + (await storeToml(folder, toml)));
    const added = await runCommand(['root', 'add-provider', 'hsm', '--config', join(folder, 'dke.toml')], {
      environment,
    });
    expect([added.code, added.stderr]).toEqual([6, expect.stringMatching(message)]);
    const again = await start(folder, toml, { environment });
    expect((await health(again)).status).toBe(200);
  });
});
