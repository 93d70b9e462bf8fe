// Is the host of the service in order? Configuration, data directory, root key, certificate, locked memory, the listener:
// what a start would meet, checked without starting or changing anything.

import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import {
  type Check,
  type CheckResult,
  type Finding,
  failed,
  notAsked,
  ok,
  runChecks,
  warning,
} from '../base/checks.ts';
import { command } from '../base/command-line.ts';
import { checkFile } from '../config/check-file.ts';
import { type Config, loadConfig } from '../config/config.ts';
import { askOwnHealth } from './own-health.ts';

export interface ServerHostOptions {
  /** dke.toml; ./dke.toml or the defaults when absent. */
  readonly configPath: string | undefined;
  readonly workingDirectory: string;
  /** Of the embedded database; the store's business. */
  readonly inspectDatabase: (path: string) => Promise<{
    readonly state: 'good' | 'partly' | 'empty' | 'damaged' | 'newer' | 'unreleased';
    readonly evidence: string;
    readonly fix?: string;
  }>;
  /** Of the folder of packages. */
  readonly inspectPackages: (folder: string) => Promise<{
    readonly matching: number;
    readonly faults: readonly string[];
  }>;
}

interface Context {
  readonly options: ServerHostOptions;
  config?: Config;
}

const day = 86_400_000;
const leastFree = 256 * 1024 * 1024;

const configOf = ({ config }: Context): Config => {
  if (config === undefined) throw new Error('the configuration was not read');
  return config;
};
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const certificatePath = ({ tls, dataDirectory }: Config): string =>
  tls.main?.certificate ?? join(dataDirectory, 'tls.crt');

/** Why nothing can be written to a folder; undefined when it can. */
const writeFault = (folder: string): string | undefined => {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EROFS'
      ? `${folder} is on a read-only file system`
      : code === 'ENOENT'
        ? `${folder} does not exist`
        : `${folder} cannot be written (${code})`;
  }
};

const checkData = (context: Context): Finding => {
  const { dataDirectory } = configOf(context);
  if (!existsSync(dataDirectory)) {
    const fault = writeFault(dirname(dataDirectory));
    return fault === undefined
      ? ok(`${dataDirectory} does not exist yet: the first start creates it`)
      : failed(`${dataDirectory} is missing, and ${fault}`, 'mount or create the folder, or correct data.directory');
  }
  const { mode, uid } = statSync(dataDirectory);
  if ((mode & 0o077) !== 0)
    return failed(`${dataDirectory} has mode ${modeOf(dataDirectory)}`, command`chmod 700 ${dataDirectory}`);
  const fault = writeFault(dataDirectory);
  if (fault !== undefined) return failed(fault, 'mount it writable, and run this command as the user of the service');
  const { bavail, bsize } = statfsSync(dataDirectory);
  const free = bavail * bsize;
  const evidence = `${dataDirectory}, uid ${uid}, ${Math.floor(free / 1_048_576)} MiB free`;
  return free < leastFree ? warning(evidence, 'free some space: without it, DKE cannot store changes') : ok(evidence);
};

/** Folders that the service writes to, apart from the data directory. */
const checkFolders = (context: Context): Finding => {
  const { root, log, auditSinks, snapshots, dataDirectory } = configOf(context);
  const files = [
    root.path,
    ...(log.destination === 'stderr' || log.destination === 'stdout' ? [] : [log.destination]),
    ...auditSinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : [])),
  ];
  const folders = [...new Set(files.map((file) => dirname(file)))];
  // The service makes this one: what is above it must be there.
  folders.push(existsSync(snapshots.directory) ? snapshots.directory : dirname(snapshots.directory));
  const faults = folders.filter((folder) => folder !== dataDirectory).flatMap((folder) => writeFault(folder) ?? []);
  return faults.length === 0
    ? ok(`${folders.length} can be written`)
    : failed(faults.join('; '), 'create or mount these folders, owned by the user of the service');
};

const checkDatabase = async (context: Context): Promise<Finding> => {
  const { postgresql, dataDirectory } = configOf(context);
  if (postgresql !== undefined) return notAsked('PostgreSQL: the service checks it at its start');
  const path = join(dataDirectory, 'dke.db');
  if (!existsSync(path)) return ok(`${path} does not exist yet: the first start creates it`);
  const { state, evidence, fix = 'install that version' } = await context.options.inspectDatabase(path);
  switch (state) {
    case 'good':
      return ok(evidence);
    case 'partly':
      return notAsked(evidence);
    case 'newer':
    case 'unreleased':
      return failed(evidence, fix);
    case 'empty':
    case 'damaged':
      return failed(evidence, 'stop the service and restore the newest backup of the database');
  }
};

const checkRoot = (context: Context): Finding => {
  const config = configOf(context);
  const { path } = config.root;
  const used = existsSync(join(config.dataDirectory, 'dke.db'));
  if (!existsSync(path))
    return used
      ? failed(
          `${path} is missing, but a database exists: none of its keys can be opened`,
          'restore the root key file from its backup: dke root restore',
        )
      : ok(`${path} does not exist yet: the first start creates it`);
  checkFile(path, 'secret');
  return ok(`${path}, mode ${modeOf(path)}`);
};

const checkCertificate = (context: Context): Finding => {
  const config = configOf(context);
  const path = certificatePath(config);
  if (!existsSync(path))
    return config.tls.main === undefined ? ok('none yet: the first start creates one') : failed(`${path} is missing`);
  const certificate = new X509Certificate(readFileSync(path));
  const days = Math.floor((Date.parse(certificate.validTo) - Date.now()) / day);
  const [name = 'localhost'] = config.server.publicNames;
  const named = isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name);
  if (days < 10) return failed(`${path} is valid for ${days} days`, 'renew it, then send SIGHUP');
  if (named === undefined)
    return warning(`${path} is not for ${name}`, 'add the name to the certificate, or change server.public_names');
  return days < 30
    ? warning(`${path} is valid for ${days} days`, 'renew it, then send SIGHUP')
    : ok(`${path}, ${days} days`);
};

const checkMemory = (context: Context): Finding => {
  const wanted = configOf(context).memory.lockedBytes;
  const [, soft = ''] = /^Max locked memory\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const limit = soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  if (wanted !== undefined && limit < wanted)
    return failed(
      `RLIMIT_MEMLOCK is ${soft} bytes, but ${wanted} are required`,
      'raise it (LimitMEMLOCK= of the unit)',
    );
  return ok(`RLIMIT_MEMLOCK is ${soft} here`);
};

const checkListener = async (context: Context): Promise<Finding> => {
  const config = configOf(context);
  const { port } = config.server;
  if (port === 0) return notAsked('port 0: each start uses a free port');
  const path = certificatePath(config);
  try {
    const { statusCode, certificate: shown } = await askOwnHealth(config, 5000);
    const own = existsSync(path) ? new X509Certificate(readFileSync(path)) : undefined;
    if (statusCode !== 200) return failed(`port ${port} answers ${statusCode} at /health`, "read the server's log");
    if (own === undefined || shown === undefined || shown.raw.equals(own.raw))
      return ok(`port ${port} answers: healthy`);
    const served = `port ${port} uses another certificate than ${path} (${shown.fingerprint256})`;
    const before = shown.issuer.replaceAll('\n', ', ');
    return own.issuer === shown.issuer && own.subject !== own.issuer
      ? warning(served, 'send SIGHUP to the service, and read its log if it refuses the new certificate')
      : warning(
          `${served}, of another issuer: clients that trust only ${before} refuse it`,
          `before SIGHUP or a restart, give clients the new issuer (ca_file in pkcs11.toml, --ca-file of dke)`,
        );
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ECONNREFUSED'
      ? warning(`nothing listens on port ${port}`, 'start the service')
      : failed(`port ${port} does not answer correctly (${code ?? message})`);
  }
};

const checkPackages = async (context: Context): Promise<Finding> => {
  const { packagesDirectory } = configOf(context).server;
  if (packagesDirectory === undefined) return notAsked('server.packages_directory is not set');
  const { matching, faults } = await context.options.inspectPackages(packagesDirectory);
  return faults.length === 0
    ? ok(`${packagesDirectory}: ${matching} match their checksums`)
    : failed(faults.join('; '), `copy the packages and their SHA256SUMS to ${packagesDirectory} again`);
};

const checks: readonly Check<Context>[] = [
  {
    id: 'configuration',
    layer: 'configuration',
    title: 'dke.toml can be used',
    needs: [],
    run: (context) => {
      const { configPath, workingDirectory } = context.options;
      context.config = loadConfig(configPath, workingDirectory);
      return ok(context.config.source ?? 'no file: the defaults');
    },
  },
  {
    id: 'data',
    layer: 'files',
    title: 'only the service can read the data directory',
    needs: ['configuration'],
    run: checkData,
  },
  { id: 'root-key', layer: 'files', title: 'the root key exists', needs: ['configuration'], run: checkRoot },
  { id: 'database', layer: 'files', title: 'the database can be opened', needs: ['root-key'], run: checkDatabase },
  { id: 'folders', layer: 'files', title: 'every folder can be written', needs: ['configuration'], run: checkFolders },
  {
    id: 'packages',
    layer: 'files',
    title: 'packages match their checksums',
    needs: ['configuration'],
    run: checkPackages,
  },
  {
    id: 'certificate',
    layer: 'tls',
    title: 'the certificate is valid',
    needs: ['configuration'],
    run: checkCertificate,
  },
  { id: 'memory', layer: 'memory', title: 'keys can be locked in memory', needs: ['configuration'], run: checkMemory },
  { id: 'listener', layer: 'service', title: 'the service answers', needs: ['configuration'], run: checkListener },
];

export const diagnoseServerHost = (options: ServerHostOptions): Promise<readonly CheckResult[]> =>
  runChecks(checks, { options });
