// dke.toml: accepted and refused texts, and the messages for the user.
import { chmodSync, chownSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkFile } from '../../../server/app/config/check-file.ts';
import { defaultConfig, loadConfig, parseConfig } from '../../../server/app/config/config.ts';
import type { StartError } from '../../../server/base/start-error.ts';
import { sharedFolder } from '../../support/folders.ts';
import { run } from '../../support/tools.ts';

const folder = sharedFolder();

const refusal = (work: () => unknown): StartError => {
  try {
    work();
  } catch (error) {
    return error as StartError;
  }
  throw new Error('it was accepted');
};
const refused = (text: string) => refusal(() => parseConfig(text, '/etc/dke/dke.toml', '/etc/dke'));

describe('the documented file', () => {
  const documented = readFileSync(resolve(import.meta.dirname, '../../../docs/dke.toml'), 'utf8');

  test('says the defaults', () => {
    const { source: _source, settings: _settings, ...config } = parseConfig(documented, 'docs', '/srv');
    const { source: _none, settings: _all, ...defaults } = defaultConfig('/srv');
    expect(config).toEqual(defaults);
  });

  test('names every field, commented or not, and each is accepted', () => {
    const uncommented = documented.replaceAll(/^# ([a-z_]+ = )/gm, '$1');
    const config = parseConfig(uncommented, 'docs', '/srv');
    expect(config.tls.main).toEqual({ certificate: '/etc/dke/tls.crt', key: '/etc/dke/tls.key' });
    expect(config.root.path).toBe('/srv/dke-data/root.key');
    expect(config.memory.lockedBytes).toBeGreaterThan(0);
    expect(config.server.publicUrl).toBe('https://keys.example.com');
  });
});

describe('a bad file', () => {
  test('that is not TOML is refused with line and column, without its text', () => {
    const error = refused('[server]\nport = = 5 # hunter2');
    expect(error).toMatchObject({ class: 'config', exitCode: 2 });
    expect(error.message).toMatch(/line 2/);
    expect(error.message).not.toContain('hunter2');
  });

  test.each([
    ['[server]\nprot = 5', 'server.prot'],
    ['[serve]\nport = 5', 'serve'],
    ['extra = 1', 'extra'],
  ])('with an unknown field is refused by its name: %j', (text, name) => {
    expect(refused(text).message).toContain(`unknown field ${name}`);
  });

  test.each([
    ['[server]\nport = 65536', 'server.port'],
    ['[server]\nport = "443"', 'server.port'],
    ['[server]\npublic_names = []', 'server.public_names'],
    ['[server]\npublic_url = "http://x"', 'server.public_url'],
    ['[log]\nlevel = "loud"', 'log.level'],
    ['[tls]\nkey = "k.pem"', 'tls'],
    ['[root]\nprovider = "hsm"', 'root.provider'],
    ['[memory]\nlocked_bytes = 1', 'memory.locked_bytes'],
  ])('with a value out of range is refused by its field: %j', (text, field) => {
    const error = refused(text);
    expect(error.class).toBe('config');
    expect(error.message).toContain(field);
  });

  test('that others can write is refused with the required mode', () => {
    const path = join(folder, 'open.toml');
    writeFileSync(path, '');
    chmodSync(path, 0o666);
    expect(refusal(() => loadConfig(path, folder))).toMatchObject({ class: 'permission', exitCode: 3 });
    chmodSync(path, 0o644);
    expect(loadConfig(path, folder).server.port).toBe(443);
  });

  test('that is named but missing is refused; an unnamed missing one means the defaults', () => {
    expect(refusal(() => loadConfig('missing.toml', folder))).toMatchObject({ class: 'config' });
    expect(loadConfig(undefined, folder)).toEqual(defaultConfig(folder));
  });
});

describe('a trusted file', () => {
  const make = (name: string, mode: number): string => {
    const path = join(folder, name);
    writeFileSync(path, 'x');
    chmodSync(path, mode);
    return path;
  };

  test.each([0o640, 0o604, 0o660, 0o644])('that is secret is refused with mode %o', (mode) => {
    const path = make(`secret-${mode}`, mode);
    const error = refusal(() => checkFile(path, 'secret'));
    expect(error.message).toContain(path);
    expect(error.message).toContain('600');
  });

  test.each([0o600, 0o400])('that is secret is accepted with mode %o', (mode) => {
    checkFile(make(`kept-${mode}`, mode), 'secret');
  });

  test.runIf(process.getuid?.() === 0)(
    'of root, for a group that root chose, is accepted by another user only',
    async () => {
      const module = resolve(import.meta.dirname, '../../../server/app/config/check-file.ts');
      // The program is loaded as root: it may be in a folder that no other user reads.
      const script = `import { checkFile } from ${JSON.stringify(module)};
      const [, path, user] = process.argv;
      for (const set of ['setgroups', 'setgid', 'setuid']) process[set](set === 'setgroups' ? [] : Number(user));
      checkFile(path, 'secret');`;
      const check = (path: string, user: number) =>
        run(process.execPath, ['--input-type=module', '--eval', script, path, String(user)]);
      const secret = make('given', 0o640);
      chmodSync(folder, 0o755);
      chownSync(secret, 0, 10_001);
      expect(await check(secret, 10_001)).toMatchObject({ code: 0 });
      expect((await check(secret, 0)).complaints).toContain('has mode 640: it must have mode 600');
      for (const mode of [0o644, 0o660]) {
        chmodSync(secret, mode);
        expect((await check(secret, 10_001)).complaints).toContain('it must have mode 600 or 400 (640 or 440');
      }
      // Mode 640 is for files of root only: files of the user or of a third user are refused.
      for (const owner of [10_001, 10_002]) {
        chownSync(secret, owner, 10_001);
        chmodSync(secret, 0o640);
        expect((await check(secret, 10_001)).code).not.toBe(0);
      }
    },
  );

  test('in a folder where others may replace it is refused', () => {
    const shared = join(folder, 'shared');
    mkdirSync(shared);
    writeFileSync(join(shared, 'key'), 'x', { mode: 0o600 });
    chmodSync(shared, 0o777);
    expect(refusal(() => checkFile(join(shared, 'key'), 'secret')).message).toContain(shared);
  });

  test('behind a link counts as the file itself', () => {
    const open = make('target', 0o644);
    const link = join(folder, 'link');
    symlinkSync(open, link);
    expect(refusal(() => checkFile(link, 'secret')).class).toBe('permission');
  });

  test('that is a directory or missing is refused', () => {
    expect(refusal(() => checkFile(folder, 'public')).message).toContain('not a regular file');
    expect(refusal(() => checkFile(join(folder, 'none'), 'public')).message).toContain('ENOENT');
  });
});

test('each setting is listed with its value and whether the file sets it', () => {
  const { settings } = parseConfig('[server]\nport = 8443\n', 'dke.toml', '/srv');
  expect(settings).toContainEqual({ name: 'server.port', value: '8443', origin: 'file' });
  expect(settings).toContainEqual({ name: 'log.level', value: '"info"', origin: 'default' });
});

test('a path is absolute in the configuration, and a setting shows it as the file has it', () => {
  const toml = '[[tls.additional]]\ncertificate = "a.crt"\nkey = "/k/a.key"\n[log]\ndestination = "dke.log"\n';
  const { settings, tls, log } = parseConfig(toml, 'dke.toml', '/srv');
  expect(tls.additional).toEqual([{ certificate: '/srv/a.crt', key: '/k/a.key' }]);
  expect(log.destination).toBe('/srv/dke.log');
  expect(settings).toContainEqual({ name: 'log.destination', value: '"dke.log"', origin: 'file' });
});

test('names that the administrator gives are not changed: fields become camel case, claims do not', () => {
  const toml = '[oidc]\nissuer = "https://id"\nclient_id = "dke"\n[oidc.roles]\ndb_admin = "key-manager"\n';
  expect(parseConfig(toml, null, '/srv').oidc).toMatchObject({ clientId: 'dke', roles: { db_admin: 'key-manager' } });
});

test('a provider’s library without a folder is left to the loader', () => {
  const provider = (module: string): string =>
    `[[root.providers]]\nname = "h"\ntype = "pkcs11"\nmodule = "${module}"\ntoken = "t"\nkey = "k"\npin_file = "pin"\n`;
  const moduleOf = (module: string) => parseConfig(provider(module), null, '/srv').root.providers[0];
  expect(moduleOf('libhsm.so')).toMatchObject({ module: 'libhsm.so', pinFile: '/srv/pin' });
  expect(moduleOf('hsm/libhsm.so')).toMatchObject({ module: '/srv/hsm/libhsm.so' });
});
