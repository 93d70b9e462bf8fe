// What a start requires of the host's files, before it opens anything: one list, which the start
// runs to its first error and `dke doctor` to its end (docs/decisions/0055). Nothing is changed.

import { accessSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { requireSnapshotFolder } from '../adapters/archives/archive.ts';
import { inspectDatabase } from '../adapters/store/migrations/inspect-database.ts';
import { shellWord } from '../base/command-line.ts';
import { type Check, type Finding, ok, warning } from '../base/diagnostic-checks.ts';
import { StartError, type StartErrorClass } from '../base/start-error.ts';
import type { Log } from '../ports/log.ts';
import { checkFile } from './config/check-file.ts';
import type { Config } from './config/config.ts';
import { isRestoreCutOff } from './host/restore-journal.ts';
import { wayOfRoot } from './host/root-way.ts';
import { asServiceUser } from './host/unit.ts';
import { readAuthorities, rolesOf } from './open/identity.ts';
import { openTlsFiles, pairFilesOf, readPem } from './tls/reload-certificates.ts';
import { chainFault } from './tls/served-certificates.ts';

/** What a check works on, and what earlier ones have left for it. */
export interface CheckedHost {
  readonly load: () => Config;
  config?: Config;
}

export const configOf = ({ config }: CheckedHost): Config => {
  if (config === undefined) throw new Error('the configuration was not read');
  return config;
};

const own = (): number => process.geteuid?.() ?? 0;
const stateOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });
const permission = (evidence: string, fix: string, cause?: unknown): StartError =>
  new StartError('permission', evidence, { fix, cause });

const requireWritable = (path: string, setting: string, readOnlyClass: StartErrorClass): void => {
  const isFolder = stateOf(path)?.isDirectory() === true;
  try {
    accessSync(path, isFolder ? constants.W_OK | constants.X_OK : constants.W_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS')
      throw new StartError(readOnlyClass, `${path} (${setting}) is on a disk that is mounted read-only`, {
        fix: 'mount it read-write; in a unit of systemd, name the folder in ReadWritePaths=',
        cause: error,
      });
    throw permission(
      `user ${own()} cannot write ${path} (${setting})`,
      `chown ${own()} ${shellWord(path)} && chmod u+rw${isFolder ? 'x' : ''} ${shellWord(path)}`,
      error,
    );
  }
};

/**
 * What makes a missing folder. Root makes it for another user only where its way cannot be led
 * elsewhere; below a folder of the user, the user does.
 */
const createFolder = (folder: string): string => {
  const path = shellWord(folder);
  if (own() === 0) return `create it: install -d -m 700 ${path}`;
  const { fault } = wayOfRoot(folder);
  if (fault === undefined) return `create it: install -d -m 700 -o ${own()} ${path}`;
  try {
    accessSync(firstAbove(folder), constants.W_OK | constants.X_OK);
    return `create it: ${asServiceUser(`mkdir -p -m 700 ${path}`)}`;
  } catch {
    return `name a folder in dke.toml that only root can rename (${fault})`;
  }
};

/**
 * Throws unless this user can make and replace files in a folder. `setting`: the field of dke.toml
 * that names it.
 */
export const requireFolder = (folder: string, setting: string, readOnlyClass: StartErrorClass = 'permission'): void => {
  const state = stateOf(folder);
  if (state === undefined)
    throw permission(`the folder ${folder} (${setting}) is missing`, `mount its disk, or ${createFolder(folder)}`);
  if (!state.isDirectory()) throw permission(`${folder} (${setting}) is not a folder`, 'name a folder in dke.toml');
  requireWritable(folder, setting, readOnlyClass);
};

/**
 * Throws unless this user can add lines to the file, or create it in its folder. `setting`: the
 * field of dke.toml that names it.
 */
export const requireLogFile = (path: string, setting: string): void => {
  const state = stateOf(path);
  if (state?.isDirectory() === true) throw permission(`${path} (${setting}) is a folder`, 'name a file in dke.toml');
  if (state === undefined) requireFolder(dirname(path), setting);
  else requireWritable(path, setting, 'permission');
};

const checkLogs = ({ log: { destination }, accessLog }: Config): Finding => {
  const files = [
    ...(destination === 'stderr' || destination === 'stdout'
      ? []
      : [{ path: destination, setting: 'log.destination' }]),
    ...(accessLog === undefined ? [] : [{ path: accessLog.path, setting: 'access_log.file' }]),
  ];
  for (const { path, setting } of files) requireLogFile(path, setting);
  return ok(files.length === 0 ? 'no file is named' : files.map(({ path }) => path).join(', '));
};

/** The start makes all that is missing below it. */
const firstAbove = (folder: string): string => {
  let above = dirname(folder);
  while (stateOf(above) === undefined) above = dirname(above);
  return above;
};

const checkData = ({ dataDirectory }: Config): Finding => {
  const state = stateOf(dataDirectory);
  if (state === undefined) {
    requireFolder(firstAbove(dataDirectory), 'above data.directory');
    return ok(`${dataDirectory} does not exist yet: the first start creates it`);
  }
  const path = shellWord(dataDirectory);
  if (!state.isDirectory())
    throw permission(`${dataDirectory} (data.directory) is not a folder`, 'name a folder in dke.toml');
  if (state.uid !== own())
    throw permission(
      `${dataDirectory} belongs to user ${state.uid}: it must belong to user ${own()}`,
      `chown -R ${own()} ${path}`,
    );
  if ((state.mode & 0o077) !== 0)
    throw permission(
      `${dataDirectory} has mode ${(state.mode & 0o777).toString(8)}: it must have mode 700`,
      `chmod 700 ${path}`,
    );
  requireFolder(dataDirectory, 'data.directory', 'store');
  for (const name of ['dke.db', 'lock'])
    if (existsSync(join(dataDirectory, name))) requireWritable(join(dataDirectory, name), 'data.directory', 'store');
  return ok(`${dataDirectory}, user ${state.uid}`);
};

/**
 * A service that serves keys does so without changing what is in this folder: that nothing can be
 * written there ends no start of a service that was in use.
 */
const warnUnwritable = (folder: string, setting: string): Finding => {
  try {
    requireWritable(folder, setting, 'permission');
    return ok(folder);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return warning(error.evidence, error.fix);
  }
};

const checkRootFolder = ({ root: { path }, dataDirectory }: Config): Finding => {
  const folder = dirname(path);
  // The root key and its checkpoint are replaced there. The start makes only the data directory.
  if (folder === dataDirectory) return ok(folder);
  if (existsSync(path)) return warnUnwritable(folder, 'root.path');
  requireFolder(folder, 'root.path');
  return ok(folder);
};

const checkSnapshots = ({ snapshots: { directory }, dataDirectory }: Config): Finding => {
  if (requireSnapshotFolder(directory) !== undefined) return warnUnwritable(directory, 'snapshots.directory');
  const above = firstAbove(directory);
  if (stateOf(dataDirectory) !== undefined || !directory.startsWith(`${dataDirectory}/`))
    requireFolder(above, 'above snapshots.directory');
  return ok(`${directory} does not exist yet: the start creates it`);
};

/**
 * A root key without a database is a store that was lost (a volume that is not mounted, a file that
 * was cut to nothing), not a first start: a first start makes the database before the root key.
 */
const checkDatabaseFile = ({ dataDirectory, postgresql, root }: Config): Finding => {
  if (postgresql !== undefined) return ok('the database is PostgreSQL');
  const path = join(dataDirectory, 'dke.db');
  if (isRestoreCutOff(dataDirectory))
    throw new StartError('store', `the restore of a backup into ${dataDirectory} was cut off`, {
      fix: 'repeat it: dke backup restore FILE; nothing was changed',
    });
  if ((stateOf(path)?.size ?? 0) === 0) {
    if (existsSync(root.path))
      throw new StartError('store', `${path} is missing or empty, but its root key ${root.path} is there`, {
        fix: 'put the database back; to start with an empty database, move the root key away; nothing was changed',
      });
    return ok(`${path} does not exist yet: the first start creates it`);
  }
  const { fault, evidence, fix } = inspectDatabase(path, 'its head');
  if (fault) throw new StartError('store', evidence, { fix });
  return ok(evidence);
};

const checkCertificates = (config: Config): Finding => {
  const { own: mine, pairs, place } = pairFilesOf(config);
  if (config.tls.main === undefined && !existsSync(mine.certificate) && pairs.length === 1)
    return ok('none yet: the first start creates one');
  const files = pairs.filter(({ certificate }) => certificate !== mine.certificate || existsSync(certificate));
  openTlsFiles(files, place).readPairs();
  return ok(files.map(({ certificate }) => certificate).join(', '));
};

/** What is served all the same, and clients refuse. */
const checkChains = (config: Config): Finding => {
  const { pairs } = pairFilesOf(config);
  const authorities = [...rootCertificates, ...readAuthorities(config.diagnostics.trustedAuthorities)];
  const faults = pairs
    .filter(({ certificate }) => existsSync(certificate))
    .flatMap(({ certificate }) => {
      const fault = chainFault(readPem(certificate), authorities);
      return fault === undefined ? [] : [`${certificate}: ${fault}`];
    });
  return faults.length === 0
    ? ok('each certificate is followed by its issuer')
    : warning(
        faults.join('; '),
        "put the issuers' certificates into this file, after the server's own; name an authority of your own in diagnostics.trusted_authorities",
      );
};

interface NamedFile {
  /** The field of dke.toml. */
  readonly setting: string;
  readonly path: string;
  readonly kind: 'public' | 'secret' | 'authorities';
}
const named = (setting: string, kind: NamedFile['kind'], path: string | undefined): readonly NamedFile[] =>
  path === undefined ? [] : [{ setting, kind, path }];

/** Files that dke.toml names and that the service reads, apart from its own certificates. */
const namedFiles = (config: Config): readonly NamedFile[] => [
  ...named('store.password_file', 'secret', config.postgresql?.passwordFile),
  ...named('store.ca', 'authorities', config.postgresql?.ca),
  ...named('oidc.client_secret_file', 'secret', config.oidc?.clientSecretFile),
  ...named('oidc.ca', 'authorities', config.oidc?.ca),
  ...named('telemetry.token_file', 'secret', config.telemetry?.tokenFile),
  ...named('telemetry.ca', 'authorities', config.telemetry?.ca),
  ...named('diagnostics.trusted_authorities', 'authorities', config.diagnostics.trustedAuthorities),
  ...config.auditSinks.flatMap((sink) => {
    if (sink.type === 'file') return [];
    const of = `audit.sinks, ${sink.name}:`;
    return [
      ...named(`${of} ca`, 'authorities', sink.ca),
      ...named(`${of} certificate`, 'public', sink.certificate),
      ...named(`${of} key`, 'secret', sink.key),
      ...named(`${of} token_file`, 'secret', sink.type === 'https' ? sink.tokenFile : undefined),
    ];
  }),
  ...config.notificationTargets.flatMap((target) => {
    const of = `notifications.targets, ${target.name}:`;
    return [
      ...named(`${of} ca`, 'authorities', target.ca),
      ...(target.type === 'webhook'
        ? named(`${of} secret_file`, 'secret', target.secretFile)
        : named(`${of} password_file`, 'secret', target.passwordFile)),
    ];
  }),
];

/** In each form that TLS reads. */
const certificate = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/;

const requireNamed = ({ setting, path, kind }: NamedFile): void => {
  const correct = `put the file there, or correct ${setting} in dke.toml`;
  try {
    checkFile(path, kind === 'secret' ? 'secret' : 'public');
    if (kind !== 'authorities' || certificate.test(readPem(path))) return;
  } catch (error) {
    if (!(error instanceof StartError) || error.fix !== undefined) throw error;
    throw new StartError(error.class, `${error.evidence} (${setting})`, { fix: correct, cause: error });
  }
  throw new StartError('config', `${path} contains no certificate (${setting})`, { fix: correct });
};

const checkNamedFiles = (config: Config): Finding => {
  const files = namedFiles(config);
  for (const file of files) requireNamed(file);
  // The first start makes the data directory itself.
  for (const sink of config.auditSinks)
    if (sink.type === 'file' && dirname(sink.path) !== config.dataDirectory && !existsSync(dirname(sink.path)))
      requireFolder(dirname(sink.path), `audit.sinks, ${sink.name}: path`);
  if (config.oidc !== undefined) rolesOf(config.oidc.roles);
  return ok(`${files.length} can be read`);
};

interface StartCheck extends Pick<Check<CheckedHost>, 'id' | 'layer' | 'title'> {
  readonly needs?: readonly string[];
  readonly run: (config: Config) => Finding;
}

const databaseFile = 'database-file';
/** In the order in which a start needs them. Each throws StartError. */
const beforeOpening: readonly StartCheck[] = [
  { id: 'logs', layer: 'files', title: 'the log files can be written', run: checkLogs },
  { id: 'data', layer: 'files', title: 'only the service can use the data directory', run: checkData },
  { id: 'root-folder', layer: 'files', title: 'the folder of the root key can be written', run: checkRootFolder },
  { id: 'named-files', layer: 'files', title: 'the files that dke.toml names can be used', run: checkNamedFiles },
  {
    id: databaseFile,
    layer: 'files',
    title: 'the file of the database is there and whole',
    needs: ['data'],
    run: checkDatabaseFile,
  },
  { id: 'snapshots', layer: 'files', title: 'the folder of snapshots can be written', run: checkSnapshots },
  {
    id: 'certificate',
    layer: 'tls',
    title: 'certificates are whole, and their keys belong to them',
    needs: ['data'],
    run: checkCertificates,
  },
  {
    id: 'chain',
    layer: 'tls',
    title: 'certificate chains are complete',
    needs: ['certificate', 'named-files'],
    run: checkChains,
  },
];

export const startChecks: readonly Check<CheckedHost>[] = [
  {
    id: 'configuration',
    layer: 'configuration',
    title: 'dke.toml can be used',
    needs: [],
    run: (host) => {
      host.config = host.load();
      return ok(host.config.source ?? 'no file: the defaults');
    },
  },
  ...beforeOpening.map(({ run, needs = [], ...check }) => ({
    ...check,
    needs: ['configuration', ...needs],
    run: (host: CheckedHost) => run(configOf(host)),
  })),
];

/**
 * The list as a start runs it. Throws the StartError of the first check that fails. The lock of the
 * data directory is taken before its database is read: one that another service writes looks
 * damaged.
 */
export const requireStart = (config: Config, log: Pick<Log, 'warn'>, lock: () => void): void => {
  for (const { id, run } of beforeOpening) {
    if (id === databaseFile) lock();
    const { state, evidence, fix } = run(config);
    if (state === 'warning') log.warn(evidence, { fix });
  }
};
