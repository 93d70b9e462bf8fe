// The shell blocks of all pages for users, with the OS user of each command, and a table with the
// test that runs each block, or why none does. A heading of a page has one entry for each of its
// blocks.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/**
 * root: `#` and `sudo`. A name: `sudo -u` and `runuser -u`. any: who reads the page, with `$` or in
 * a script.
 */
export type Typist = 'root' | 'any' | (string & {});

export interface PageCommand {
  readonly typist: Typist;
  readonly text: string;
}

export interface PageBlock {
  readonly page: string;
  readonly heading: string;
  readonly line: number;
  readonly commands: readonly PageCommand[];
}

const typistOf = (prompt: string, text: string): Typist =>
  /\b(?:sudo|runuser) -u (\S+)/.exec(text)?.[1] ?? (prompt === '#' || /^sudo /.test(text) ? 'root' : 'any');

/** What a block has people type; lines of a console without a prompt are what it prints. */
export const commandsOf = (kind: string, text: string): readonly PageCommand[] => {
  if (kind !== 'console') return text.trim() === '' ? [] : [{ typist: 'any', text: text.trimEnd() }];
  const commands: PageCommand[] = [];
  let continues = false;
  for (const line of text.split('\n')) {
    const [, prompt = '', typed = ''] = /^\s*([$#]) (.*)$/.exec(line) ?? [];
    const last = commands.at(-1);
    if (continues && last !== undefined) commands[commands.length - 1] = { ...last, text: `${last.text}\n${line}` };
    else if (prompt !== '') commands.push({ typist: typistOf(prompt, typed), text: typed });
    else continue;
    continues = line.endsWith('\\');
  }
  return commands;
};

export const blocksOf = (page: string): readonly PageBlock[] => {
  const blocks: PageBlock[] = [];
  let heading = '';
  let open: { kind: string; line: number; text: string[] } | undefined;
  readFileSync(join(root, page), 'utf8')
    .split('\n')
    .forEach((line, index) => {
      const [, fence] = /^\s*```(\w*)/.exec(line) ?? [];
      if (open === undefined) {
        heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
        if (fence !== undefined) open = { kind: fence, line: index + 1, text: [] };
      } else if (fence === undefined) open.text.push(line);
      else {
        if (['sh', 'bash', 'shell', 'console'].includes(open.kind))
          blocks.push({ page, heading, line: open.line, commands: commandsOf(open.kind, open.text.join('\n')) });
        open = undefined;
      }
    });
  return blocks;
};

/** Pages that people read. */
export const pages = (): readonly string[] =>
  ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'provider/mariadb/FORMAT.md']
    .concat(
      readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => join('docs', name)),
    )
    .sort();
export const pagesWithCommands = (): readonly string[] => pages().filter((page) => blocksOf(page).length > 0);

/** The tests that run a block. */
const by = (...tests: readonly string[]) => ({ tests: tests.map((test) => `test/${test}.test.ts`) }) as const;
/** Why none does. */
const not = (reason: string) => ({ reason }) as const;
export type BlockEntry = ReturnType<typeof by> | ReturnType<typeof not>;

/** The packages, installed in a system that has nothing else of the project. */
const onFreshSystem = 'scenario/first-commands';
const fresh = by(onFreshSystem);
export const isFresh = (entry: BlockEntry): boolean =>
  'tests' in entry && entry.tests.includes(`test/${onFreshSystem}.test.ts`);
const operations = by('scenario/operations-page');
const derby = by('databases/derby', onFreshSystem);
const hsqldb = by('databases/hsqldb', onFreshSystem);
const postgresql = by('databases/postgresql', onFreshSystem);

const measurement = not('a measurement: it takes minutes and shows figures, not a state');
const checkout = not('builds or tests a checkout: continuous integration and scenario/demo do the same');
const oneOfMany = not('an example with the ids, names or files of one installation');
const containers = not(
  'needs a container engine or a cluster; the image: scenario/container, the files: house/deployments',
);
const terminal = not('waits for a person at a terminal');

const times = (count: number, entry: BlockEntry): readonly BlockEntry[] => Array.from({ length: count }, () => entry);

export const blockTable: Readonly<Record<string, Readonly<Record<string, readonly BlockEntry[]>>>> = {
  'README.md': { 'Try it': [by('scenario/demo')], 'Test it': [checkout], 'Run it': [checkout, checkout] },
  'CONTRIBUTING.md': { Setup: [checkout], Tests: times(3, checkout) },
  'docs/addresses.md': {
    'Another name': times(4, by('scenario/addresses-page')),
    'Another port': times(2, by('scenario/addresses-page')),
    'A private authority': times(4, by('scenario/addresses-page')),
  },
  'docs/api.md': { 'A first call': [oneOfMany] },
  'docs/application-callers.md': { Networks: [fresh], 'Client certificates': times(2, oneOfMany) },
  'docs/approvals.md': { 'Dual control: approval by others': [oneOfMany], 'Requests and approvals': [oneOfMany] },
  'docs/audit.md': {
    'Checking it': [fresh, fresh],
    'Rotating the key': [oneOfMany],
    'The request log': [oneOfMany, fresh],
    'Sending it elsewhere': [fresh],
    'Quarantine: "is older than its last checkpoint"': [not('only with a database that is older: scenario/quarantine')],
  },
  'docs/backup.md': {
    'Creating a backup': [operations],
    'Every night': [by('scenario/installed-host')],
    'Verifying a backup': [operations, by('scenario/backup')],
    'Restoring on a new machine': [operations],
    'Destroyed keys': [oneOfMany],
  },
  'docs/clock.md': { 'What to do': times(2, not('only with a wrong clock: scenario/clock-deadlines')) },
  'docs/cloud.md': {
    '`dke cloud`: a simulated cloud': times(2, not('with the ids that the cloud answers: scenario/cloud')),
  },
  'docs/command.md': {
    'Connection and sign-in': [fresh],
    Contexts: [oneOfMany],
    Completion: [oneOfMany],
    'Users and sessions': [fresh],
    'A database': [oneOfMany],
    Runbooks: [oneOfMany],
    Search: [oneOfMany],
    'A database host': [not('the same commands: docs/install.md, Step by step')],
    'A cloud key store': [not('the same commands: docs/endpoints.md')],
    'The root key': [not('of a stopped service: scenario/corrupt-bytes')],
    'Backup and restore': [not('the same commands: docs/snapshots.md')],
    'When something does not work': [oneOfMany],
  },
  'docs/compatibility.md': { 'Compatibility switches': [fresh] },
  'docs/containers.md': {
    'The image': times(2, containers),
    'One container': times(3, containers),
    'Compose: PostgreSQL and two nodes': times(2, containers),
    Kubernetes: times(3, by('scenario/container')),
  },
  'docs/databases/derby.md': {
    'Register the database': [derby],
    'Create the keys': [derby],
    'Create the database': [derby],
    'Open it': [derby],
    'Rotate the master key': [derby],
    'Rotate the data key': [derby],
    'Encrypt an existing database': [derby],
    'Disable or destroy the database': times(3, derby),
  },
  'docs/databases/hsqldb.md': {
    'Register the database': [hsqldb],
    'Create the keys': [hsqldb],
    'Create the database': [hsqldb],
    'Open it': [hsqldb],
    'Rotate the master key': [hsqldb],
    'Rotate the data key': [hsqldb],
    'Disable or destroy the database': times(3, hsqldb),
  },
  'docs/databases/mariadb.md': {
    'From zero to encrypted': [
      fresh,
      fresh,
      not('a server without systemd: databases/mariadb starts it with the option'),
    ],
    'Back up and restore': times(2, by('databases/mariadb')),
    'Migrate from file_key_management': [by('databases/mariadb')],
  },
  'docs/databases/oracle.md': {
    'Register the database': times(2, by('tde/page')),
    'Install the library': [by('tde/page')],
    'Migrate from a local wallet': [by('tde/page')],
    'Ten-minute check': [terminal],
    'What is simulated': [not('needs a real database')],
  },
  'docs/databases/postgresql.md': {
    'Register the database': [postgresql],
    'Create the sealing key': times(2, postgresql),
    "The server's TLS key": [postgresql],
    Backups: [postgresql],
    Restore: [postgresql],
    'The data directory': [postgresql],
    "A client's key on the token": [postgresql],
    'Rotate the sealing key': [postgresql],
    Destroy: [postgresql],
  },
  'docs/developers.md': {
    'Before the first script': [not('asks a registry for a package; the scripts: clients/developers-page')],
    'Other programs': times(4, not('with the addresses of one installation; the programs: test/clients')),
  },
  'docs/endpoints.md': {
    'From nothing to a key in the cloud': [fresh, not('a real cloud; a simulated one: scenario/cloud')],
    'Exchanging a credential': [fresh],
    'Who can call, and how much': times(2, oneOfMany),
    'The request log': [fresh, oneOfMany],
    'Watching the connection': [not('a real cloud: scenario/external-key-stores')],
    'When something does not work': [not('shows a fault: scenario/endpoint-doctor')],
  },
  'docs/faults.md': { 'Running it': [measurement], 'Game day': [measurement] },
  'docs/install.md': {
    'The packages': [not('scenario/packages does it'), fresh],
    'A signed release': [by('scenario/release')],
    AArch64: [not('scenario/aarch64 builds them; these lines only join two folders')],
    'The service': [fresh, fresh],
    'If the database file is deleted or replaced': [not('scenario/deleted-database does it')],
    'The shortest path: a configuration bundle': [fresh, fresh],
    'Step by step': [fresh, fresh, fresh],
    'Before a destructive test': [not('needs two databases: scenario/provider-install')],
    'Upgrade and rollback': [fresh, not('needs two builds: scenario/provider-install')],
    Removal: [fresh],
  },
  'docs/monitoring.md': {
    'Access to the metrics': [oneOfMany],
    'The access log': [oneOfMany],
    'A bundle for support': times(3, terminal),
  },
  'docs/notifications.md': { 'Notifications: what needs attention before it does harm': [oneOfMany] },
  'docs/operations.md': {
    'The first day': times(8, operations),
    'Every day': times(3, operations),
    'Rotating the keys of sessions and API tokens': times(2, operations),
    'Renewing the certificate': times(2, operations),
    'The root key file is lost': [operations],
    'The machine is lost': times(2, operations),
    'An older database': [operations],
    'No administrator can sign in': [operations],
  },
  'docs/people.md': {
    'The first person': [not('the same command: docs/operations.md')],
    'No administrator can sign in': [not('the same command: docs/operations.md')],
    'At the command': times(2, terminal),
  },
  'docs/postgresql.md': {
    'Changing the password': [terminal],
    'Moving from SQLite, and back': [not('needs a PostgreSQL server: scenario/store-migrate')],
  },
  'docs/roles.md': { 'Giving roles': [fresh] },
  'docs/root-key.md': {
    pkcs11: [not('needs SoftHSM2: scenario/root-providers')],
    Backup: [fresh, fresh],
    'Changing providers': [not('with a provider: scenario/root-providers')],
    'Changing the passphrase': [not('with a provider: scenario/root-providers')],
    Rotation: [oneOfMany],
    Quarantine: [not('only with a database that is older: scenario/quarantine')],
  },
  'docs/snapshots.md': {
    'The recovery key': [fresh, fresh],
    'Creating snapshots': [fresh],
    Verifying: [fresh, oneOfMany],
    'Copies elsewhere': [fresh],
    'Copies of a destroyed key': [oneOfMany],
    'Copies of a key in other tenants': [oneOfMany],
    Restoring: [oneOfMany],
  },
  'docs/tenants.md': { 'Life cycle': [fresh], 'Off-boarding a tenant, with proof of its destruction': [oneOfMany] },
  'docs/upgrade.md': { 'Upgrade on SQLite': times(2, operations), Rollback: [operations] },
};
