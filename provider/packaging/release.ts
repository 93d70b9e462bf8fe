// What makes the files of a build verifiable where they arrive: where they come from (an in-toto
// statement with SLSA's provenance), their checksums, and with a key also signatures and
// repositories that apt and dnf accept. Times are those of the commit, so that the same commit and
// key give the same bytes.
//
// 1. Who can choose a file: anyone who has the folder on its way. 2. What proves it: SHA256SUMS,
// which names every file, and its signature; InRelease, which names Packages. 3. They are the
// publisher's. 4. Nothing is read but what this build has written. 5. A build that is cut off has
// no SHA256SUMS. 6. The key is in a folder of its own, which ends with the build.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Build } from './stage.ts';

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

const commitOf = (root: string): string | undefined => {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined;
  }
};

const writeProvenance = ({ root, node, version, out, machine }: Build, made: readonly string[]): string => {
  const commit = commitOf(root);
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: made.map((name) => ({ name, digest: { sha256: sha256(join(out, name)) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:dke:npm-run-package:1',
        externalParameters: { version, architecture: machine.name },
        resolvedDependencies: [
          ...(commit === undefined ? [] : [{ uri: 'urn:dke:source', digest: { gitCommit: commit } }]),
          { uri: 'urn:dke:source:package-lock.json', digest: { sha256: sha256(join(root, 'package-lock.json')) } },
          { uri: `pkg:generic/node@${process.versions.node}`, digest: { sha256: sha256(node) } },
        ],
      },
      runDetails: { builder: { id: process.env.DKE_BUILDER_ID ?? 'urn:dke:builder:unnamed' } },
    },
  };
  const name = `dke-${version}.provenance.json`;
  writeFileSync(join(out, name), `${JSON.stringify(statement, undefined, 1)}\n`);
  return name;
};

/** A flat repository: apt reads Packages, which InRelease names. */
const writeRepository = (
  { out, date }: Build,
  made: readonly string[],
  sign: (name: string, to: string) => void,
): void => {
  const debs = made.filter((name) => name.endsWith('.deb'));
  const packages = debs.map((name) => {
    const path = join(out, name);
    const fields = execFileSync('dpkg-deb', ['--field', path], { encoding: 'utf8' }).trimEnd();
    return `${fields}\nFilename: ./${name}\nSize: ${readFileSync(path).length}\nSHA256: ${sha256(path)}\n`;
  });
  if (packages.length === 0) return;
  const list = join(out, 'Packages');
  writeFileSync(list, packages.join('\n'));
  const digest = `${sha256(list)} ${readFileSync(list).length} Packages`;
  const release = { Origin: 'DKE', Label: 'DKE', Suite: 'stable', Date: date.toUTCString().replace('GMT', 'UTC') };
  const lines = Object.entries(release).map(([name, value]) => `${name}: ${value}\n`);
  writeFileSync(join(out, 'Release'), `${lines.join('')}SHA256:\n ${digest}\n`);
  sign('Release', 'InRelease');
};

interface Signer {
  /** The folder of gpg's keys. */
  readonly home: string;
  /** When the signatures are made, for gpg. */
  readonly time: string;
  readonly sign: (name: string, to: string) => void;
}

/** Signs each RPM package in itself, and writes the repository of dnf, whose index is signed. */
const writeRpmRepository = ({ out, date }: Build, made: readonly string[], { home, time, sign }: Signer): void => {
  const rpms = made.filter((name) => name.endsWith('.rpm'));
  if (rpms.length === 0) return;
  const at = String(Math.floor(date.getTime() / 1000));
  const options = `--batch --no-tty --pinentry-mode loopback --faked-system-time ${time}`;
  execFileSync(
    'rpmsign',
    [
      ...['--define', '_gpg_name DKE', '--define', '_gpg_digest_algo sha512'],
      // Without a name: the home has one key.
      ...[
        '--define',
        `__gpg_sign_cmd /usr/bin/env env gpg --no-armor --digest-algo sha512 ${options} -sbo %{__signature_filename} -- %{__plaintext_filename}`,
      ],
      '--addsign',
      ...rpms.map((name) => join(out, name)),
    ],
    { env: { ...process.env, GNUPGHOME: home }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  // The lists have the times of the files.
  for (const name of rpms) utimesSync(join(out, name), date, date);
  execFileSync(
    'createrepo_c',
    [
      ...['--quiet', '--simple-md-filenames', '--no-database', '--revision', at, '--set-timestamp-to-revision'],
      ...['--compatibility', '--workers', '1', '--excludes', '*.stage/*', out],
    ],
    { env: { ...process.env, SOURCE_DATE_EPOCH: at }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  sign(join('repodata', 'repomd.xml'), join('repodata', 'repomd.xml.asc'));
};

export const writeChecksums = (folder: string, names: readonly string[]): void => {
  writeFileSync(join(folder, 'SHA256SUMS'), names.map((name) => `${sha256(join(folder, name))}  ${name}\n`).join(''));
};

/**
 * `files`: the names of what this build has made; nothing else in its folder is vouched for.
 * `key`: the file of an OpenPGP secret key without a passphrase.
 */
export const writeRelease = (build: Build, files: readonly string[], key: string | undefined): void => {
  const { out, date } = build;
  const made = [...files].sort();
  if (key === undefined) {
    writeChecksums(out, [...made, writeProvenance(build, made)].sort());
    return;
  }
  // Short: gpg's agent listens there.
  const home = mkdtempSync(join(tmpdir(), 'dke-key-'));
  const gpg = (...args: readonly string[]): string =>
    execFileSync(
      'gpg',
      [
        ...['--homedir', home, '--batch', '--yes', '--quiet', '--no-tty', '--pinentry-mode', 'loopback'],
        ...['--no-emit-version', '--digest-algo', 'SHA512'],
        ...args,
      ],
      // gpg warns on stderr of the faked time, which is intended; its errors are in what is thrown.
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    );
  /** No signature is older than its key, which every verifier would refuse. */
  const time = (): string => {
    const [, made = '0'] = /^sec(?::[^:]*){4}:(\d+)/m.exec(gpg('--with-colons', '--list-secret-keys')) ?? [];
    return `${Math.max(Math.floor(date.getTime() / 1000), Number(made))}!`;
  };
  const sign = (name: string, to: string): void => {
    const form = to.endsWith('.asc') ? ['--armor', '--detach-sign'] : ['--clear-sign'];
    gpg('--faked-system-time', time(), ...form, '--output', join(out, to), join(out, name));
  };
  try {
    gpg('--import', key);
    gpg('--armor', '--output', join(out, 'dke-signing-key.asc'), '--export');
    writeRpmRepository(build, made, { home, time: time(), sign });
    writeRepository(build, made, sign);
    // The packages are named with their signatures, which are part of them.
    writeChecksums(out, [...made, writeProvenance(build, made)].sort());
    sign('SHA256SUMS', 'SHA256SUMS.asc');
  } finally {
    execFileSync('gpgconf', ['--homedir', home, '--kill', 'all'], { stdio: 'ignore' });
    rmSync(home, { recursive: true, force: true });
  }
};
