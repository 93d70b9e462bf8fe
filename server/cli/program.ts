// The `dke` command: the global options, and one file per noun. An action imports the service's own code (main.ts, app/offline.ts) when it runs:
// loading it takes most of a second, and most commands only call the API.

import { Command, InvalidArgumentError, Option } from 'commander';
import { addAgent } from './agent.ts';
import { addApproval } from './approval.ts';
import { addAudit } from './audit.ts';
import { addBackup } from './backup.ts';
import { addClock } from './clock.ts';
import { addCloud } from './cloud.ts';
import { addCompletion } from './completion.ts';
import { addContext } from './context.ts';
import { addDoctor } from './doctor.ts';
import { addEndpoint } from './endpoint.ts';
import { addKey } from './key.ts';
import { addKeyStore } from './key-store.ts';
import { addLogin } from './login.ts';
import { addNode } from './node.ts';
import { addNotification } from './notification.ts';
import { outputFormats } from './output.ts';
import { addOverview, addStatus } from './overview.ts';
import { addProvider } from './provider.ts';
import { addRecoveryKey } from './recovery-key.ts';
import { addQuarantine, addRoot } from './root.ts';
import { addRunbook } from './runbook.ts';
import { addSearch } from './search.ts';
import { addServer } from './server.ts';
import { addSession } from './session.ts';
import { addSetup } from './setup.ts';
import { addSnapshot } from './snapshot.ts';
import { addStore } from './store.ts';
import { addSupport } from './support.ts';
import { addTde } from './tde.ts';
import { addTenant } from './tenant.ts';
import { addToken } from './token.ts';
import { addUser } from './user.ts';
import { addVault } from './vault.ts';
import { addVerify } from './verify.ts';

const seconds = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 86_400) throw new InvalidArgumentError('1 to 86400 seconds.');
  return value;
};

/** Behind an error stands where to read on: at the command that was meant. */
const nameHelp = (command: Command, name: string): void => {
  command.showHelpAfterError(`(${name} --help tells more)`);
  for (const each of command.commands) nameHelp(each, `${name} ${each.name()}`);
};

export const makeProgram = (version: string): Command => {
  const program = new Command('dke')
    .description('External key management: the service, its console by hand, the agent of a database host.')
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
        'how long to wait for an answer; default: 30, and 3600 for checks, snapshots and exports',
      ).argParser(seconds),
    )
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true });

  addServer(program);
  addAgent(program);
  addProvider(program);
  addContext(program);
  addLogin(program);
  addToken(program);
  addUser(program);
  addSession(program);
  addSetup(program);
  addTenant(program);
  addSearch(program);
  addVault(program);
  addKey(program);
  addTde(program);
  addRunbook(program);
  addEndpoint(program);
  addKeyStore(program);
  addApproval(program);
  addSnapshot(program);
  addRecoveryKey(program);
  addNotification(program);
  addNode(program);
  addAudit(program);
  addStatus(program);
  addClock(program);
  addBackup(program);
  addRoot(program);
  addQuarantine(program);
  addStore(program);
  addSupport(program);
  addVerify(program);
  addOverview(program);
  addDoctor(program);
  addCloud(program);
  addCompletion(program);
  nameHelp(program, 'dke');
  return program;
};
