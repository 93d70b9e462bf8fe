// The `dke` command: the global options, and one file for each noun. Only the file of the noun that
// was asked for is loaded, because most of the time of a short command is loading. An action
// imports the service's own code (main.ts, app/host/offline.ts) when it runs.

import { Command, InvalidArgumentError, Option } from 'commander';
import { CommandError } from './terminal/exit-codes.ts';
import { outputFormats } from './terminal/output.ts';

type Add = (program: Command, everything: () => Promise<Command>) => void;

/** What help says of each noun, and where the noun is. */
const nouns: Readonly<Record<string, readonly [summary: string, load: () => Promise<Add>]>> = {
  server: ['run the service', async () => (await import('./host/server.ts')).addServer],
  agent: ['run the agent of a database host', async () => (await import('./host/agent.ts')).addAgent],
  provider: [
    'install and check the PKCS#11 library of a database host',
    async () => (await import('./host/provider.ts')).addProvider,
  ],
  context: [
    'named services: address, authority, token file and tenant',
    async () => (await import('./commands/context.ts')).addContext,
  ],
  login: ['sign in as a user', async () => (await import('./commands/login.ts')).addLogin],
  logout: ['sign out: end the session of dke login', async () => (await import('./commands/login.ts')).addLogout],
  token: ['API tokens', async () => (await import('./commands/token.ts')).addToken],
  user: ['users: people who sign in', async () => (await import('./commands/user.ts')).addUser],
  session: ['who is signed in at the console', async () => (await import('./commands/session.ts')).addSession],
  setup: ['the first steps of a service', async () => (await import('./commands/setup.ts')).addSetup],
  tenant: ['tenants: the owners of all resources', async () => (await import('./commands/tenant.ts')).addTenant],
  search: ['find anything by name or id', async () => (await import('./commands/search.ts')).addSearch],
  vault: ['vaults: where keys are', async () => (await import('./commands/vault.ts')).addVault],
  key: ['keys', async () => (await import('./commands/key.ts')).addKey],
  package: ['packages for database hosts', async () => (await import('./commands/package.ts')).addPackage],
  tde: ['databases: groups, applications, master keys', async () => (await import('./commands/tde.ts')).addTde],
  runbook: [
    'procedures for a database: rotate, migrate, restore, upgrade',
    async () => (await import('./commands/runbook.ts')).addRunbook,
  ],
  endpoint: [
    'key store endpoints: what a cloud key service calls',
    async () => (await import('./commands/endpoint.ts')).addEndpoint,
  ],
  'key-store': [
    'external key stores: the cloud’s side of an endpoint',
    async () => (await import('./commands/key-store.ts')).addKeyStore,
  ],
  approval: [
    'requests that need approval (dual control)',
    async () => (await import('./commands/approval.ts')).addApproval,
  ],
  snapshot: ['backup and restore of a tenant', async () => (await import('./commands/snapshot.ts')).addSnapshot],
  copy: ['files that left the service with its keys', async () => (await import('./commands/copy.ts')).addCopy],
  'recovery-key': [
    'keys that open snapshots, stored away from the service',
    async () => (await import('./commands/recovery-key.ts')).addRecoveryKey,
  ],
  notification: [
    'notifications that need action',
    async () => (await import('./commands/notification.ts')).addNotification,
  ],
  node: ['nodes: the servers that share one database', async () => (await import('./commands/node.ts')).addNode],
  audit: ['the audit log', async () => (await import('./commands/audit.ts')).addAudit],
  status: ["the service's state", async () => (await import('./commands/overview.ts')).addStatus],
  jobs: ['the scheduled jobs', async () => (await import('./commands/overview.ts')).addJobs],
  clock: ['the time that decides about deadlines', async () => (await import('./commands/clock.ts')).addClock],
  backup: ['back up and restore the whole service (SQLite)', async () => (await import('./host/backup.ts')).addBackup],
  root: ['the root key: providers, rotation, unsealing', async () => (await import('./host/root.ts')).addRoot],
  quarantine: [
    'review a database that failed its rollback check',
    async () => (await import('./host/root.ts')).addQuarantine,
  ],
  store: ['manage the database of the service', async () => (await import('./host/store.ts')).addStore],
  support: ['collect what support needs', async () => (await import('./host/support.ts')).addSupport],
  verify: ['check all stored data, offline', async () => (await import('./host/verify-store.ts')).addVerify],
  latency: [
    'how long requests of key store endpoints took',
    async () => (await import('./commands/overview.ts')).addLatency,
  ],
  settings: ['the settings of the service', async () => (await import('./commands/overview.ts')).addSettings],
  doctor: [
    'check a database host or the host of the service',
    async () => (await import('./host/doctor.ts')).addDoctor,
  ],
  cloud: ['run a simulated cloud key service', async () => (await import('./host/cloud.ts')).addCloud],
  completion: ['command completion for a shell', async () => (await import('./terminal/completion.ts')).addCompletion],
};

const seconds = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 86_400) throw new InvalidArgumentError('1 to 86400 seconds.');
  return value;
};

/** Behind an error stands where to read on: at the command that was meant. */
const nameHelp = (command: Command, name: string): void => {
  command.showHelpAfterError(`Run ${name} --help for its arguments and options.`);
  for (const each of command.commands) nameHelp(each, `${name} ${each.name()}`);
};

/**
 * An empty operand is a variable of a script that has no value. In a path of the API it would name
 * another resource.
 */
const refuseEmpty = (command: Command): void => {
  const index = command.args.findIndex((each) => each.trim() === '');
  if (index < 0) return;
  const place = command.registeredArguments[index] ?? command.registeredArguments.at(-1);
  throw new CommandError('config', `<${place?.name() ?? 'operand'}> is empty`, {
    hint: 'pass its value; in a script, check the variable that contains it',
  });
};

const withoutNouns = (version: string): Command =>
  new Command('dke')
    .description('Run and administer the DKE key management service.')
    .version(version, '-V, --version')
    .addOption(new Option('--server <url>', 'address of the service').env('DKE_SERVER').default('https://localhost'))
    .addOption(
      new Option(
        '--ca-file <file>',
        'PEM file of the certificate authority to trust; default: those of the system',
      ).env('DKE_CA_FILE'),
    )
    .addOption(
      new Option('--token-file <file>', 'file (mode 600) with an administrator token; - for standard input').env(
        'DKE_TOKEN_FILE',
      ),
    )
    .addOption(
      new Option('--tenant <tenant>', 'id or name of the tenant to act in; default: the tenant of the token').env(
        'DKE_TENANT',
      ),
    )
    .addOption(new Option('--context <name>', 'use this context: dke context list').env('DKE_CONTEXT'))
    .addOption(new Option('-o, --output <format>', 'output format').choices(outputFormats).default('text'))
    .addOption(
      new Option(
        '--timeout <seconds>',
        'how long to wait for an answer; default: 30, and 3600 for checks, snapshots, imports and exports',
      ).argParser(seconds),
    )
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true });

/** The whole command. With `only`, the other nouns have their names and their lines in the help. */
export const makeProgram = async (version: string, only: readonly string[] = Object.keys(nouns)): Promise<Command> => {
  const program = withoutNouns(version);
  for (const [name, [summary, load]] of Object.entries(nouns)) {
    if (only.includes(name)) (await load())(program, () => makeProgram(version));
    else program.command(name);
    program.commands.find((each) => each.name() === name)?.summary(summary);
  }
  nameHelp(program, 'dke');
  program.hook('preAction', (_, command) => refuseEmpty(command));
  return program;
};

/** The command, with the noun that these words ask for. */
export const makeProgramFor = async (version: string, words: readonly string[]): Promise<Command> => {
  // The version, and what is wrong with an option, are printed later, when the command runs: before
  // any noun is asked for.
  const reader = withoutNouns(version)
    .exitOverride()
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  let asked: readonly string[] = [];
  try {
    asked = reader.parseOptions([...words]).operands.slice(0, 2);
  } catch {}
  return makeProgram(version, asked);
};
