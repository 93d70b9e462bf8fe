// Backups of the whole service on the embedded database: made on the host while the service runs, and restored into an empty data directory.
// A restored service is in quarantine until an operator confirms, because what was changed after the backup is not in it.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Core, KeyRef } from '../../addon/core.ts';
import { parseBase64 } from '../base/bytes.ts';
import { systemClock, toRfc3339 } from '../base/clock.ts';
import { putInPlace, replaceFile, writeDurably } from '../base/durable-files.ts';
import { ServiceError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import { StartError } from '../base/start-error.ts';
import { type Config, defaultConfig, loadConfig, parseConfig } from '../config/config.ts';
import type { ServiceBackup } from '../domain/service-backup.ts';
import { createKeyRing } from '../native/key-ring.ts';
import { adoptDecisions, restoredSetting } from '../operations/audit/compare-log.ts';
import { type VerificationReport, verifyStore } from '../operations/service/verify-store.ts';
import type { RootProvider } from '../ports/root-provider.ts';
import type { Store } from '../ports/store.ts';
import { openRootBackup, restoreRoot } from '../roots/backup.ts';
import { openFileRoot } from '../roots/file.ts';
import { anchorBeside, backupBeside } from '../roots/files.ts';
import { openWrappedFile } from '../roots/open.ts';
import { type AskPassphrase, WayClosed } from '../roots/ways.ts';
import { formatOf, type OpenWrapped } from '../roots/wrapped-file.ts';
import { wrappedRoot } from '../roots/wrapped-root.ts';
import {
  type BackupPart,
  type BackupPreface,
  type BackupSink,
  readBackup,
  readBackupPreface,
  writeBackup,
} from '../snapshots/backup-file.ts';
import { copyDatabase } from '../store/sqlite/copy-database.ts';
import { type DirectoryLock, lockDirectory } from '../store/sqlite/lock.ts';
import { openStore } from '../store/store.ts';
import { asStartError, filesOf, inspectDatabase, requireEpochs, rootOptionsOf } from './offline.ts';

/** Opens the key of a backup. The caller releases it. */
export type OpenBackupKey = (core: Core, preface: BackupPreface) => Promise<KeyRef>;

export interface BackupReport {
  readonly file: string;
  readonly backupId: string;
  readonly at: string;
  readonly bytes: number;
  readonly auditRecords: number;
  readonly recoveryKeys: readonly string[];
  readonly rootEpoch: number;
  /** Of `dke root backup`, without which this backup opens nothing. */
  readonly rootKeyBackup: 'current' | 'outdated' | 'none';
}

const requireEmbedded = ({ postgresql }: Config): void => {
  if (postgresql !== undefined)
    throw new StartError(
      'config',
      'the database is on PostgreSQL: back it up and restore it with pg_dump or pgBackRest, and the root key with dke root backup (docs/backup.md, "On PostgreSQL")',
    );
};

/** Errors of the file system and of the formats, as the command says them. */
const explain = (error: unknown, config: Config): unknown => {
  if (error instanceof ServiceError)
    return new StartError('store', error.hint === undefined ? error.message : `${error.message}: ${error.hint}`, {
      cause: error,
    });
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return asStartError(error, config);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new StartError('store', 'the disk is full: free some space, or specify a file on another disk', {
      cause: error,
    });
  return new StartError('permission', `${path ?? 'a file'} cannot be used (${code}): check its folder and its mode`, {
    cause: error,
  });
};

const draftName = 'dke.db.backup';
const receiptPath = (dataDirectory: string): string => join(dataDirectory, 'backup-receipt');

/** What the newest backup left; a receipt that cannot be read is none. */
export const readBackupReceipt = (dataDirectory: string): ServiceBackup | undefined => {
  try {
    const receipt = JSON.parse(readFileSync(receiptPath(dataDirectory), 'utf8')) as ServiceBackup;
    const { backupId, at, bytes } = receipt;
    const isReceipt = typeof backupId === 'string' && Number.isSafeInteger(at) && Number.isSafeInteger(bytes);
    return isReceipt ? { backupId: backupId.slice(0, 64), at, bytes } : undefined;
  } catch {
    return undefined;
  }
};

/** Writes a backup into a new file. The service may run. Throws StartError. */
export const createBackup = async (config: Config, version: string, out: string): Promise<BackupReport> => {
  requireEmbedded(config);
  const path = join(config.dataDirectory, 'dke.db');
  let lock: DirectoryLock | undefined;
  const draft = join(config.dataDirectory, draftName);
  try {
    const owner = statSync(path, { throwIfNoEntry: false })?.uid;
    if (owner === undefined)
      throw new StartError('store', `there is no database ${path}: name the service's dke.toml with --config`);
    if (owner !== process.getuid?.())
      throw new StartError('permission', `${path} belongs to user ${owner}: run the command as this user (sudo -u)`);
    if (existsSync(out)) throw new StartError('permission', `${out} already exists: specify a new file`);
    lock = lockDirectory(join(config.dataDirectory, 'backup.lock'));
    // Of a backup that was cut off.
    for (const file of filesOf(draft)) rmSync(file, { force: true });
    // Read first: the database never knows less than what is kept next to the root key.
    const checkpoint = anchorBeside(config.root.path).read();
    const at = toRfc3339(systemClock.now());
    const { recoveryKeys, ...facts } = copyDatabase(path, draft);
    const keys = recoveryKeys.map(({ id, publicKey }) => ({
      id,
      publicKey: parseBase64(publicKey) ?? Buffer.alloc(0),
    }));
    if (keys.length === 0)
      throw new StartError(
        'config',
        'no recovery key is registered, and backups are encrypted to recovery keys: run dke recovery-key create, then dke recovery-key register',
      );
    const parts: BackupPart[] = [
      ...(config.source === null ? [] : [{ name: 'configuration', from: readFileSync(config.source) }]),
      { name: 'node', from: readFileSync(join(config.dataDirectory, 'node')) },
      ...(checkpoint === undefined ? [] : [{ name: 'checkpoint', from: Buffer.from(checkpoint) }]),
      { name: 'database', from: { path: draft } },
    ];
    const { core } = rootOptionsOf(config, () => Promise.resolve(undefined));
    const backupId = newId(systemClock.now());
    const bytes = await writeBackup(core, out, { backupId, at, version, ...facts }, keys, parts);
    // The service reads it, and reminds people when the next one is due.
    replaceFile(receiptPath(config.dataDirectory), JSON.stringify({ backupId, at: Date.parse(at), bytes }));
    const rootEpoch = Math.max(...facts.rootEpochs);
    const receipt = backupBeside(config.root.path);
    return {
      file: out,
      backupId,
      at,
      bytes,
      auditRecords: facts.records,
      recoveryKeys: keys.map(({ id }) => id),
      rootEpoch,
      rootKeyBackup: receipt === undefined ? 'none' : receipt.epoch === rootEpoch ? 'current' : 'outdated',
    };
  } catch (error) {
    throw explain(error, config);
  } finally {
    for (const file of filesOf(draft)) rmSync(file, { force: true });
    lock?.release();
  }
};

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

const textSink = (done: (text: string) => void): BackupSink => {
  const pieces: Buffer[] = [];
  return {
    write: async (bytes) => void pieces.push(Buffer.from(bytes)),
    end: async () => done(Buffer.concat(pieces).toString('utf8')),
  };
};

interface Extracted {
  readonly preface: BackupPreface;
  readonly checkpoint: string | undefined;
  readonly node: string | undefined;
  readonly configuration: string | undefined;
}

/** The database goes to `database`; the rest is small. */
const extract = async (
  core: Core,
  path: string,
  openKey: OpenBackupKey,
  database: string | undefined,
): Promise<Extracted> => {
  const key = await openKey(core, await readBackupPreface(path));
  const texts = new Map<string, string>();
  try {
    const { preface, parts } = await readBackup(core, path, key, (name) =>
      name === 'database'
        ? database === undefined
          ? undefined
          : fileSink(database)
        : textSink((text) => texts.set(name, text)),
    );
    if (!parts.has('database')) throw new StartError('store', `${path} has no database`);
    return {
      preface,
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
    authenticateRow: (text) => ring.authenticateRow(text),
    onFatal: () => undefined,
  });
  try {
    await ring.unlock(store, root);
    await adoptDecisions({ store, root });
    // What an earlier process confirmed is recorded next to the database that it was: this one is a copy of it.
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
  readonly backupId: string;
  readonly at: string;
  readonly version: string;
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
  openKey: OpenBackupKey,
  { rootBackup, ask }: { readonly rootBackup: string | undefined; readonly ask: AskPassphrase },
): Promise<BackupVerification> => {
  const options = rootOptionsOf(config, ask);
  const folder = mkdtempSync(join(tmpdir(), 'dke-backup-'));
  const database = join(folder, 'dke.db');
  let opened: OpenWrapped | undefined;
  try {
    const { preface, configuration } = await extract(options.core, path, openKey, database);
    const { state, evidence } = inspectDatabase(database);
    if (state !== 'good') throw new StartError('store', `the database of ${path} cannot be used: ${evidence}`);
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
      backupId: preface.backupId,
      at: preface.at,
      version: preface.version,
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
  readonly backupId: string;
  readonly at: string;
  readonly dataDirectory: string;
  readonly configuration: string;
  readonly rootKey: string;
  readonly auditRecords: number;
  readonly keys: number;
  readonly findings: readonly string[];
}

/** The configuration that is there, else the one of the backup. */
const readConfiguration = async (
  path: string,
  configPath: string | undefined,
  workingDirectory: string,
  openKey: OpenBackupKey,
): Promise<{ readonly config: Config; readonly write: string | undefined }> => {
  if (configPath === undefined || existsSync(configPath))
    return { config: loadConfig(configPath, workingDirectory), write: undefined };
  const defaults = defaultConfig(workingDirectory);
  const { core } = rootOptionsOf(defaults, () => Promise.resolve(undefined));
  const { configuration } = await extract(core, path, openKey, undefined).catch((error: unknown) => {
    throw explain(error, defaults);
  });
  if (configuration === undefined)
    throw new StartError(
      'config',
      `${configPath} does not exist, and the backup has no configuration: write one first`,
    );
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

/**
 * Restores a backup into the data directory of the configuration, which is missing or empty. The root key comes from its backup, or is where
 * dke.toml says. All of it is there afterwards, or nothing. Throws StartError.
 */
export const restoreBackup = async (
  path: string,
  {
    configPath,
    workingDirectory,
    rootBackup,
    openKey,
    ask,
  }: {
    /** A file that does not exist is written from the backup. */
    readonly configPath: string | undefined;
    readonly workingDirectory: string;
    readonly rootBackup: string | undefined;
    readonly openKey: OpenBackupKey;
    readonly ask: AskPassphrase;
  },
): Promise<RestoredService> => {
  const { config, write } = await readConfiguration(path, configPath, workingDirectory, openKey);
  requireEmbedded(config);
  const { dataDirectory, root: declared } = config;
  if (existsSync(dataDirectory) && readdirSync(dataDirectory).length > 0)
    throw new StartError(
      'store',
      `${dataDirectory} is not empty: stop the service and move what is in it away, or name a configuration with another data directory; nothing was changed`,
    );
  const hasRoot = existsSync(declared.path);
  if (hasRoot && rootBackup !== undefined)
    throw new StartError(
      'root-key',
      `the root key file ${declared.path} exists: leave out --root-backup to use it, or move it away; nothing was changed`,
    );
  if (!hasRoot && rootBackup === undefined)
    throw new StartError(
      'root-key',
      `the root key file ${declared.path} is missing: add --root-backup with the file that dke root backup wrote; nothing was changed`,
    );
  /** Undone in reverse order when anything fails. */
  const undo: (() => void)[] = [];
  let lock: DirectoryLock | undefined;
  try {
    const first = mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
    undo.push(() => {
      if (first !== undefined) rmSync(first, { recursive: true, force: true });
      else for (const file of readdirSync(dataDirectory)) rmSync(join(dataDirectory, file), { recursive: true });
    });
    lock = lockDirectory(join(dataDirectory, 'lock'));
    const options = rootOptionsOf(config, ask);
    const database = join(dataDirectory, 'dke.db');
    // Under this name no service opens it.
    const draft = `${database}.part`;
    const { preface, checkpoint, node } = await extract(options.core, path, openKey, draft);
    const { state, evidence } = inspectDatabase(draft);
    if (state !== 'good') throw new StartError('store', `the database of ${path} cannot be used: ${evidence}`);
    if (rootBackup !== undefined) {
      undo.push(() => rmSync(declared.path, { force: true }));
      await restoreRoot(options, rootBackup, systemClock.now(), (epochs) =>
        Promise.resolve(requireEpochs(epochs, preface.rootEpochs)),
      );
    }
    const anchor = anchorBeside(declared.path);
    // One that is there knows more than the backup.
    if (checkpoint !== undefined && anchor.read() === undefined) {
      undo.push(() => rmSync(`${declared.path}.checkpoint`, { force: true }));
      anchor.write(checkpoint);
    }
    if (node !== undefined) writeDurably(join(dataDirectory, 'node'), node);
    const root = await openRootFile(config, ask);
    const { findings, keys, auditRecords } = await verifyDatabase(options.core, draft, root, (store) =>
      store.write((tx) => tx.decisions.set(restoredSetting, JSON.stringify({ at: preface.at, size: preface.records }))),
    ).finally(() => root.release());
    for (const file of [...filesOf(draft).slice(1), `${draft}.committed`]) rmSync(file, { force: true });
    if (write !== undefined && configPath !== undefined) {
      mkdirSync(dirname(configPath), { recursive: true });
      undo.push(() => rmSync(configPath, { force: true }));
      writeDurably(configPath, write);
    }
    putInPlace(draft, database);
    return {
      backupId: preface.backupId,
      at: preface.at,
      dataDirectory,
      configuration: configPath ?? config.source ?? 'defaults',
      rootKey: declared.path,
      auditRecords,
      keys,
      findings,
    };
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw explain(error, config);
  } finally {
    lock?.release();
  }
};
