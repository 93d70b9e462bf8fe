// The files of a configuration bundle: what a database host needs to use its master keys, with the
// commands that install it. The archive is made where the access_guid is shown (the command, the
// console), because the service does not store it.

import { databases, systems, type Target } from '../../domain/bundle-targets.ts';
import type { ArchiveFile } from './tar-archive.ts';

export interface BundlePackage {
  readonly name: string;
  /** SHA-256 of the package, in hexadecimal digits. */
  readonly sha256: string;
}

export interface BundleInput {
  readonly target: Target;
  /** The name of the application. */
  readonly application: string;
  /** pkcs11.toml, without `ca_file`. */
  readonly config: string;
  /** PEM; null: the host trusts the certificate of the service already. */
  readonly authority: string | null;
  /** In the archive next to these files. */
  readonly packages: readonly BundlePackage[];
  /** Packages that the administrator has to install first. */
  readonly missing: readonly string[];
}

const configFolder = '/etc/dke';
export const authorityPath = `${configFolder}/ca.pem`;
/**
 * pkcs11.toml for a host that has the certificate, PEM, at `authorityPath`; null: it needs none.
 */
export const withAuthority = (config: string, authority: string | null): string =>
  authority === null ? config : `${config.trimEnd()}\nca_file = ${JSON.stringify(authorityPath)}\n`;
const library = '/usr/lib/dke-provider/1.0/libdke_pkcs11.so';

/** Names come from people: a comment or an echo must stay one line of text. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9 ._@-]/g, '?');

const installCommand = {
  debian: 'apt-get install -y',
  ubuntu: 'apt-get install -y',
  rhel: 'dnf install -y',
  'oracle-linux': 'dnf install -y',
  sles: 'zypper --non-interactive install --allow-unsigned-rpm',
} as const satisfies Record<Target['system'], string>;

/** What is special about a database: more commands, and what the administrator does next. */
const steps = {
  oracle: {
    commands: ['dke provider install --owner "$owner"'],
    next: 'run dke provider check, then follow docs/databases/oracle.md.',
  },
  mariadb: {
    commands: [
      'install -o "$user" -g "$group" -m 700 -d /var/lib/mysql-keys',
      'install -o "$user" -g "$group" -m 755 -d /var/log/dke-pkcs11',
    ],
    next: 'configure MariaDB with step 3 of docs/databases/mariadb.md, and start it once with --dke-key-management-initialize.',
  },
  postgresql: { commands: [], next: `follow docs/databases/postgresql.md. The library is ${library}.` },
  java: { commands: [], next: `name the library in the configuration of your provider: ${library}.` },
  other: { commands: [], next: `name the library in the configuration of your program: ${library}.` },
} as const satisfies Record<Target['database'], { readonly commands: readonly string[]; readonly next: string }>;

const installScript = ({ target, application, authority, packages, missing }: BundleInput): string => {
  const { owner } = databases[target.database];
  const { commands, next } = steps[target.database];
  const files = packages.map(({ name }) => `./${name}`).join(' ');
  const query = systems[target.system].kind === 'deb' ? 'dpkg -s' : 'rpm -q';
  return [
    '#!/bin/sh',
    `# Installs the configuration of the application ${plain(application)} on this database host (${databases[target.database].label}).`,
    '# Run it as root. It can be run again. --dry-run prints the commands and changes nothing.',
    'set -eu',
    'cd "$(dirname "$0")"',
    'run() {',
    `  printf '%s\\n' "+ $*"`,
    '  [ -n "$dry" ] || "$@"',
    '}',
    'fail() {',
    `  printf '%s\\n' "$1" >&2`,
    '  exit 1',
    '}',
    'dry=',
    '[ "$*" != --dry-run ] || dry=yes',
    `owner=\${OWNER:-${owner ?? ''}}`,
    'case $owner in',
    '  ?*:?*) ;;',
    "  *) fail 'name the OS user and group of the database: OWNER=user:group sh install.sh' ;;",
    'esac',
    `user=$(printf '%s' "$owner" | cut -d: -f1)`,
    `group=$(printf '%s' "$owner" | cut -d: -f2)`,
    "sha256sum --check --quiet SHA256SUMS || fail 'a file of the bundle was changed: create the bundle again'",
    '[ -n "$dry" ] || [ "$(id -u)" = 0 ] || fail \'run it as root\'',
    ...missing.map(
      (name) =>
        `[ -n "$dry" ] || ${query} ${name} >/dev/null 2>&1 || fail 'install the package ${name} first: it is not part of this bundle'`,
    ),
    ...(files === '' ? [] : [`run ${installCommand[target.system]} ${files}`]),
    '[ -n "$dry" ] || id "$user" >/dev/null 2>&1 || fail "there is no OS user $user: install the database first, or set OWNER=user:group"',
    `run install -m 755 -d ${configFolder}`,
    `if [ -e ${configFolder}/pkcs11.toml ] && ! cmp -s pkcs11.toml ${configFolder}/pkcs11.toml; then`,
    `  run cp -p --backup=numbered ${configFolder}/pkcs11.toml ${configFolder}/pkcs11.toml.former`,
    'fi',
    `run install -o "$user" -g "$group" -m 600 pkcs11.toml ${configFolder}/pkcs11.toml`,
    ...(authority === null ? [] : [`run install -m 644 ca.pem ${authorityPath}`]),
    ...commands.map((command) => `run ${command}`),
    `printf '%s\\n' 'Next: ${next}'`,
    '',
  ].join('\n');
};

const readme = ({ target, application, packages, missing, authority }: BundleInput): string =>
  [
    `Configuration bundle of the application ${plain(application)}`,
    '',
    `For: ${databases[target.database].label} on ${systems[target.system].label}, ${target.architecture}`,
    '',
    'pkcs11.toml contains a credential: anyone who has it can use the master keys of this application.',
    'Copy the bundle over a protected connection, and delete it when the database works.',
    '',
    'On the database host, as root, in the folder of this file:',
    '',
    '  sha256sum --check SHA256SUMS',
    '  sh install.sh --dry-run',
    `  ${databases[target.database].owner === null ? 'OWNER=user:group ' : ''}sh install.sh`,
    '',
    ...(databases[target.database].owner === null
      ? ['OWNER is the OS user and group of the database.', '']
      : [`Another OS user: OWNER=user:group sh install.sh (default: ${databases[target.database].owner})`, '']),
    ...(missing.length === 0 ? [] : [`Not part of this bundle, and to be installed first: ${missing.join(', ')}`, '']),
    'Files:',
    '',
    `  pkcs11.toml  goes to ${configFolder}/pkcs11.toml, mode 600, owned by the OS user of the database`,
    ...(authority === null
      ? []
      : [`  ca.pem       goes to ${authorityPath}: the certificate that the database host has to trust`]),
    ...packages.map(({ name }) => `  ${name}`),
    '',
    `Guide: ${databases[target.database].guide}`,
    '',
  ].join('\n');

const toHex = (bytes: ArrayBuffer): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Every file but the packages. Their contents are secret: the caller wipes them. */
export const bundleFiles = async (input: BundleInput): Promise<readonly ArchiveFile[]> => {
  const encoder = new TextEncoder();
  const config = withAuthority(input.config, input.authority);
  const files: ArchiveFile[] = [
    { name: 'README.txt', mode: 0o644, content: encoder.encode(readme(input)) },
    { name: 'install.sh', mode: 0o755, content: encoder.encode(installScript(input)) },
    { name: 'pkcs11.toml', mode: 0o600, content: encoder.encode(config) },
    ...(input.authority === null ? [] : [{ name: 'ca.pem', mode: 0o644, content: encoder.encode(input.authority) }]),
  ];
  const sums = await Promise.all(
    files.map(async ({ name, content }) => ({ name, sha256: toHex(await crypto.subtle.digest('SHA-256', content)) })),
  );
  const lines = [...sums, ...input.packages].map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('');
  return [...files, { name: 'SHA256SUMS', mode: 0o644, content: encoder.encode(lines) }];
};
