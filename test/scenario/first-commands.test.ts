// The commands of the pages, literally and in order, on hosts that have a minimal Debian and the
// packages: the host of the service, a host that gets the library for a database, and one with Java
// databases and PostgreSQL. They are typed by the users that the pages name: `#` is root, `$` a
// person, `sudo -u` another user. What a page leaves open (ids, addresses, input at a terminal) is
// replaced according to `places`, and nothing else.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FreshSystem, homeOf, startFreshSystem, whyNoFreshSystem } from '../support/fresh-system.ts';
import { blocksOf, blockTable, isFresh } from '../support/page-commands.ts';
import { installed } from '../support/tools.ts';

const project = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'dke-first-commands-'));
const whyNot = installed('dpkg', 'dpkg-deb') ? whyNoFreshSystem() : 'packages cannot be made';
if (whyNot !== undefined) console.info(`the first commands are not tested: ${whyNot}`);

type Host = 'service' | 'database' | 'databases';
const hosts = {} as Record<Host, FreshSystem>;

/** What a page leaves to its reader. */
const places: readonly (readonly [page: RegExp, printed: string | RegExp, typed: string])[] = [
  // An editor waits for a person.
  [
    /install/,
    'editor /etc/dke/dke.toml',
    `sed -i -e 's/"localhost", "127.0.0.1"/"keys.example.com", "localhost"/' \\
      -e '0,/^public_names/s//packages_directory = "\\/var\\/lib\\/dke\\/packages"\\npublic_names/' /etc/dke/dke.toml`,
  ],
  // The hosts have Debian.
  [/install/, '--system rhel', '--system debian'],
  // The command reads the token of the service from standard input.
  [/snapshots/, '--passphrase', '--passphrase-file passphrase'],
  [/snapshots/, /dke-recovery-key\+\w+\+AU\.\.\./g, 'recovery.key'],
  [/snapshots/, '--recovery-key recovery.key', '--recovery-key recovery.key --passphrase-file passphrase'],
  [/snapshots/, /01981d2c-[0-9a-f-]+/g, `"$(dke snapshot list -o json | jq -r '.items[0].id')"`],
  // A passphrase is typed at a terminal.
  [
    /root-key/,
    '--out /var/lib/dke/root-backup.key',
    '--out /var/lib/dke/root-backup.key --new-passphrase-file /var/lib/dke/passphrase',
  ],
  [
    /root-key/,
    'root restore root-backup.key',
    'root restore /var/lib/dke/root-backup.key --passphrase-file /var/lib/dke/passphrase',
  ],
];

const typed = (page: string, text: string): string =>
  places.reduce((all, [pages, printed, what]) => (pages.test(page) ? all.replaceAll(printed, what) : all), text);

interface Step {
  readonly page: string;
  readonly heading: string;
  /** Its blocks, from 0; default: all. */
  readonly blocks?: readonly number[];
  readonly on?: Host;
  /** What must be there before, in the session of the user. */
  readonly before?: readonly (readonly [user: string, script: string])[];
  /** A file of the service's host that is typed into standard input. */
  readonly input?: string;
  /** What is carried between the hosts before. */
  readonly prepare?: () => void;
  /** Types a script without prompts. */
  readonly as?: string;
  readonly shows?: RegExp;
}

const person = 'ada';
/** On the way from the host of the service to others. */
const carry = (from: string, to: string): void => cpSync(join(hosts.service.folder, from), to);
/** What the guides of databases leave to their reader. */
const settings = `export DKE_SERVER=https://keys.example.com DKE_CA_FILE=$PWD/ca.pem DKE_TOKEN_FILE=$PWD/token
export DKE_JCE=/usr/share/java/dke-jce.jar PKCS11_LIBRARY=/usr/lib/dke-provider/1.0/libdke_pkcs11.so`;
/**
 * A guide from its first command to its last: in a folder of its own, and in a tenant of its own
 * because guides use the same names.
 */
const guide = (name: string, as: string, begin: string, headings: readonly string[]): readonly Step[] =>
  headings.map((heading, index) => ({
    ...{ page: `docs/databases/${name}.md`, heading, on: 'databases', as },
    ...(index === 0 && {
      prepare: () => {
        const root = join(hosts.databases.folder, 'root');
        mkdirSync(join(root, name));
        carry(join(homeOf(person), 'token'), join(root, name, 'token'));
        carry('var/lib/dke/data/tls.crt', join(root, name, 'ca.pem'));
        cpSync(resolve(import.meta.dirname, '../support/SqlClient.java'), join(root, name, 'SqlClient.java'));
        // Programs that the page shows, and that its reader saves.
        const text = readFileSync(join(project, `docs/databases/${name}.md`), 'utf8');
        for (const [, program = '', file = ''] of text.matchAll(/^```java\n(\/\/ (\w+\.java):[\s\S]*?)^```$/gm))
          writeFileSync(join(root, name, file), program);
      },
      before: [
        ['root', `install -d -o ${as} ~${as}/${name}; install -o ${as} -m 600 ~/${name}/* ~${as}/${name}/`],
        [as, `cd ~/${name}; ${settings}; dke tenant create ${name}; export DKE_TENANT=${name}\n${begin}`],
      ],
    }),
  }));
const steps: readonly Step[] = [
  { page: 'docs/install.md', heading: 'The packages', blocks: [1], shows: /dke-server_.*: OK/ },
  {
    page: 'docs/install.md',
    heading: 'The service',
    prepare: () =>
      cpSync(join(folder, 'packages'), join(hosts.service.folder, 'var/lib/dke/packages'), { recursive: true }),
    shows: /health\.healthy +true[\s\S]*passed all checks/,
  },
  { page: 'docs/install.md', heading: 'Step by step', blocks: [0] },
  {
    page: 'docs/install.md',
    heading: 'Step by step',
    blocks: [1],
    on: 'database',
    prepare: () => {
      carry('root/pkcs11.toml', join(hosts.database.folder, 'root/pkcs11.toml'));
      carry('var/lib/dke/data/tls.crt', join(hosts.database.folder, 'root/ca.pem'));
    },
    before: [['root', 'groupadd oinstall']],
    shows: /installed {2}\/opt\/oracle/,
  },
  { page: 'docs/install.md', heading: 'Upgrade and rollback', blocks: [0], on: 'database' },
  { page: 'docs/install.md', heading: 'Step by step', blocks: [2], on: 'database' },
  {
    page: 'docs/install.md',
    heading: 'Removal',
    on: 'database',
  },
  { page: 'docs/install.md', heading: 'The shortest path: a configuration bundle', blocks: [0], shows: /crm\.tar\.gz/ },
  {
    page: 'docs/install.md',
    heading: 'The shortest path: a configuration bundle',
    blocks: [1],
    on: 'database',
    prepare: () => carry('root/crm.tar.gz', join(hosts.database.folder, 'root/crm.tar.gz')),
    shows: /Next: run dke provider check/,
  },
  {
    page: 'docs/command.md',
    heading: 'Connection and sign-in',
    prepare: () => carry('var/lib/dke/data/tls.crt', join(hosts.service.folder, homeOf(person), 'ca.pem')),
    before: [
      ['root', 'chmod 644 ~ada/ca.pem'],
      [person, 'export DKE_CA_FILE=$PWD/ca.pem'],
    ],
    input: '/var/lib/dke/administrator-token',
    shows: /health\.healthy +true/,
  },
  { page: 'docs/command.md', heading: 'Users and sessions' },
  { page: 'docs/application-callers.md', heading: 'Networks', before: [[person, 'dke tde app callers erp']] },
  { page: 'docs/compatibility.md', heading: 'Compatibility switches' },
  { page: 'docs/endpoints.md', heading: 'From nothing to a key in the cloud', blocks: [0] },
  { page: 'docs/endpoints.md', heading: 'Exchanging a credential' },
  { page: 'docs/endpoints.md', heading: 'The request log', blocks: [0] },
  { page: 'docs/audit.md', heading: 'Checking it', shows: /valid +true/ },
  {
    page: 'docs/audit.md',
    heading: 'The request log',
    blocks: [1],
    before: [[person, 'rm -f requests.ndjson audit.ndjson']],
  },
  { page: 'docs/audit.md', heading: 'Sending it elsewhere' },
  { page: 'docs/roles.md', heading: 'Giving roles' },
  {
    page: 'docs/snapshots.md',
    heading: 'The recovery key',
    before: [[person, 'openssl rand -base64 30 | install -m 600 /dev/stdin passphrase']],
  },
  { page: 'docs/snapshots.md', heading: 'Creating snapshots' },
  { page: 'docs/snapshots.md', heading: 'Verifying', blocks: [0] },
  { page: 'docs/snapshots.md', heading: 'Copies elsewhere' },
  { page: 'docs/tenants.md', heading: 'Life cycle' },
  {
    page: 'docs/root-key.md',
    heading: 'Backup',
    before: [['root', 'openssl rand -base64 30 | install -o dke -m 600 /dev/stdin /var/lib/dke/passphrase']],
  },
  {
    page: 'docs/databases/mariadb.md',
    heading: 'From zero to encrypted',
    blocks: [0],
  },
  {
    page: 'docs/databases/mariadb.md',
    heading: 'From zero to encrypted',
    blocks: [1],
    on: 'database',
    as: 'root',
    before: [['root', 'cd ~']],
    prepare: () => {
      carry(join(homeOf(person), 'pkcs11.toml'), join(hosts.database.folder, 'root/pkcs11.toml'));
      carry('var/lib/dke/data/tls.crt', join(hosts.database.folder, 'root/ca.pem'));
    },
  },
  ...guide('derby', person, '', [
    ...['Register the database', 'Create the keys', 'Create the database', 'Open it', 'Rotate the master key'],
    ...['Rotate the data key', 'Encrypt an existing database', 'Disable or destroy the database'],
  ]),
  ...guide('hsqldb', person, 'unset CLASSPATH; javac SqlClient.java', [
    ...['Register the database', 'Create the keys', 'Create the database', 'Open it', 'Rotate the master key'],
    ...['Rotate the data key', 'Disable or destroy the database'],
  ]),
  ...guide(
    'postgresql',
    'postgres',
    'export PATH=/usr/lib/postgresql/15/bin:$PATH PGPORT=5433 PGHOST=$PWD/socket PGUSER=postgres; mkdir socket',
    [
      ...['Register the database', 'Create the sealing key', "The server's TLS key", 'Backups', 'Restore'],
      ...['The data directory', "A client's key on the token", 'Rotate the sealing key', 'Destroy'],
    ],
  ),
];

const run = async (host: Host, user: string, script: string, input?: string): Promise<string> => {
  const { code, out, complaints } = await hosts[host].type(user, script, input);
  if (code !== 0) throw new Error(`${user} on the host of the ${host}: ${code}\n${complaints}\n${out}`);
  return out;
};

beforeAll(async () => {
  if (whyNot !== undefined) return;
  const packages = join(folder, 'packages');
  execFileSync(
    process.execPath,
    [join(project, 'provider/packaging/main.ts'), '--fast', '--kind', 'deb', '--out', packages],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const names = ['keys.example.com'];
  const service = await startFreshSystem(join(folder, 'service'), { names, users: [person] });
  hosts.service = service;
  hosts.database = await startFreshSystem(join(folder, 'database'), {
    names,
    users: ['oracle', 'mysql'],
    beside: service.holder,
  });
  hosts.databases = await startFreshSystem(join(folder, 'databases'), {
    ...{ names, users: [person], kind: 'databases', beside: service.holder },
  });
  for (const host of Object.values(hosts)) cpSync(packages, join(host.folder, 'root'), { recursive: true });
  await run('databases', 'root', 'dpkg --install ~/dke-provider_*.deb');
  cpSync(packages, join(service.folder, homeOf(person)), { recursive: true });
});
afterAll(async () => {
  for (const host of Object.values(hosts)) await host.end();
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(whyNot === undefined)('on hosts with only the packages', () => {
  test.each(steps)(
    '$page: $heading $blocks',
    async ({ page, heading, blocks, on = 'service', before = [], input, prepare, as, shows }) => {
      prepare?.();
      for (const [user, script] of before) await run(on, user, script);
      const all = blocksOf(page).filter((each) => each.heading === heading);
      expect(all.length).toBeGreaterThan(0);
      let out = '';
      for (const [index, block] of all.entries()) {
        if (blocks !== undefined && !blocks.includes(index)) continue;
        for (const { typist, text } of block.commands) {
          // sudo is part of the command; who types it is a person.
          const user = typist === 'any' ? (as ?? person) : 'root';
          out += await run(
            on,
            user,
            typed(page, text),
            input === undefined ? undefined : readFileSync(join(hosts[on].folder, input), 'utf8'),
          );
        }
      }
      expect(out).toMatch(shows ?? /^/);
    },
  );

  test('a bundle can be installed again, and then the host is in order', async () => {
    expect(await run('database', 'root', 'cd ~/dke-bundle && sh install.sh && dke provider check')).toContain(
      'Next: run',
    );
    const { folder: host } = hosts.database;
    expect(statSync(join(host, 'etc/dke/pkcs11.toml')).mode & 0o777).toBe(0o600);
    expect(existsSync(join(host, 'etc/dke/pkcs11.toml.former'))).toBe(true);
  });

  test('are those of the table, and all of them', () => {
    const wanted = Object.entries(blockTable).flatMap(([page, headings]) =>
      Object.entries(headings).flatMap(([heading, entries]) =>
        entries.flatMap((entry, index) => (isFresh(entry) ? [`${page}: ${heading} ${index}`] : [])),
      ),
    );
    const done = steps.flatMap(({ page, heading, blocks }) =>
      (
        blocks ?? [
          ...blocksOf(page)
            .filter((each) => each.heading === heading)
            .keys(),
        ]
      ).map((index) => `${page}: ${heading} ${index}`),
    );
    expect([...new Set(done)].sort()).toEqual(wanted.sort());
  });
});
