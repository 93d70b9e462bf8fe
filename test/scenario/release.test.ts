// What is published can be verified where it arrives: checksums, their signature, where the files
// come from, and a repository that apt takes. The key is one of the test.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { sharedFolder } from '../support/folders.ts';
import { makePackages, project } from '../support/package-builds.ts';
import { blocksOf } from '../support/page-commands.ts';
import { makeSystemPackage } from '../support/rpm-system.ts';
import { installed } from '../support/tools.ts';

const canMake =
  installed('dpkg', 'dpkg-deb') &&
  installed('rpm', 'rpmbuild', 'rpmsign', 'rpmkeys') &&
  installed('createrepo-c', 'createrepo_c') &&
  installed('gnupg', 'gpg', 'gpgv') &&
  installed('apt', 'apt-get') &&
  installed('libmariadbd-dev', join(project, 'build/provider/mariadb/dke_key_management.so'));
const folder = sharedFolder();
const release = join(folder, 'release');
const at = (...names: readonly string[]): string => join(folder, ...names);

const gpg = (...args: readonly string[]): string =>
  execFileSync('gpg', ['--homedir', at('home'), '--batch', '--quiet', '--passphrase', '', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
const build = (to: string): void => makePackages(project, to, '--only', 'dke-mariadb');

beforeAll(() => {
  if (!canMake) return;
  mkdirSync(at('home'), { mode: 0o700 });
  gpg('--quick-generate-key', 'DKE test <test@packages.invalid>', 'ed25519', 'sign', 'never');
  writeFileSync(at('secret.asc'), gpg('--armor', '--export-secret-keys'), { mode: 0o600 });
  execFileSync('gpgconf', ['--homedir', at('home'), '--kill', 'all']);
  process.env.DKE_SIGNING_KEY_FILE = at('secret.asc');
  try {
    build(release);
    build(at('again'));
  } finally {
    delete process.env.DKE_SIGNING_KEY_FILE;
  }
  mkdirSync(at('unsigned'));
  // No build of ours has made it.
  writeFileSync(at('unsigned', 'foreign_1_amd64.deb'), 'x');
  build(at('unsigned'));
  execFileSync('gpg', ['--dearmor', '--output', at('publisher.gpg'), join(release, 'dke-signing-key.asc')], {
    env: { ...process.env, GNUPGHOME: at('home') },
  });
});

const isSigned = (where: string): boolean =>
  spawnSync('gpgv', ['--keyring', at('publisher.gpg'), join(where, 'SHA256SUMS.asc'), join(where, 'SHA256SUMS')])
    .status === 0;
const sums = (where: string) =>
  spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: where, encoding: 'utf8' });
const copyOf = (name: string): string => {
  execFileSync('cp', ['-a', release, at(name)]);
  return at(name);
};

describe.runIf(canMake)('the files of a release', () => {
  test('are verified by the commands of the page, as printed', () => {
    const reader = copyOf('reader');
    const [block] = blocksOf('docs/install.md').filter(({ heading }) => heading === 'A signed release');
    for (const { text } of block?.commands ?? []) {
      const { status, stderr } = spawnSync('sh', ['-c', text], {
        cwd: reader,
        encoding: 'utf8',
        env: { ...process.env, GNUPGHOME: at('home') },
      });
      expect([status, status === 0 ? '' : stderr], text).toEqual([0, '']);
    }
    expect(block?.commands).toHaveLength(4);
  });

  test('are named by SHA256SUMS, which is signed; a change of either is noticed', () => {
    expect(sums(release).stdout.match(/: OK$/gm)).toHaveLength(4);
    expect(isSigned(release)).toBe(true);
    const changed = copyOf('changed');
    appendFileSync(join(changed, 'dke-mariadb_1.0.0_amd64.deb'), 'x');
    expect(sums(changed).status).toBe(1);
    appendFileSync(join(changed, 'SHA256SUMS'), '\n');
    expect(isSigned(changed)).toBe(false);
  });

  test('are the same bytes when they are built again, signatures too', () => {
    const names = readdirSync(release, { recursive: true, encoding: 'utf8' });
    expect(names.toSorted()).toEqual(readdirSync(at('again'), { recursive: true, encoding: 'utf8' }).toSorted());
    for (const name of names.filter((each) => each !== 'repodata'))
      expect(readFileSync(at('again', name)).equals(readFileSync(join(release, name))), name).toBe(true);
  });

  test('have a statement of where they come from, with every file and its digest', () => {
    const text = readFileSync(join(release, 'dke-1.0.0.provenance.json'), 'utf8');
    const { _type, predicateType, subject, predicate } = JSON.parse(text);
    expect([_type, predicateType]).toEqual(['https://in-toto.io/Statement/v1', 'https://slsa.dev/provenance/v1']);
    const named = (subject as { name: string; digest: { sha256: string } }[]).map(
      ({ name, digest }) => `${digest.sha256}  ${name}`,
    );
    const listed = readFileSync(join(release, 'SHA256SUMS'), 'utf8').trim().split('\n');
    expect(listed.filter((line) => !line.endsWith('.provenance.json'))).toEqual(named);
    expect(predicate.buildDefinition.resolvedDependencies.length).toBeGreaterThanOrEqual(2);
  });

  test('are not signed without a key, and nothing looks as if they were', () => {
    expect(readdirSync(at('unsigned')).filter((name) => /\.asc$|Release|Packages|repodata/.test(name))).toEqual([]);
    expect(sums(at('unsigned')).status).toBe(0);
  });

  test('are those of the build alone: nothing else in the folder is vouched for', () => {
    for (const name of ['SHA256SUMS', 'dke-1.0.0.provenance.json'])
      expect(readFileSync(at('unsigned', name), 'utf8')).not.toContain('foreign');
  });

  const rpm = (...args: readonly string[]) =>
    spawnSync('rpmkeys', ['--dbpath', at('rpm-keys'), ...args], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
    });

  test('are RPM packages that are signed in themselves, and a repository of dnf whose index is', () => {
    const [name = ''] = readdirSync(release).filter((each) => each.endsWith('.rpm'));
    mkdirSync(at('rpm-keys'), { recursive: true });
    expect(rpm('--checksig', join(release, name)).status).not.toBe(0);
    expect(rpm('--import', join(release, 'dke-signing-key.asc')).status).toBe(0);
    const good = rpm('--checksig', '--define', '_pkgverify_level all', join(release, name));
    expect([good.status, good.stdout.trim()]).toEqual([0, `${join(release, name)}: digests signatures OK`]);
    const changed = copyOf('changed-rpm');
    appendFileSync(join(changed, name), 'x');
    expect(rpm('--checksig', '--define', '_pkgverify_level all', join(changed, name)).status).not.toBe(0);
    const index = join(release, 'repodata', 'repomd.xml');
    const verify = (file: string) => spawnSync('gpgv', ['--keyring', at('publisher.gpg'), `${index}.asc`, file]).status;
    expect(verify(index)).toBe(0);
    writeFileSync(at('other.xml'), readFileSync(index, 'utf8').replace('<revision>', '<revision>1'));
    expect(verify(at('other.xml'))).not.toBe(0);
    // The index names the lists, and the list of packages has the digest of each.
    const [, digest, list = ''] =
      /<data type="primary">\s*<checksum type="sha256">([0-9a-f]{64})<\/checksum>[\s\S]*?href="([^"]+)"/.exec(
        readFileSync(index, 'utf8'),
      ) ?? [];
    const packed = readFileSync(join(release, list));
    expect(createHash('sha256').update(packed).digest('hex')).toBe(digest);
    const own = createHash('sha256')
      .update(readFileSync(join(release, name)))
      .digest('hex');
    expect(gunzipSync(packed).toString('utf8')).toContain(own);
  });

  /**
   * dnf with the lines of the page, in a root where `system` stands for the packages of the system.
   */
  const dnf = (repository: string) => {
    const state = `${repository}.dnf`;
    const [, block = ''] =
      /```ini\n(\[dke\]\n[^`]*)```/.exec(readFileSync(join(project, 'docs/install.md'), 'utf8')) ?? [];
    const lines = block
      .replace('https://packages.example.com/dke/', `file://${repository}`)
      .replace(/^gpgkey=.*$/m, `gpgkey=file://${join(release, 'dke-signing-key.asc')}`);
    expect(lines).toMatch(/^gpgcheck=1\nrepo_gpgcheck=1$/m);
    for (const each of ['repos', 'root']) mkdirSync(join(state, each), { recursive: true });
    writeFileSync(
      join(state, 'repos/dke.repo'),
      `${lines}\n[system]\nname=System\nbaseurl=file://${at('system')}\ngpgcheck=0\n`,
    );
    const places = ['cachedir', 'persistdir', 'logdir'].map((name) => `${name}=${join(state, name)}`);
    writeFileSync(
      join(state, 'dnf.conf'),
      `[main]\nplugins=0\nreposdir=${join(state, 'repos')}\n${places.join('\n')}\nsystem_cachedir=${join(state, 'cachedir')}\n`,
    );
    const root = join(state, 'root');
    return spawnSync(
      'dnf',
      [
        '--assumeyes',
        '--config',
        join(state, 'dnf.conf'),
        '--installroot',
        root,
        '--releasever',
        '9',
        'install',
        'dke-mariadb',
      ],
      { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } },
    );
  };
  const makeSystem = (): void => {
    const [name = ''] = readdirSync(release).filter((each) => each.endsWith('.rpm'));
    makeSystemPackage([join(release, name)], at('system'));
    execFileSync('createrepo_c', ['--quiet', at('system')]);
  };

  test.runIf(installed('dnf', 'dnf') && process.getuid?.() === 0)(
    'are a repository from which dnf installs, and refuses when the index or a package was changed',
    () => {
      makeSystem();
      const { status, stderr } = dnf(release);
      expect([status, status === 0 ? '' : stderr]).toEqual([0, '']);
      const plugin = 'root/usr/lib64/mysql/plugin/dke_key_management.so';
      expect(existsSync(join(`${release}.dnf`, plugin))).toBe(true);

      const index = copyOf('dnf-index');
      appendFileSync(join(index, 'repodata', 'repomd.xml'), '\n');
      const refusedIndex = dnf(index);
      expect([refusedIndex.status, `${refusedIndex.stdout}${refusedIndex.stderr}`]).toEqual([
        1,
        expect.stringContaining('GPG signature verification error'),
      ]);
      const changed = copyOf('dnf-package');
      const [name = ''] = readdirSync(changed).filter((each) => each.endsWith('.rpm'));
      appendFileSync(join(changed, name), 'x');
      expect(dnf(changed).status).toBe(1);
      for (const refused of [index, changed]) expect(existsSync(join(`${refused}.dnf`, plugin))).toBe(false);
    },
  );

  const apt = (repository: string, ...args: readonly string[]) => {
    const state = `${repository}.apt`;
    for (const each of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(state, each), { recursive: true });
    writeFileSync(join(state, 'status'), '');
    writeFileSync(join(state, 'list'), `deb [arch=amd64 signed-by=${at('publisher.gpg')}] file:${repository} ./\n`);
    const options = [
      ...[`Dir::Etc::sourcelist=${join(state, 'list')}`, 'Dir::Etc::sourceparts=-', 'APT::Sandbox::User=root'],
      ...[`Dir::State::lists=${join(state, 'lists')}`, `Dir::State::status=${join(state, 'status')}`],
      ...[`Dir::Cache=${join(state, 'cache')}`, 'APT::Architecture=amd64', 'APT::Update::Error-Mode=any'],
    ];
    return spawnSync('apt-get', [...options.flatMap((each) => ['-o', each]), ...args], {
      cwd: state,
      encoding: 'utf8',
    });
  };

  test('are a repository that apt takes, and refuses when a list or a package was changed', () => {
    expect(apt(release, 'update')).toMatchObject({ status: 0 });
    expect(apt(release, 'download', 'dke-mariadb')).toMatchObject({ status: 0 });
    const list = copyOf('changed-list');
    appendFileSync(join(list, 'Packages'), '\n');
    expect(apt(list, 'update').status).not.toBe(0);
    const unsigned = copyOf('changed-release');
    writeFileSync(
      join(unsigned, 'InRelease'),
      readFileSync(join(unsigned, 'InRelease'), 'utf8').replace('Label: DKE', 'Label: dke'),
    );
    expect(apt(unsigned, 'update').status).not.toBe(0);
    const changed = copyOf('changed-package');
    expect(apt(changed, 'update')).toMatchObject({ status: 0 });
    appendFileSync(join(changed, 'dke-mariadb_1.0.0_amd64.deb'), 'x');
    expect(apt(changed, 'download', 'dke-mariadb').status).not.toBe(0);
  });
});
