// Is this database host in order? Configuration, log directory, library, socket, and the way to the
// service up to one label: what a database would meet, in the order in which it would meet it.
// Reads only; the service sees one `info` and one look-up.

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
} from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { command } from '../../../server/base/command-line.ts';
import {
  type Check,
  type CheckResult,
  type Finding,
  failed,
  notAsked,
  ok,
  runChecks,
  warning,
} from '../../../server/base/diagnostic-checks.ts';
import { isUnreadableMasterKey } from '../../../server/base/master-keys.ts';
import { lookupWithin } from '../../../server/base/name-lookup.ts';
import { toRfc3339 } from '../../../server/base/time.ts';
import { instanceText, type ServiceInfo } from '../../../server/contract/tde.ts';
import { printedFor, splitLine, type Told, tell, tellNoAnswer } from '../causes.ts';
import { uniqueId } from '../objects/unique-id.ts';
import { type Caller, ServiceCallError, type ServiceDoor } from '../service/service-door.ts';
import { dnsShare, openHttpService } from '../service/service-http.ts';
import { TlsFiles } from '../service/tls.ts';
import { printableLabel } from '../sessions/application.ts';
import { ConfigError, loadConfig, type ProviderConfig } from '../settings/config.ts';
import { userName } from '../settings/log.ts';

export interface DiagnoseOptions {
  /** pkcs11.toml. */
  readonly configPath: string;
  /** libdke_pkcs11.so; not checked when absent. */
  readonly library?: string | undefined;
  /** The agent's socket; where the library would look when absent. */
  readonly socket?: string | undefined;
  /** A label that must be there. */
  readonly label?: string | undefined;
  /** Hears whose the credential is, as the service says. */
  readonly applicationFound?: ((info: ServiceInfo) => void) | undefined;
}

interface Context {
  readonly options: DiagnoseOptions;
  readonly environment: NodeJS.ProcessEnv;
  config?: ProviderConfig;
  door?: ServiceDoor;
}

const day = 86_400_000;
const configOf = ({ config }: Context): ProviderConfig => {
  if (config === undefined) throw new Error('the configuration was not read');
  return config;
};

const caller = (): Caller => ({
  requestId: uniqueId(),
  instance: instanceText({
    host: hostname(),
    pid: process.pid,
    process: 'dke doctor',
    library: '-',
    agent: '-',
    osUser: userName(),
  }),
});

/** Where the library looks for the agent, in its order. */
const socketPath = ({ options, environment }: Context): string => {
  const named = options.socket ?? environment.DKE_PKCS11_SOCKET;
  if (named !== undefined && named !== '') return named;
  if (existsSync('/run/dke-pkcs11/agent.sock')) return '/run/dke-pkcs11/agent.sock';
  const runtime = environment.XDG_RUNTIME_DIR;
  if (runtime !== undefined && existsSync(runtime)) return join(runtime, 'dke-pkcs11/agent.sock');
  return join(temporaryFolder(process.geteuid?.() ?? 0), 'agent.sock');
};

/** The rule of provider/module/host/temporary_folder.h. */
const temporaryFolder = (uid: number): string => {
  const isOwn = (path: string): boolean => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isDirectory() === true && found.uid === uid && (found.mode & 0o77) === 0;
  };
  const usual = `/tmp/dke-pkcs11-${uid}`;
  if (lstatSync(usual, { throwIfNoEntry: false }) === undefined || isOwn(usual)) return usual;
  const spare = readdirSync('/tmp').filter((name) => name.startsWith(`dke-pkcs11-${uid}-`) && isOwn(`/tmp/${name}`));
  return spare.length > 0 ? `/tmp/${spare.sort()[0]}` : usual;
};

/** A finding in the words of the provider's log, with what the database prints. */
const foundCause = (told: Told): Finding => {
  const { what, todo } = splitLine(told);
  const printed = printedFor(told.cause);
  return printed === null ? warning(what, todo) : { ...failed(what, todo), predicts: printed };
};

/** What the check throws is the cause, where it has one. */
const orCause = async (check: () => Finding | Promise<Finding>): Promise<Finding> => {
  try {
    return await check();
  } catch (error) {
    if ((error instanceof ConfigError || error instanceof ServiceCallError) && error.told !== null)
      return foundCause({ cause: error.told, line: error.message });
    throw error;
  }
};

const checkLogFolder = (context: Context): Finding => {
  const folder = configOf(context).logDir ?? '/var/log/dke-pkcs11';
  const upper = existsSync(folder) ? folder : dirname(folder);
  try {
    accessSync(upper, constants.W_OK | constants.X_OK);
    return ok(`${folder} can be written`);
  } catch {
    return foundCause(tell('log-directory', { wanted: folder, directory: 'a directory of the user' }));
  }
};

/**
 * The mode that a library in a database's tree may have, by its vendor's convention: 775, no others
 * may write.
 */
const checkLibrary = ({ options }: Context): Finding => {
  const { library } = options;
  if (library === undefined) return notAsked('none named (--library)');
  const state = lstatSync(library);
  if (!state.isFile()) return failed(`${library} is not a file`, 'put the file libdke_pkcs11.so there, not a link');
  const head = Buffer.alloc(5);
  const file = openSync(library, 'r');
  readSync(file, head, 0, head.length, 0);
  closeSync(file);
  if (head.toString('latin1') !== '\u007fELF\u0002') return failed(`${library} is not a 64-bit library`);
  if ((state.mode & 0o002) !== 0)
    return failed(
      `${library} can be replaced by any user (mode ${(state.mode & 0o777).toString(8)})`,
      command`chmod 775 ${library}`,
    );
  if (!existsSync(join(dirname(library), 'dke-agent')))
    return failed(`there is no dke-agent next to ${library}`, 'install dke-agent there: the library starts it');
  const others = readdirSync(dirname(library)).filter(
    (name) => name.endsWith('.so') && join(dirname(library), name) !== library,
  );
  if (others.length > 0)
    return failed(`${others.join(', ')} is next to it: a database loads only one library`, 'move the other one away');
  return ok(`${library}, mode ${(state.mode & 0o777).toString(8)}, uid ${state.uid}`);
};

const checkSocket = (context: Context): Promise<Finding> => {
  const path = socketPath(context);
  if (!existsSync(path))
    return Promise.resolve(ok(`${path} does not exist: the library starts an agent with its first call`));
  const state = statSync(path);
  const { uid } = state;
  if (!state.isSocket()) return Promise.resolve(failed(`${path} is not a socket`, 'remove it'));
  const own = process.geteuid?.() ?? 0;
  if (uid !== own && uid !== 0 && !path.startsWith('/run/'))
    return Promise.resolve(
      failed(`${path} belongs to uid ${uid}: the library refuses it`, 'remove it, or end that agent'),
    );
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.setTimeout(2000, () => {
      socket.destroy();
      resolve(failed(`${path} does not answer`, 'end the agent; the library starts a new one'));
    });
    socket.once('connect', () => {
      socket.destroy();
      resolve(ok(`an agent listens on ${path}`));
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(
        error.code === 'ECONNREFUSED'
          ? warning(`${path} is left from an earlier agent: no agent listens there; the library starts one`)
          : failed(`${path} cannot be used (${error.code})`),
      );
    });
  });
};

const checkNetwork = (context: Context): Promise<Finding> => {
  const { origin, connectTimeoutMs } = configOf(context);
  const { hostname: host, port } = new URL(origin);
  const name = host.replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const lookup = lookupWithin(connectTimeoutMs * dnsShare);
    const socket = connect({ host: name, port: Number(port || 443), lookup });
    const end = (finding: Finding): void => {
      socket.destroy();
      resolve(finding);
    };
    socket.setTimeout(connectTimeoutMs, () =>
      end(foundCause(tell('service-slow', { origin, error: `no connection within ${connectTimeoutMs} ms` }))),
    );
    socket.once('connect', () => end(ok(`${origin} accepts connections (${socket.remoteAddress})`)));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(foundCause(tellNoAnswer(origin, error.code ?? error.name))),
    );
  });
};

const describeTls = (socket: TLSSocket): Finding => {
  const { valid_to: until } = socket.getPeerCertificate();
  const days = Math.floor((Date.parse(until) - Date.now()) / day);
  const evidence = `${socket.getProtocol()}, certificate valid for ${days} days`;
  return days < 30 ? warning(evidence, 'renew the certificate of the service') : ok(evidence);
};
const checkTls = async (context: Context): Promise<Finding> => {
  const config = configOf(context);
  const { origin, connectTimeoutMs } = config;
  const { hostname: host, port } = new URL(origin);
  const name = host.replace(/^\[|\]$/g, '');
  const secureContext = await new TlsFiles(config).current();
  return new Promise((resolve) => {
    const socket = connectTls({
      host: name,
      port: Number(port || 443),
      secureContext,
      lookup: lookupWithin(connectTimeoutMs * dnsShare),
      servername: /^[\d.:]+$/.test(name) ? '' : name,
    });
    const end = (finding: Finding): void => {
      socket.destroy();
      resolve(finding);
    };
    socket.setTimeout(connectTimeoutMs, () =>
      end(foundCause(tell('service-slow', { origin, error: `no TLS handshake within ${connectTimeoutMs} ms` }))),
    );
    socket.once('secureConnect', () => end(describeTls(socket)));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(foundCause(tellNoAnswer(origin, error.code ?? error.name))),
    );
  });
};

const halves = (told: Told): [what: string, todo: string] => {
  const { what, todo } = splitLine(told);
  return [what, todo];
};

const checkToken = async (context: Context): Promise<Finding> => {
  const config = configOf(context);
  context.door = openHttpService(config);
  const { answer } = await context.door.call({ route: 'info', handle: null, head: {}, raw: null }, caller());
  context.options.applicationFound?.(answer);
  return ok(`application ${answer.applicationName} (${answer.applicationId}), service ${answer.serverVersion}`);
};

const checkLabel = async ({ options, door }: Context): Promise<Finding> => {
  const { label } = options;
  if (label === undefined) return notAsked('none named (--label)');
  if (door === undefined) throw new Error('there was no connection to the service');
  const head = { label: Buffer.from(label).toString('base64'), after: 0, limit: 2 };
  const { answer } = await door.call({ route: 'findObjects', handle: null, head, raw: null }, caller());
  const [object] = answer.objects;
  if (object === undefined)
    return { ...failed(...halves(tell('label-missing', { label }))), predicts: 'CKR_OK, but no object' };
  return object.state === 'disabled'
    ? foundCause(tell('key-disabled', { handle: `${object.handle} (${label})` }))
    : ok(`${label}: ${object.class}, ${object.state}, created ${toRfc3339(object.createdAt)}`);
};

/** Master keys that were created before DKE refused such ones. */
const checkMasterKeys = async ({ door }: Context): Promise<Finding> => {
  if (door === undefined) throw new Error('there was no connection to the service');
  const unreadable: string[] = [];
  for (let after = 0, more = true; more; ) {
    const head = { class: 'secret-key', after, limit: 1000 } as const;
    const { answer } = await door.call({ route: 'findObjects', handle: null, head, raw: null }, caller());
    const found = answer.objects.filter(isUnreadableMasterKey);
    unreadable.push(...found.map(({ label }) => printableLabel(Buffer.from(label, 'base64'))));
    after = answer.objects.at(-1)?.handle ?? after;
    more = answer.more && answer.objects.length > 0;
  }
  return unreadable.length === 0
    ? ok('every master key can decrypt')
    : failed(
        `${unreadable.length} cannot decrypt what they encrypt: ${unreadable.slice(0, 5).join(', ')}`,
        'run dke tde key allow-decryption KEY for each of them',
      );
};

const checks: readonly Check<Context>[] = [
  {
    id: 'configuration',
    layer: 'configuration',
    title: 'pkcs11.toml can be used',
    needs: [],
    run: async (context) => {
      const { configPath } = context.options;
      context.config = await loadConfig(configPath);
      return ok(`${configPath}: ${context.config.redactedUrl}`);
    },
  },
  { id: 'log', layer: 'files', title: 'the log can be written', needs: ['configuration'], run: checkLogFolder },
  { id: 'library', layer: 'files', title: 'the library is installed correctly', needs: [], run: checkLibrary },
  { id: 'socket', layer: 'socket', title: "the agent's socket can be used", needs: [], run: checkSocket },
  { id: 'network', layer: 'network', title: 'the service is reachable', needs: ['configuration'], run: checkNetwork },
  { id: 'tls', layer: 'tls', title: 'its certificate is trusted', needs: ['network'], run: checkTls },
  { id: 'token', layer: 'service', title: 'access_token is accepted', needs: ['tls'], run: checkToken },
  { id: 'label', layer: 'key', title: 'the key is found', needs: ['token'], run: checkLabel },
  { id: 'master-keys', layer: 'key', title: 'master keys decrypt', needs: ['token'], run: checkMasterKeys },
];

/**
 * Runs every check, as the user that calls: a database's checks are true only when its own OS user
 * runs them.
 */
export const diagnose = async (
  options: DiagnoseOptions,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<readonly CheckResult[]> => {
  const context: Context = { options, environment };
  try {
    const known = checks.map((check) => ({ ...check, run: (each: Context) => orCause(() => check.run(each)) }));
    return await runChecks(known, context);
  } finally {
    await context.door?.close();
  }
};
