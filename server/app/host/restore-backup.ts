// `dke backup verify` and `restore`: a backup is opened, checked, and put into an empty data
// directory: all of it or nothing. Nothing of dke.toml is applied unless the operator asks for
// that, and what differs is shown. A restored service is in quarantine until an operator confirms,
// because what was changed after the backup is not in it.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Core, KeyRef } from '../../../addon/core.ts';
import {
  type BackupHead,
  type BackupPreface,
  type BackupSink,
  type BackupTrust,
  readBackup,
  readBackupHead,
  requireSigner,
} from '../../adapters/archives/backup-file.ts';
import { createKeyRing } from '../../adapters/crypto/key-ring.ts';
import { openRootBackup, restoreRoot } from '../../adapters/roots/backup.ts';
import { anchorBeside, backupReceiptPath } from '../../adapters/roots/durable-files.ts';
import { openFileRoot } from '../../adapters/roots/file-root.ts';
import { openWrappedFile } from '../../adapters/roots/open-root.ts';
import { addReceipt } from '../../adapters/roots/receipts.ts';
import { type AskPassphrase, WayClosed } from '../../adapters/roots/unlock-ways.ts';
import { formatOf, type OpenWrapped } from '../../adapters/roots/wrapped-file.ts';
import { wrappedRoot } from '../../adapters/roots/wrapped-root.ts';
import { type DirectoryLock, lockDirectory } from '../../adapters/store/engine/sqlite/lock.ts';
import { openStore } from '../../adapters/store/store.ts';
import { putInPlace, replaceFile, writeDurably } from '../../base/durable-files.ts';
import { newId } from '../../base/ids.ts';
import { printable } from '../../base/printable.ts';
import { StartError } from '../../base/start-error.ts';
import { systemClock } from '../../base/time.ts';
import { adoptDecisions, restoredSetting } from '../../operations/audit/compare-log.ts';
import { type VerificationReport, verifyStore } from '../../operations/service/verify-store.ts';
import type { RootProvider } from '../../ports/root-provider.ts';
import type { Store } from '../../ports/store.ts';
import { type Config, defaultConfig, loadConfig, parseConfig } from '../config/config.ts';
import { explain, madeOf, receiptPath, requireEmbedded } from './create-backup.ts';
import { filesOf, inspectDatabase, requireEpochs, rootOptionsOf } from './offline.ts';
import { beginJournal, digestOf, endJournal, hasJournal, isRestoreCutOff, undoRestore } from './restore-journal.ts';

/** What opens a backup, and what it must be. */
export interface BackupOpening {
  /** Opens its key. The caller releases it. */
  readonly openKey: (core: Core, preface: BackupPreface) => Promise<KeyRef>;
  /** Whose it must be; undefined: everyone's. */
  readonly trust: BackupTrust | undefined;
  /** Why it is not authentic, before anything else is said. */
  readonly doubt: (why: string) => void;
  readonly rootBackup: string | undefined;
  readonly ask: AskPassphrase;
}

const fileSink = (path: string): BackupSink => {
  let file: FileHandle | undefined;
  const opened = async (): Promise<FileHandle> => (file ??= await open(path, 'wx', 0o600));
  return {
    write: async (bytes) => (await opened()).writeFile(bytes),
    end: async () => {
      const written = await opened();
      await written.sync();
      await written.close();
    },
  };
};

const mostText = 1_048_576;
const textSink = (name: string, done: (text: string) => void): BackupSink => {
  const pieces: Buffer[] = [];
  let length = 0;
  return {
    write: async (bytes) => {
      length += bytes.length;
      if (length > mostText) throw new StartError('store', `the part ${name} of the backup is too long`);
      pieces.push(Buffer.from(bytes));
    },
    end: async () => done(Buffer.concat(pieces).toString('utf8')),
  };
};

interface Extracted {
  readonly preface: BackupPreface;
  /** Verifier key of who has signed it. */
  readonly signer: string | null;
  readonly checkpoint: string | undefined;
  readonly node: string | undefined;
  readonly configuration: string | undefined;
}

/**
 * Throws when another key than the given one has signed the backup; without one, says that it is
 * not authentic.
 */
const checkSigner = (path: string, head: BackupHead, { trust, doubt }: BackupOpening): void => {
  if (trust !== undefined) requireSigner(path, head, trust);
  else if (head.closing === null)
    doubt('it has no signature, as backups of earlier versions: everyone who has a public recovery key can make one');
  else doubt(`no verifier key was given (--signer), and everyone can sign a backup; ${head.closing.signer} signed it`);
};

/**
 * The database goes to `database`; the rest is small. Nothing of it is to be used before this has
 * ended: the signature covers all of it.
 */
const extract = async (
  core: Core,
  path: string,
  opening: BackupOpening,
  database: string | undefined,
): Promise<Extracted> => {
  const head = await readBackupHead(path);
  if (opening.trust !== undefined) requireSigner(path, head, opening.trust);
  const key = await opening.openKey(core, head.preface);
  const texts = new Map<string, string>();
  try {
    const { preface, closing, parts } = await readBackup(core, path, key, (name) =>
      name === 'database'
        ? database === undefined
          ? undefined
          : fileSink(database)
        : textSink(name, (text) => texts.set(name, text)),
    );
    // The file may be another one by now.
    if (closing?.digest !== head.closing?.digest || preface.backupId !== head.preface.backupId)
      throw new StartError('store', `${path} was replaced while it was read`);
    if (!parts.has('database')) throw new StartError('store', `${path} has no database`);
    return {
      preface,
      signer: closing?.signer ?? null,
      checkpoint: texts.get('checkpoint'),
      node: texts.get('node'),
      configuration: texts.get('configuration'),
    };
  } finally {
    core.release(key);
  }
};

/** Opens a database with its root key, brings its schema up to date, and verifies everything. */
const verifyDatabase = async (
  core: Core,
  path: string,
  root: RootProvider,
  then: (store: Store) => Promise<void> = () => Promise.resolve(),
): Promise<VerificationReport> => {
  const ring = createKeyRing(core);
  const store = await openStore({
    path,
    clock: systemClock,
    authenticateRow: (...of) => ring.authenticateRow(...of),
    onFatal: () => undefined,
  });
  try {
    await ring.unlock(store, root);
    await adoptDecisions({ store, root });
    // What an earlier process confirmed is recorded next to the database that it was: this one is a
    // copy of it.
    const report = await verifyStore({ store: { read: store.read }, ring, root, core });
    await then(store);
    await store.checkpoint();
    return report;
  } finally {
    await store.close();
    ring.close();
  }
};

export interface BackupVerification {
  readonly authentic: boolean;
  readonly backupId: string;
  readonly at: string;
  readonly version: string;
  readonly signer: string | null;
  readonly auditRecords: number;
  readonly rootEpochs: readonly number[];
  /** `database`: without the root key. */
  readonly depth: 'database' | 'keys';
  readonly configuration: boolean;
  readonly findings: readonly string[];
}

/** Opens a backup into a folder of its own, which is removed afterwards. Throws StartError. */
export const verifyBackup = async (
  config: Config,
  path: string,
  opening: BackupOpening,
): Promise<BackupVerification> => {
  const { rootBackup } = opening;
  const options = rootOptionsOf(config, opening.ask);
  const folder = mkdtempSync(join(tmpdir(), 'dke-backup-'));
  const database = join(folder, 'dke.db');
  let opened: OpenWrapped | undefined;
  try {
    checkSigner(path, await readBackupHead(path), opening);
    const { preface, signer, configuration } = await extract(options.core, path, opening, database);
    const { fault, read, evidence } = inspectDatabase(database, 'all of it');
    if (fault || !read) throw new StartError('store', `the database of ${path} cannot be used: ${evidence}`);
    const findings: string[] = [];
    if (rootBackup !== undefined) {
      opened = await openRootBackup(options, rootBackup);
      requireEpochs(
        opened.roots.map(({ epoch }) => epoch),
        preface.rootEpochs,
      );
      const root = wrappedRoot(options.core, opened);
      const report = await verifyDatabase(options.core, database, root).finally(() => root.release());
      findings.push(...report.findings);
    }
    return {
      authentic: opening.trust !== undefined,
      backupId: preface.backupId,
      at: preface.at,
      version: preface.version,
      signer,
      auditRecords: preface.records,
      rootEpochs: preface.rootEpochs,
      depth: rootBackup === undefined ? 'database' : 'keys',
      configuration: configuration !== undefined,
      findings,
    };
  } catch (error) {
    throw explain(error, config);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

export interface RestoredService {
  readonly authentic: boolean;
  readonly backupId: string;
  readonly at: string;
  readonly signer: string | null;
  readonly dataDirectory: string;
  readonly configuration: string;
  readonly rootKey: string;
  readonly auditRecords: number;
  readonly keys: number;
  readonly findings: readonly string[];
}

/**
 * Lines of the first text that the second does not have (-), and of the second that the first does
 * not have (+), in the order of the texts.
 */
export const differingLines = (ours: string, theirs: string): readonly string[] => {
  const [one, other] = [ours, theirs].map((text) => text.split('\n').map((line) => line.trimEnd()));
  const only = (lines: readonly string[], without: readonly string[], sign: string): string[] => {
    const left = new Map<string, number>();
    for (const line of without) left.set(line, (left.get(line) ?? 0) + 1);
    return lines.flatMap((line) => {
      const count = left.get(line) ?? 0;
      left.set(line, count - 1);
      return count > 0 || line === '' ? [] : [`${sign} ${printable(line)}`];
    });
  };
  return [...only(one ?? [], other ?? [], '-'), ...only(other ?? [], one ?? [], '+')];
};

/** Undoes a restore into this directory that was cut off. */
const clearCutOff = (dataDirectory: string): void => {
  if (!hasJournal(dataDirectory)) return;
  const lock = lockDirectory(join(dataDirectory, 'lock'));
  let folder: string | null = null;
  try {
    if (isRestoreCutOff(dataDirectory)) folder = undoRestore(dataDirectory);
  } finally {
    lock.release();
  }
  if (folder !== null) rmSync(folder, { recursive: true, force: true });
};

/** The configuration that is there; the one of the backup only if the operator applies it. */
const readConfiguration = async (
  path: string,
  { configPath, workingDirectory, applyConfiguration, differs, ...opening }: RestoreOptions,
): Promise<{ readonly config: Config; readonly write: string | undefined }> => {
  // One that a restore has written which was cut off goes with everything else of it.
  if (applyConfiguration && configPath !== undefined && existsSync(configPath))
    clearCutOff(loadConfig(configPath, workingDirectory).dataDirectory);
  const isThere = configPath === undefined || existsSync(configPath);
  if (isThere && applyConfiguration)
    throw new StartError(
      'config',
      configPath === undefined
        ? '--apply-configuration needs --config with the file to write; nothing was changed'
        : `${configPath} exists: leave out --apply-configuration to use it, or move it away; nothing was changed`,
    );
  if (isThere) return { config: loadConfig(configPath, workingDirectory), write: undefined };
  const defaults = defaultConfig(workingDirectory);
  const { core } = rootOptionsOf(defaults, () => Promise.resolve(undefined));
  const { configuration } = await extract(core, path, opening, undefined).catch((error: unknown) => {
    throw explain(error, defaults);
  });
  if (configuration === undefined)
    throw new StartError(
      'config',
      `${configPath} does not exist, and the backup has no configuration: write one first`,
    );
  if (!applyConfiguration) {
    differs(differingLines('', configuration));
    throw new StartError(
      'config',
      `${configPath} does not exist: write it, or add --apply-configuration to write the one of the backup (its lines are above); nothing was changed`,
    );
  }
  return { config: parseConfig(configuration, configPath, dirname(configPath)), write: configuration };
};

const openRootFile = async (config: Config, ask: AskPassphrase): Promise<RootProvider> => {
  const options = rootOptionsOf(config, ask);
  const { path } = config.root;
  if (formatOf(path) === 1) return openFileRoot(options.core, path, false);
  const opened = await openWrappedFile(options);
  if ('head' in opened) return wrappedRoot(options.core, opened);
  const why = opened.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  throw new WayClosed(`the root key ${path} could not be opened: ${why || 'no provider is declared'}`, false);
};

export interface RestoreOptions extends BackupOpening {
  readonly configPath: string | undefined;
  readonly workingDirectory: string;
  /** A file that does not exist is written from the backup. */
  readonly applyConfiguration: boolean;
  /** How dke.toml differs from the one of the backup, which is not applied. */
  readonly differs: (lines: readonly string[]) => void;
}

/** Where a restore can begin. Throws StartError. */
const requireEmpty = ({ dataDirectory, root }: Config, rootBackup: string | undefined): void => {
  if (existsSync(dataDirectory) && readdirSync(dataDirectory).some((name) => name !== 'lock'))
    throw new StartError(
      'store',
      `${dataDirectory} is not empty: stop the service and move what is in it away, or name a configuration with another data directory; nothing was changed`,
    );
  const hasRoot = existsSync(root.path);
  if (hasRoot && rootBackup !== undefined)
    throw new StartError(
      'root-key',
      `the root key file ${root.path} exists: leave out --root-backup to use it, or move it away; nothing was changed`,
    );
  if (!hasRoot && rootBackup === undefined)
    throw new StartError(
      'root-key',
      `the root key file ${root.path} is missing: add --root-backup with the file that dke root backup wrote; nothing was changed`,
    );
};

/** The data directory, locked and empty. Answers the first folder that was made for it. */
const openEmpty = (
  config: Config,
  rootBackup: string | undefined,
): { readonly lock: DirectoryLock; readonly folder: string | null } => {
  const { dataDirectory } = config;
  clearCutOff(dataDirectory);
  requireEmpty(config, rootBackup);
  const folder = mkdirSync(dataDirectory, { recursive: true, mode: 0o700 }) ?? null;
  const lock = lockDirectory(join(dataDirectory, 'lock'));
  try {
    // Another restore may have begun in the meantime.
    requireEmpty(config, rootBackup);
    return { lock, folder };
  } catch (error) {
    lock.release();
    throw error;
  }
};

/** Everything but the names of the database and of the journal. Answers what was found in it. */
const putBack = async (
  path: string,
  config: Config,
  draft: string,
  { write, ...options }: RestoreOptions & { readonly write: string | undefined },
) => {
  const { configPath, rootBackup, ask, differs } = options;
  const { dataDirectory, root: declared } = config;
  const rootOptions = rootOptionsOf(config, ask);
  const { preface, signer, checkpoint, node, configuration } = await extract(rootOptions.core, path, options, draft);
  if (write === undefined && configuration !== undefined && config.source !== null)
    differs(differingLines(readFileSync(config.source, 'utf8'), configuration));
  const { fault, read, evidence } = inspectDatabase(draft, 'all of it');
  if (fault || !read) throw new StartError('store', `the database of ${path} cannot be used: ${evidence}`);
  let restoredEpochs: readonly number[] = [];
  if (rootBackup !== undefined)
    await restoreRoot(rootOptions, rootBackup, systemClock.now(), (epochs) => {
      restoredEpochs = epochs;
      return Promise.resolve(requireEpochs(epochs, preface.rootEpochs));
    });
  const anchor = anchorBeside(declared.path);
  // One that is there knows more than the backup.
  if (checkpoint !== undefined && anchor.read() === undefined) anchor.write(checkpoint);
  if (node !== undefined) writeDurably(join(dataDirectory, 'node'), node);
  const root = await openRootFile(config, ask);
  // What the database says, which was opened: the preface of a backup that is not authentic says
  // what its writer likes.
  let held = { records: 0, rootEpochs: [] as readonly number[] };
  const report = await verifyDatabase(rootOptions.core, draft, root, async (store) => {
    const records = await store.read.audit.size();
    held = { records, rootEpochs: (await store.read.keks.list()).map(({ rootEpoch }) => rootEpoch) };
    await store.write((tx) => tx.decisions.set(restoredSetting, JSON.stringify({ at: preface.at, size: records })));
  }).finally(() => root.release());
  for (const file of [...filesOf(draft).slice(1), `${draft}.committed`]) rmSync(file, { force: true });
  // The backup is in no backup of itself: the service has to know of both files.
  const at = Date.parse(preface.at);
  addReceipt(receiptPath(dataDirectory), { id: preface.backupId, at, until: at, ...madeOf(held) });
  if (rootBackup !== undefined) {
    const now = systemClock.now();
    const { state, rootEpoch, oldestRootEpoch } = madeOf({ ...held, rootEpochs: restoredEpochs });
    addReceipt(backupReceiptPath(declared.path), { id: newId(now), at: now, state, rootEpoch, oldestRootEpoch });
  }
  if (write !== undefined && configPath !== undefined) {
    mkdirSync(dirname(configPath), { recursive: true });
    replaceFile(configPath, write);
  }
  return { preface, signer, report };
};

/**
 * Restores a backup into the data directory of the configuration, which is missing or empty. The
 * root key comes from its backup, or is where dke.toml says. All of it is there afterwards, or
 * nothing; after a crash, the next restore begins by undoing this one, and no service starts
 * before. Throws StartError.
 */
export const restoreBackup = async (path: string, options: RestoreOptions): Promise<RestoredService> => {
  const { configPath, rootBackup } = options;
  const head = await readBackupHead(path).catch((error: unknown) => {
    throw explain(error, defaultConfig(options.workingDirectory));
  });
  checkSigner(path, head, options);
  const { config, write } = await readConfiguration(path, options);
  requireEmbedded(config);
  const { dataDirectory, root: declared } = config;
  let opened: ReturnType<typeof openEmpty> | undefined;
  try {
    opened = openEmpty(config, rootBackup);
    const { folder } = opened;
    const files = [
      ...(rootBackup === undefined
        ? []
        : [declared.path, backupReceiptPath(declared.path)]
            .filter((each) => !existsSync(each))
            .map((each) => ({ path: each, digest: null }))),
      ...(anchorBeside(declared.path).read() === undefined
        ? [{ path: `${declared.path}.checkpoint`, digest: null }]
        : []),
      ...(write === undefined || configPath === undefined
        ? []
        : [
            { path: configPath, digest: digestOf(write) },
            { path: `${configPath}.new`, digest: null },
          ]),
    ];
    beginJournal(dataDirectory, { files, folder });
    const database = join(dataDirectory, 'dke.db');
    // Under this name no service opens it.
    const draft = `${database}.part`;
    const { preface, signer, report } = await putBack(path, config, draft, { ...options, write });
    putInPlace(draft, database);
    endJournal(dataDirectory);
    return {
      authentic: options.trust !== undefined,
      backupId: preface.backupId,
      at: preface.at,
      signer,
      dataDirectory,
      configuration: configPath ?? config.source ?? 'defaults',
      rootKey: declared.path,
      auditRecords: report.auditRecords,
      keys: report.keys,
      findings: report.findings,
    };
  } catch (error) {
    if (opened !== undefined) {
      const folder = hasJournal(dataDirectory) ? undoRestore(dataDirectory) : opened.folder;
      rmSync(folder ?? join(dataDirectory, 'lock'), { recursive: true, force: true });
    }
    throw explain(error, config);
  } finally {
    opened?.lock.release();
  }
};
