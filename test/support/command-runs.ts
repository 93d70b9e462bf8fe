// How each command of the catalogue is run: what its operands are, and what must be there before.
// The resources are made by commands, so the same table runs beside a test's own service and on an
// installed host (installed-commands.ts), which has rows of its own where it can do more. A row
// without `ends` ends with exit code 0; others say how the program ends, and why: it reports what
// is wrong, waits for another person, or is refused what this host cannot give it.
import { dirname } from 'node:path';
import { until } from './host.ts';
import type { OfferedCommand } from './offered-commands.ts';

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where commands run: a folder with dke.toml, with the service on it running. */
export interface CommandHost {
  readonly dke: (args: readonly string[]) => Promise<Ran>;
  /** In a process of its own, which is ended when it has said this. */
  readonly alone: (args: readonly string[], until?: RegExp) => Promise<Ran>;
  /** A new file with mode 600, by a name in the folder. */
  readonly write: (name: string, content: string) => Promise<void>;
  /** The certificate that the service is trusted with, and the address of the service. */
  readonly caFile: string;
  readonly url: string;
  /** `user:group` for files of a database. */
  readonly owner: string;
  /** Where the service reads dke.toml. */
  readonly config: string;
  /** dke.toml of a new copy of a service that has stopped; `empty`: without data. */
  readonly stopped: (empty?: 'empty') => string | Promise<string>;
  readonly remove: (path: string) => void;
  /** Where the library is installed; `OWNER` stands for the owner. */
  readonly base: readonly string[];
  /** Rows in place of those below. */
  readonly rows?: Rows;
}

export interface World extends CommandHost {
  readonly fresh: (name: string) => string;
  /** The answer of a command that must succeed. */
  readonly answer: <T = { readonly id: string }>(...args: readonly string[]) => Promise<T>;
  /** The id of what one creates. */
  readonly id: (...args: readonly string[]) => Promise<string>;
}

interface Page {
  readonly items: readonly { readonly id: string; readonly name: string }[];
}

export const openWorld = (host: CommandHost): World => {
  let count = 0;
  const answer = async <T>(...args: readonly string[]): Promise<T> => {
    const ran = await host.dke([...args, '-o', 'json']);
    if (ran.code !== 0) throw new Error(`dke ${args.join(' ')} ended with ${ran.code}: ${ran.stderr}`);
    return JSON.parse(ran.stdout) as T;
  };
  return {
    ...host,
    fresh: (name) => {
      count += 1;
      return name.replace(/((?:\.\w+)*)$/, `-${count}$1`);
    },
    answer,
    id: async (...args) => (await answer<{ readonly id: string }>(...args)).id,
  };
};

/** What all rows use: names of pages, where they have one. */
export const furnish = async (w: World): Promise<void> => {
  await w.write('recovery-passphrase', 'correct horse battery staple\n');
  await w.write('root-passphrase', 'correct horse battery staple\n');
  await w.write('rules.json', '[]');
  await w.write('dke.log', '');
  await w.answer('vault', 'create', 'cloud');
  await w.answer('key', 'create', 'orders', '--vault', 'cloud');
  await w.answer('endpoint', 'create', 'aws-eu', '--vault', 'cloud', '--key', 'orders');
  await w.answer('tde', 'group', 'create', 'finance');
  await w.answer('tde', 'group', 'create', 'closed-books');
  const bundle = ['--database-ca-file', w.caFile];
  await w.dke(['tde', 'app', 'register', 'erp', '--group', 'finance', '--out', 'pkcs11.toml', ...bundle]);
  await w.dke(['tde', 'app', 'register', 'other', '--group', 'closed-books', '--out', 'other.toml', ...bundle]);
  await w.dke(['user', 'create', 'ada', '--role', 'auditor', '--out', 'invitation']);
  await w.answer('tenant', 'create', 'acme');
  await w.dke(['recovery-key', 'create', '--out', 'recovery.key']);
  await w.answer('recovery-key', 'register', 'recovery.key', '--name', 'safe');
  for (const name of ['spare-1', 'spare-2', 'spare-3', 'spare-4'])
    await w.answer('recovery-key', 'register', await recoveryKey(w), '--name', name);
  await w.dke(['root', 'backup', '--out', 'root-backup.key', '--new-passphrase-file', 'root-passphrase']);
  for (const name of ['dke-sunday', 'dke-monday']) await w.dke(['backup', 'create', '--out', `${name}.dkebackup`]);
  // The service records backups of its host every ten seconds.
  await until('the records of the backups', async () =>
    (await w.answer<Page>('copy', 'list')).items.length >= 3 ? true : undefined,
  );
  await w.dke(['audit', 'export', '--out', 'audit.ndjson']);
  await w.dke(['endpoint', 'requests', '--export', 'ndjson', '--out', 'requests.ndjson']);
  await w.write('dke-audit.key', (await w.answer<{ readonly verifierKey: string }>('audit', 'log')).verifierKey);
  // Before the second person: then it waits for approval.
  await w.answer('snapshot', 'export', await snapshot(w), '--out', 'offsite.dkesnap');
  await w.dke(['token', 'create', 'anna', '--role', 'key-approver', '--out', 'anna.token']);
  await w.dke(['token', 'create', 'bert', '--role', 'key-approver', '--out', 'bert.token']);
  await w.answer('snapshot', 'create');
  await w.dke(['context', 'add', 'prod', '--server', w.url, '--token-file', 'anna.token', '--ca-file', w.caFile]);
};

interface Run {
  readonly id: string;
  readonly steps: readonly { readonly id: string }[];
}
interface Callers {
  readonly callers: { readonly certificates: readonly { readonly fingerprint: string }[] };
}

type End = readonly [code: number, says: RegExp];
export interface Row {
  readonly operands?: (
    w: World,
    config: string,
    given: readonly string[],
  ) => Promise<readonly string[]> | readonly string[];
  /** Options that a text leaves to its reader; each with one value. */
  readonly more?: readonly string[];
  /** Further options that depend on what the text has (`given`). */
  readonly moreOf?: (w: World, given: readonly string[]) => readonly string[];
  /** Exit code and words, where it does not end with 0. */
  readonly ends?: End | ((given: readonly string[]) => End | undefined);
  /** Why it ends so here. Absent: this is its work: a report, or to wait for another person. */
  readonly why?: string;
  /** Values of options, where this command takes others. */
  readonly values?: Readonly<Record<string, (w: World, given: string) => string | Promise<string>>>;
  /**
   * The command needs a stopped service: it gets `--config` of a copy of one; `empty`: without
   * data.
   */
  readonly stopped?: true | 'empty';
  /** Ends by a signal, when it has said this. */
  readonly until?: RegExp;
  /** A process of its own: it ends the process that it is in. */
  readonly alone?: true;
}

export type Rows = Readonly<Record<string, Row>>;

type Create = (w: World) => Promise<string>;
const of = (create: Create, ...more: readonly string[]): Row => ({ operands: async (w) => [await create(w)], more });
/** What it does ends with another exit code than 0. */
const ends = (code: number, says: RegExp, row: Row = {}): Row => ({ ...row, ends: [code, says] });
const refused = (code: number, says: RegExp, why: string, row: Row = {}): Row => ({ ...row, ends: [code, says], why });
const withoutMail: Row = {
  ends: (given) => (given.includes('--deliver') ? [11, /no mail server/] : undefined),
  why: 'needs a mail server: unit/operations/mailed-invitations',
};
const offline = (row: Row = {}): Row => ({ ...row, stopped: true });
const fixed = (...operands: readonly string[]): Row => ({ operands: () => operands });

const key: Create = async (w) => {
  const name = w.fresh('key');
  await w.answer('key', 'create', name, '--vault', 'cloud');
  return name;
};
const tenant: Create = async (w) => {
  const name = w.fresh('tenant');
  await w.answer('tenant', 'create', name);
  return name;
};
const deleted: Create = async (w) => {
  const name = await tenant(w);
  await w.answer('tenant', 'delete', name, '--confirm', name);
  return name;
};
const user: Create = async (w) => {
  const name = w.fresh('user');
  await w.dke(['user', 'create', name, '--role', 'auditor', '--out', w.fresh('invitation')]);
  return name;
};
const endpoint: Create = async (w) => {
  const name = w.fresh('endpoint');
  await w.answer('endpoint', 'create', name, '--vault', 'cloud', '--key', 'orders');
  return name;
};
const snapshot: Create = (w) => w.id('snapshot', 'create');
const application: Create = async (w) => {
  const name = w.fresh('app');
  const out = w.fresh('pkcs11.toml');
  await w.dke(['tde', 'app', 'register', name, '--group', 'finance', '--out', out, '--database-ca-file', w.caFile]);
  return name;
};
/** A deletion that waits for approvers. */
const approval: Create = async (w) => {
  const vault = w.fresh('ruled');
  const name = w.fresh('key');
  await w.answer('vault', 'create', vault);
  await w.answer('key', 'create', name, '--vault', vault);
  await w.answer('vault', 'dual-control', 'set', vault, '--approvals', '1', '--approver', 'anna');
  await w.dke(['key', 'delete', name, '--confirm', name]);
  return (await w.answer<Page>('approval', 'list', '--state', 'pending')).items[0]?.id ?? '';
};
const copy: Create = async (w) => {
  const { items } = await w.answer<{
    readonly items: readonly { readonly id: string; readonly destroyedAt: unknown }[];
  }>('copy', 'list');
  return items.find(({ destroyedAt }) => destroyedAt === null)?.id ?? '';
};
/** A database makes them: scenario/command and the databases' guides use theirs. */
const noMasterKey = /is not a TDE master key/;
const noDatabase = 'needs a master key, which a database makes: scenario/database';
const withBackup = ['--recovery-key', 'recovery.key', '--signer', 'dke-audit.key'];
const inBase = (w: World): readonly string[] => w.base;
export const installed: Row = {
  operands: async (w) => {
    await w.dke(['provider', 'install', ...w.base.map((each) => (each === 'OWNER' ? w.owner : each))]);
    return [];
  },
  moreOf: inBase,
};
const recoveryKey: Create = async (w) => {
  const file = w.fresh('recovery.key');
  await w.dke(['recovery-key', 'create', '--out', file]);
  return file;
};
const node: Create = async (w) => (await w.answer<Page>('node', 'list')).items[0]?.name ?? '';
const run: Create = (w) => w.id('runbook', 'start', 'rotate', 'erp');

/**
 * Values of arguments and options by the words of their places, where a row does not say otherwise.
 */
const places: Readonly<Record<string, (w: World) => string | Promise<string>>> = {
  vault: () => 'cloud',
  key: () => 'orders',
  endpoint: () => 'aws-eu',
  application: () => 'erp',
  group: () => 'finance',
  user: () => 'ada',
  tenant: () => 'acme',
  token: () => 'anna',
  name: (w) => w.fresh('name'),
};

/** Values of options by their names; `given` is the value in the text. */
const values: Readonly<Record<string, (w: World, given: string) => string | Promise<string>>> = {
  '--out': (w, given) => w.fresh(given.replace(/.*\//, '') || 'out'),
  '--bundle': (w) => w.fresh('bundle.tar.gz'),
  // Its own: two backups of one second have one name.
  '--folder': async (w) => dirname(await w.stopped()),
  '--config': ({ config }) => config,
  '--conf': (_, given) => (/other|payroll|^b\./i.test(given) ? 'other.toml' : 'pkcs11.toml'),
  '--recovery-key': () => 'recovery.key',
  '--passphrase-file': () => 'recovery-passphrase',
  '--recovery-passphrase-file': () => 'recovery-passphrase',
  '--new-passphrase-file': () => 'root-passphrase',
  '--root-backup': () => 'root-backup.key',
  '--token-out': (w) => w.fresh('administrator-token'),
  '--signer': () => 'dke-audit.key',
  '--key': (_, given) => (given === 'orders' ? given : 'dke-audit.key'),
  '--audit-log': () => 'audit.ndjson',
  '--requests': () => 'requests.ndjson',
  '--log': () => 'dke.log',
  '--file': () => 'offsite.dkesnap',

  '--to': (_, given) => (given.endsWith('.toml') ? 'postgresql.toml' : /^\d/.test(given) ? given : 'closed-books'),
  '--id': (w) => `cks-1234567890abcde${w.fresh('').slice(1).padStart(2, '0')}`,
  '--region': () => 'eu-central-1',
  '--approvals': () => '1',
  '--time': () => new Date().toISOString(),
  '--expires': () => new Date(Date.now() + 3_600_000).toISOString(),
  '--role': (_, given) => (given === 'ROLE' ? 'auditor' : given),
  '--application': () => 'erp',
  '--group': () => 'finance',
  '--tenant': () => 'acme',
  '--user': () => 'ada',
  '--email': () => 'ada@dke.example',
  '--vault': () => 'cloud',
  '--endpoint': () => 'aws-eu',
  '--ca-file': ({ caFile }) => caFile,
  '--database-ca-file': ({ caFile }) => caFile,
  '--client-ca': () => 'authority.pem',
  '--add-certificate': ({ caFile }) => caFile,
  '--remove-certificate': () => '0'.repeat(64),
  '--add-network': () => '192.0.2.0/24',
  '--permit': () => 'rsa-pkcs1-encryption',
  '--withdraw': () => 'rsa-pkcs1-encryption',
  '--rules': () => 'rules.json',
  '--server': ({ url }) => url,
  '--token-file': () => 'anna.token',
  '--request-id': () => '01981d2c-7c1f-7b35-9a04-52a1be40c0de',
  '--error-name': () => 'AccessDeniedException',
  '--subject': (w) => w.fresh('subject'),
  '--code': () => '5f0c6e3a9b1d2c47',
  '--owner': ({ owner }) => owner,
  '--name': (w) => w.fresh('name'),
  '--approver': (_, given) => (given === 'bert' ? given : 'anna'),
  '--oracle-home': () => '.',
};

const unquoted = (text: string): string => text.replace(/^(["'])(.*)\1$/, '$2');

/** The arguments of one run; the row's operands are created. */
export const argumentsOf = async (w: World, offered: OfferedCommand): Promise<readonly string[]> => {
  const words = offered.path.split(' ').slice(1);
  const row = rowOf(offered, w);
  const optionValue = async (name: string, text: string): Promise<string | undefined> =>
    (row.values?.[name] ?? values[name])?.(w, text);
  const given: string[] = [];
  for (const [{ long, short, required, optional }, value] of offered.options) {
    const name = long ?? short ?? '';
    if (name === '--confirm') continue;
    given.push(name);
    if (!required && !optional) continue;
    const text = value === true ? '' : unquoted(value);
    given.push((await optionValue(name, text)) ?? text);
  }
  const config = row.stopped === undefined ? '' : await w.stopped(row.stopped === true ? undefined : row.stopped);
  const operands = await (
    row.operands ??
    (async () => {
      const all: string[] = [];
      for (const argument of offered.command.registeredArguments.filter((each) => each.required)) {
        const sample = places[argument.name()];
        if (sample === undefined) throw new Error(`${offered.path}: nothing is known for <${argument.name()}>`);
        all.push(await sample(w));
      }
      return all;
    })
  )(w, config, given);
  const asked = [
    ...(config === '' ? [] : ['--config', config]),
    ...(row.moreOf?.(w, given) ?? []),
    ...(row.more ?? []),
  ];
  const fill: Readonly<Record<string, string>> = { NAME: operands[0] ?? '', OWNER: w.owner };
  const more: string[] = [];
  const isGiven = (name: string): boolean => given.includes(name) || more.includes(name);
  for (const [index, name] of asked.entries()) {
    if (!name.startsWith('--') || (isGiven(name) && name !== '--config')) continue;
    const value = asked[index + 1] ?? '--';
    // The last one wins.
    more.push(name, ...(value.startsWith('--') ? [] : [fill[value] ?? value]));
  }
  for (const { mandatory, long } of offered.command.options)
    if (mandatory && !isGiven(long ?? '')) more.push(long ?? '', (await optionValue(long ?? '', '')) ?? '');
  return [...words, ...given, ...more, '--', ...operands];
};

export const rowOf = ({ path }: OfferedCommand, w?: World): Row => {
  const name = path.slice('dke '.length);
  return w?.rows?.[name] ?? rows[name] ?? {};
};
const endOf = ({ ends }: Row, given: readonly string[]): End =>
  (typeof ends === 'function' ? ends(given) : ends) ?? [0, /^/];

export interface OfferedRun {
  readonly args: readonly string[];
  /** What is wrong with how it ended. */
  readonly fault?: string;
  /** Why it was refused, as its row says. */
  readonly why?: string | undefined;
}
export const runOffered = async (w: World, offered: OfferedCommand): Promise<OfferedRun> => {
  const row = rowOf(offered, w);
  const { until: ready, alone, why } = row;
  const args = await argumentsOf(w, offered);
  const [code, says] = ready === undefined ? endOf(row, args) : [0, ready];
  const ran = alone === true || ready !== undefined ? await w.alone(args, ready) : await w.dke(args);
  const text = ran.stderr + ran.stdout;
  if (ran.code !== code) return { args, fault: `it ended with ${ran.code}: ${(ran.stderr || text).slice(0, 300)}` };
  if (!says.test(text)) return { args, fault: `it does not say ${says}: ${text.slice(0, 300)}` };
  if (/^\s+at |unknown option|too many arguments/m.test(ran.stderr)) return { args, fault: ran.stderr.slice(0, 300) };
  return { args, why: code === 0 ? undefined : why };
};

export const rows: Rows = {
  agent: { alone: true, more: ['--socket', 'agent.sock', '--idle-seconds', '1'] },
  'approval approve': of(approval, '--token-file', 'anna.token'),
  'approval reject': of(approval, '--token-file', 'anna.token'),
  'approval show': of(approval),
  'approval withdraw': of(approval),
  'audit prove': fixed('1'),
  'audit verify': fixed('audit.ndjson'),
  'backup create': {
    moreOf: (w, given) =>
      given.some((each) => /^--(?:out|folder)$/.test(each)) ? [] : ['--out', w.fresh('a.dkebackup')],
  },
  'backup restore': {
    stopped: 'empty',
    operands: (w, config, given) => {
      if (given.includes('--apply-configuration')) w.remove(config);
      return ['dke-monday.dkebackup'];
    },
    more: [...withBackup, '--passphrase-file', 'root-passphrase', '--root-backup', 'root-backup.key'],
  },
  'backup verify': { ...fixed('dke-monday.dkebackup'), more: [...withBackup, '--passphrase-file', 'root-passphrase'] },
  cloud: { more: ['--data', 'simulated', '--port', '0'], until: /listening|https:/ },
  completion: fixed('bash'),
  'context add': { operands: (w) => [w.fresh('context')], more: ['--server', 'https://keys.example.com'] },
  'context use': fixed('prod'),
  'context remove': {
    operands: async (w) => {
      const name = w.fresh('context');
      await w.dke(['context', 'add', name, '--server', 'https://keys.example.com']);
      return [name];
    },
  },
  'copy confirm-destroyed': of(copy),
  doctor: { ends: (given) => (given.includes('--label') ? [12, /label/i] : undefined) },
  'doctor endpoint': ends(12, /aws-eu/),
  'doctor run': {
    operands: async (w) => {
      await w.dke(['doctor', 'endpoint', 'aws-eu']);
      return ['aws-eu', (await w.answer<Page>('doctor', 'runs', 'aws-eu')).items[0]?.id ?? ''];
    },
  },
  'endpoint credential remove': {
    operands: async (w) => {
      const name = await endpoint(w);
      await w.dke(['endpoint', 'credential', 'add', name, '--out', w.fresh('proxy.json')]);
      return [name, (await w.answer<Page>('endpoint', 'credential', 'list', name)).items[0]?.id ?? ''];
    },
    more: ['--force', '--confirm', 'NAME'],
  },
  'endpoint credential add': of(endpoint),
  'endpoint rename': { operands: async (w) => [await endpoint(w), w.fresh('renamed')] },
  'endpoint set': {
    moreOf: (_, given) => (given.includes('--client-ca') ? ['--client-name', 'keys.example.com'] : []),
  },
  'endpoint find-request': refused(
    10,
    /./,
    'needs a request of a cloud: scenario/request-log',
    fixed('4112f4d6-db54-4af4-ae30-c55a22a8dfae'),
  ),
  // Other runs find the key of the table by its name.
  'key set': {
    operands: async (w) => {
      const name = w.fresh('key');
      await w.answer('key', 'create', name, '--vault', 'cloud');
      return [name];
    },
  },
  'key delete': of(key, '--confirm', 'NAME'),
  'key disable': of(key),
  // Without a name it waits for a browser: scenario/login.
  login: refused(2, /terminal|password/, 'needs a person at a terminal or a browser: scenario/login', fixed('ada')),
  logout: refused(10, /./, 'needs a session of a person: scenario/login'),
  'node drain': of(node),
  'node resume': of(node),
  'node remove': refused(11, /./, 'needs a second node on PostgreSQL: scenario/nodes', of(node, '--confirm', 'NAME')),
  'node show': of(node),
  'notification acknowledge': {
    operands: async (w) => [(await w.answer<Page>('notification', 'list')).items[0]?.id ?? ''],
  },
  'package download': fixed('dke-provider_1.0.0_amd64.deb'),
  'provider check': ends(12, /is not there/, { more: ['--base', 'providers'] }),
  'provider install': { moreOf: inBase },
  'provider upgrade': installed,
  'provider rollback': refused(
    11,
    /./,
    'needs two builds: scenario/provider-install, and an installed host',
    installed,
  ),
  'provider uninstall': installed,
  'quarantine confirm': refused(11, /quarantine/, 'needs an older database: scenario/quarantine and installed-host'),
  'recovery-key create': {
    ends: (given) => (given.includes('--passphrase') ? [2, /terminal/] : undefined),
    why: 'needs a person at a terminal: scenario/command-adversity',
  },
  'recovery-key register': ends(13, /another person must approve/, of(recoveryKey)),
  'recovery-key remove': {
    operands: async (w) => {
      const { items } = await w.answer<Page>('recovery-key', 'list');
      return [
        items.find(({ name, ...each }) => name.startsWith('spare') && !('removedAt' in each && each.removedAt))?.id ??
          '',
      ];
    },
    more: ['--force'],
  },
  'recovery-key show': fixed('recovery.key'),
  'root backup': { more: ['--new-passphrase-file', 'root-passphrase'] },
  'root add-provider': offline(fixed('second')),
  'root remove-provider': offline({
    operands: async (w, config) => {
      await w.answer('root', 'add-provider', 'second', '--config', config);
      return ['first'];
    },
  }),
  'root restore': offline({
    operands: async (w, config) => {
      const file = w.fresh('its-root-backup.key');
      await w.dke(['root', 'backup', '--config', config, '--out', file, '--new-passphrase-file', 'root-passphrase']);
      w.remove(config.replace('dke.toml', 'dke-data/root.key'));
      return [file];
    },
    more: ['--passphrase-file', 'root-passphrase'],
  }),
  'root rewrap': offline({ ...fixed('first'), more: ['--new-passphrase-file', 'recovery-passphrase'] }),
  server: offline({ alone: true, until: /^listening on/m }),
  'server new-administrator': offline(),
  'server health': {
    operands: async (w) => {
      // `dke node drain` was run before; a bad answer is kept for a moment.
      await w.answer('node', 'resume', await node(w));
      await until('the end of the drain', async () =>
        (await w.dke(['server', 'health', '--config', w.config])).code === 0 ? true : undefined,
      );
      return [];
    },
  },
  'server renew-certificate': offline({
    operands: async (w, config, given) => {
      if (given.includes('--activate')) await w.dke(['server', 'renew-certificate', '--config', config]);
      return [];
    },
  }),
  'store migrate': refused(
    2,
    /postgresql\.toml/,
    'needs PostgreSQL: scenario/store-migrate',
    offline({ more: ['--to', 'postgresql.toml'] }),
  ),
  verify: offline(),
  'root release-copy': refused(10, /./, 'needs a copy that a node on PostgreSQL keeps: scenario/nodes-connections'),
  'root unseal': refused(9, /./, 'needs a sealed service: scenario/root-providers', {
    more: ['--passphrase-file', 'root-passphrase'],
  }),
  'runbook complete-step': { operands: async (w) => ['erp', await run(w), 'history-before'] },
  'runbook finish': {
    operands: async (w) => {
      const { id, steps } = await w.answer<Run>('runbook', 'start', 'rotate', 'erp');
      for (const step of steps) await w.answer('runbook', 'complete-step', 'erp', id, step.id);
      return ['erp', id];
    },
  },
  'runbook show': fixed('rotate', 'erp'),
  'runbook start': fixed('rotate', 'erp'),
  search: fixed('orders'),
  'session end': refused(
    10,
    /./,
    'needs a session of a person: scenario/login',
    fixed('01981d2c-7c1f-7b35-9a04-52a1be40c0de'),
  ),
  'session rotate-key': { more: ['--confirm', 'end'] },
  'setup confirm': fixed('root-key'),
  'setup reopen': fixed('root-key'),
  'snapshot delete': of(snapshot),
  'snapshot export': ends(13, /approve/, of(snapshot)),
  'snapshot import': refused(11, /./, 'needs a file of another service: scenario/snapshots', {
    ...fixed('offsite.dkesnap'),
    more: ['--signer', 'dke-audit.key'],
  }),
  'snapshot restore': of(snapshot, '--recovery-key', 'recovery.key', '--dry-run'),
  'snapshot show': of(snapshot),
  'snapshot undelete': {
    operands: async (w) => {
      const id = await snapshot(w);
      await w.answer('snapshot', 'delete', id);
      return [id];
    },
  },
  'snapshot of-key': {
    operands: async (w, _config, given) => {
      if (!given.includes('--tenant')) return ['orders'];
      const name = w.fresh('key');
      const vault = w.fresh('vault');
      await w.answer('vault', 'create', vault, '--tenant', 'acme');
      await w.answer('key', 'create', name, '--vault', vault, '--tenant', 'acme');
      return [name];
    },
  },
  'snapshot verify': {
    ...of(snapshot),
    moreOf: (_, given) => (given.includes('--file') ? ['--signer', 'dke-audit.key'] : []),
  },
  'support bundle': { more: ['--confirm', 'write'] },
  'support provider': { more: ['--conf', 'pkcs11.toml', '--confirm', 'write'] },
  'tde app callers': {
    values: {
      '--remove-certificate': async (w) => {
        await w.answer('tde', 'app', 'callers', 'erp', '--add-certificate', w.caFile);
        const { callers } = await w.answer<Callers>('tde', 'app', 'callers', 'erp');
        return callers.certificates[0]?.fingerprint ?? '';
      },
    },
  },
  'tde app move': of(application, '--confirm', 'NAME'),
  'tde app remove-guid': {
    operands: async (w) => {
      const name = await application(w);
      await w.dke(['tde', 'app', 'rotate-guid', name, '--out', w.fresh('pkcs11.toml')]);
      return [name, (await w.answer<Page>('tde', 'app', 'guids', name)).items[1]?.id ?? ''];
    },
  },
  'tde app rename': { operands: async (w) => [await application(w), w.fresh('renamed')] },
  'tde app rotate-guid': of(application),
  'tde key allow-decryption': refused(10, noMasterKey, noDatabase),
  'tde key blast-radius': refused(10, noMasterKey, noDatabase),
  'tde key public-key': refused(10, noMasterKey, noDatabase),
  'tde key show': refused(10, noMasterKey, noDatabase),
  'tde key destroy': refused(10, /is not a TDE master key|there is no key named/, noDatabase),
  'tde group rename': {
    operands: async (w) => {
      const name = w.fresh('group');
      await w.answer('tde', 'group', 'create', name);
      return [name, w.fresh('renamed')];
    },
  },
  'tenant delete': of(tenant, '--confirm', 'NAME'),
  'tenant purge': of(deleted, '--confirm', 'NAME'),
  'tenant restore': of(deleted),
  'tenant resume': {
    operands: async (w) => {
      const name = await tenant(w);
      await w.answer('tenant', 'suspend', name, '--confirm', name);
      return [name];
    },
  },
  'tenant suspend': of(tenant, '--confirm', 'NAME'),
  'token create': {
    moreOf: (_, given) => (given.some((each) => /^--(?:role|kind)$/.test(each)) ? [] : ['--role', 'auditor']),
  },
  'token end-former-key': { more: ['--confirm', 'end'] },
  'token rotate-key': {
    more: ['--confirm', 'end'],
    ends: (given) => (given.includes('--compromised') ? [11, /revoke the last administrator token/] : undefined),
    why: 'needs another administrator than this token: unit/operations/token-key',
  },
  'token revoke': {
    operands: async (w) => {
      const name = w.fresh('token');
      await w.dke(['token', 'create', name, '--role', 'auditor', '--out', w.fresh('secret')]);
      return [name];
    },
  },
  // This service has no mail server: unit/operations/mailed-invitations has one.
  'user create': { more: ['--role', 'auditor'], ...withoutMail },
  'user reset-password': withoutMail,
  'user delete': of(user, '--confirm', 'NAME'),
  'user disable': of(user),
  'user list': { values: { '--token-file': () => 'token' } },
  'vault rename': {
    operands: async (w) => {
      const name = w.fresh('vault');
      await w.answer('vault', 'create', name);
      return [name, w.fresh('renamed')];
    },
  },
  'vault profile': fixed('cloud', 'standard'),
};
