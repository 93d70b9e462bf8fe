// A configuration bundle from the command line to a database host: its content, that nothing in it
// was changed, that install.sh does what it prints, and that a database works with the files. The
// packages are small files: what real ones contain is tested in packages.test.ts.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CommandRun, runCommand } from '../support/command.ts';
import { layPackages, sha256 } from '../support/package-shelf.ts';
import { type Site, startSite } from '../support/site.ts';

const packages = {
  'dke-provider_1.0.0_amd64.deb': 'an older provider',
  'dke-provider_1.10.0_amd64.deb': 'the newest provider',
  'dke-provider_1.9.0_amd64.deb': 'not the newest provider',
  'dke-mariadb_1.10.0_amd64.deb': 'the plugin',
  'dke-provider-1.10.0-1.aarch64.rpm': 'the provider for another machine',
} as const;
const damaged = 'dke-mariadb-1.10.0-1.x86_64.rpm';

let site: Site;
let shelf: string;

const dke = (...args: string[]): Promise<CommandRun> => {
  const tokenFile = join(site.folder, 'token');
  writeFileSync(tokenFile, site.token, { mode: 0o600 });
  const environment = { DKE_SERVER: site.server.url, DKE_CA_FILE: site.server.caFile, DKE_TOKEN_FILE: tokenFile };
  return runCommand(args, { environment, cwd: site.folder });
};
const done = async (...args: string[]): Promise<CommandRun> => {
  const run = await dke(...args);
  expect([run.code, run.stderr]).toEqual([0, '']);
  return run;
};
const unpack = (archive: string): string => {
  const into = join(site.folder, `unpacked-${archive}`);
  mkdirSync(into);
  execFileSync('tar', ['-xzf', join(site.folder, archive), '-C', into, '--no-same-owner']);
  return into;
};
const checksums = (folder: string) =>
  spawnSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' });

beforeAll(async () => {
  site = await startSite({ toml: 'packages_directory = "packages"\n' });
  shelf = join(site.folder, 'packages');
  layPackages(shelf, packages, [
    `${sha256('as it was built')}  ${damaged}`,
    `${sha256(readFileSync('/etc/passwd'))}  dke-provider_8.0.0_amd64.deb`,
    `${sha256('')}  ../token`,
  ]);
  writeFileSync(join(shelf, damaged), 'changed on its way');
  writeFileSync(join(shelf, 'dke-provider_9.0.0_amd64.deb'), 'not in SHA256SUMS');
  symlinkSync('/etc/passwd', join(shelf, 'dke-provider_8.0.0_amd64.deb'));
  await done('tde', 'group', 'create', 'finance');
});
afterAll(() => site?.end());

describe('packages that the service distributes', () => {
  test('are the files that SHA256SUMS names', async () => {
    const { stdout } = await done('package', 'list', '-o', 'json');
    const { items } = JSON.parse(stdout) as {
      readonly items: readonly { readonly name: string; readonly sha256: string }[];
    };
    expect(items.map(({ name }) => name)).toEqual([...Object.keys(packages), damaged].sort());
  });

  test('are downloaded as they are', async () => {
    await done('package', 'download', 'dke-mariadb_1.10.0_amd64.deb', '--out', 'plugin.deb');
    expect(readFileSync(join(site.folder, 'plugin.deb'), 'utf8')).toBe('the plugin');
  });

  test.each([
    [damaged, 'does not match its checksum'],
    ['dke-provider_9.0.0_amd64.deb', 'distributes no package with this name'],
    ['dke-provider_8.0.0_amd64.deb', 'distributes no package with this name'],
    ['../token', 'distributes no package with this name'],
    ['SHA256SUMS', 'distributes no package with this name'],
  ])('%s is not sent: it %s', async (name, why) => {
    const run = await dke('package', 'download', name, '--out', 'refused');
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain(why);
    expect(readdirSync(site.folder)).not.toContain('refused');
  });
});

describe('a bundle', () => {
  let folder: string;

  beforeAll(async () => {
    const run = await done(
      ...['tde', 'app', 'register', 'erp', '--group', 'finance', '--bundle', 'erp.tar.gz'],
      ...['--system', 'debian', '--database', 'mariadb'],
    );
    expect(run.stdout).toContain('erp.tar.gz');
    expect(run.stdout).not.toMatch(/dke_ag_|access_token/);
    folder = unpack('erp.tar.gz');
  });

  test('is secret, and contains what the host needs: the newest packages for it', () => {
    expect(statSync(join(site.folder, 'erp.tar.gz')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).sort()).toEqual([
      ...['README.txt', 'SHA256SUMS', 'ca.pem'],
      ...['dke-mariadb_1.10.0_amd64.deb', 'dke-provider_1.10.0_amd64.deb', 'install.sh', 'pkcs11.toml'],
    ]);
    expect(statSync(join(folder, 'pkcs11.toml')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'ca.pem'), 'utf8')).toBe(readFileSync(site.server.caFile, 'utf8'));
    expect(readFileSync(join(folder, 'pkcs11.toml'), 'utf8')).toContain('ca_file = "/etc/dke/ca.pem"');
    expect(readFileSync(join(folder, 'README.txt'), 'utf8')).toContain('MariaDB on Debian, x86_64');
  });

  test('has checksums that notice a change, and then installs nothing', () => {
    expect(checksums(folder).status).toBe(0);
    const changed = join(site.folder, 'changed');
    execFileSync('cp', ['-r', folder, changed]);
    writeFileSync(join(changed, 'ca.pem'), 'another authority');
    expect(checksums(changed).status).toBe(1);
    const run = spawnSync('sh', ['install.sh', '--dry-run'], { cwd: changed, encoding: 'utf8' });
    expect([run.status, run.stdout]).toEqual([1, 'ca.pem: FAILED\n']);
    expect(run.stderr).toContain('a file of the bundle was changed');
  });

  test('prints what its script does, and changes nothing in a dry run', () => {
    const run = spawnSync('sh', [join(folder, 'install.sh'), '--dry-run'], { cwd: '/', encoding: 'utf8' });
    expect([run.status, run.stderr]).toEqual([0, '']);
    expect(run.stdout.split('\n')).toEqual([
      '+ apt-get install -y ./dke-provider_1.10.0_amd64.deb ./dke-mariadb_1.10.0_amd64.deb',
      '+ install -m 755 -d /etc/dke',
      '+ install -o mysql -g mysql -m 600 pkcs11.toml /etc/dke/pkcs11.toml',
      '+ install -m 644 ca.pem /etc/dke/ca.pem',
      '+ install -o mysql -g mysql -m 700 -d /var/lib/mysql-keys',
      '+ install -o mysql -g mysql -m 755 -d /var/log/dke-pkcs11',
      expect.stringMatching(/^Next: configure MariaDB/),
      '',
    ]);
  });

  test('leads a database to its keys', async () => {
    const config = join(site.folder, 'from-bundle.toml');
    const toml = readFileSync(join(folder, 'pkcs11.toml'), 'utf8');
    writeFileSync(config, toml.replace('/etc/dke/ca.pem', join(folder, 'ca.pem')), { mode: 0o600 });
    const database = site.database(config);
    expect((await database.call('open', { pin: 'any' })).rv).toBe('CKR_OK');
    expect((await database.call('generate', { label: 'FROM-BUNDLE', token: true })).rv).toBe('CKR_OK');
    await database.stop();
  });
});

test('a bundle has the authority that the command itself trusts', async () => {
  const trusted = join(site.folder, 'trusted.pem');
  writeFileSync(trusted, `the authority of a balancer\n${readFileSync(site.server.caFile, 'utf8')}`);
  const run = await done(
    ...['--ca-file', trusted, 'tde', 'app', 'register', 'shop', '--group', 'finance', '--bundle', 'shop.tar.gz'],
    ...['--system', 'debian', '--database', 'oracle'],
  );
  expect(run.code).toBe(0);
  expect(readFileSync(join(unpack('shop.tar.gz'), 'ca.pem'), 'utf8')).toBe(readFileSync(trusted, 'utf8'));
});

describe('without a package in the service', () => {
  test('the bundle says what to install first', async () => {
    const run = await dke(
      ...['tde', 'app', 'register', 'hr', '--group', 'finance', '--bundle', 'hr.tar.gz'],
      ...['--system', 'oracle-linux', '--database', 'oracle'],
    );
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('does not distribute dke-provider for this host');
    const folder = unpack('hr.tar.gz');
    expect(readFileSync(join(folder, 'README.txt'), 'utf8')).toContain('to be installed first: dke-provider');
    expect(checksums(folder).status).toBe(0);
    const run_ = spawnSync('sh', [join(folder, 'install.sh'), '--dry-run'], { encoding: 'utf8' });
    expect(run_.stdout).toContain('+ dke provider install --owner oracle:oinstall');
  });

  test('a package that does not match its checksum is left out, and the access_guid is not lost', async () => {
    const run = await dke(
      ...['tde', 'app', 'rotate-guid', 'erp', '--bundle', 'rotated.tar.gz'],
      ...['--system', 'rhel', '--database', 'mariadb'],
    );
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/the bundle contains no packages|does not distribute/);
    const folder = unpack('rotated.tar.gz');
    expect(readdirSync(folder)).not.toContain(damaged);
    expect(readFileSync(join(folder, 'pkcs11.toml'), 'utf8')).toContain('access_token');
  });
});

describe('what is refused before an access_guid is issued', () => {
  test.each([
    [['--bundle', 'x.tar.gz'], 'needs --system and --database'],
    [['--bundle', 'x.tar.gz', '--system', 'debian', '--database', 'oracle', '--out', 'y'], 'cannot be used together'],
    [['--system', 'debian'], 'describe a bundle'],
    [['--bundle', 'erp.tar.gz', '--system', 'debian', '--database', 'oracle'], 'exists'],
    [['--bundle', 'x.tar.gz', '--system', 'beos', '--database', 'oracle'], 'Allowed choices'],
  ])('%j: %s', async (options, why) => {
    const run = await dke('tde', 'app', 'register', 'refused', '--group', 'finance', ...options);
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain(why);
    expect((await done('tde', 'app', 'list', '-o', 'json')).stdout).not.toContain('"refused"');
    rmSync(join(site.folder, 'x.tar.gz'), { force: true });
  });
});
