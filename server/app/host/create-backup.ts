// `dke backup create`: the whole service on the embedded database in one file, while the service
// runs. The service names the recipients and signs; where it is stopped, this process opens the
// root key and does both. Restoring is in restore-backup.ts.

import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type BackupPart, draftOf, readBackupHead, writeBackup } from '../../adapters/archives/backup-file.ts';
import { anchorBeside, backupBeside } from '../../adapters/roots/durable-files.ts';
import { addReceipt, readReceipts } from '../../adapters/roots/receipts.ts';
import type { AskPassphrase } from '../../adapters/roots/unlock-ways.ts';
import { copyDatabase, schemaOf } from '../../adapters/store/engine/sqlite/copy-database.ts';
import { type DirectoryLock, isLocked, lockDirectory } from '../../adapters/store/engine/sqlite/lock.ts';
import { newestSchema } from '../../adapters/store/migrations/migrate.ts';
import { canonicalJson } from '../../base/bytes.ts';
import { putInPlace, removeDurably, replaceFile } from '../../base/durable-files.ts';
import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { StartError } from '../../base/start-error.ts';
import { systemClock, toRfc3339 } from '../../base/time.ts';
import { type BackupReceipt, parseBackupReceipt } from '../../domain/backup-receipt.ts';
import { compareAtStart, restoredSetting } from '../../operations/audit/compare-log.ts';
import { createBackupAuthority } from '../../operations/service/service-backup.ts';
import type { BackupAuthority } from '../../ports/backup-authority.ts';
import type { Config } from '../config/config.ts';
import { askService } from './backup-requests.ts';
import { asStartError, filesOf, openOffline, rootOptionsOf } from './offline.ts';

export interface BackupReport {
  readonly file: string;
  readonly backupId: string;
  readonly at: string;
  readonly bytes: number;
  readonly auditRecords: number;
  readonly recoveryKeys: readonly string[];
  /** Verifier key of the audit log, which `dke backup verify` and `restore` need. */
  readonly signer: string;
  readonly rootEpoch: number;
  /**
   * The state of the backup of the root key (`dke root backup`), without which this backup opens
   * nothing.
   */
  readonly rootKeyBackup: 'current' | 'outdated' | 'none';
}

export const requireEmbedded = ({ postgresql }: Config): void => {
  if (postgresql !== undefined)
    throw new StartError(
      'config',
      'the database is on PostgreSQL: back it up and restore it with pg_dump or pgBackRest, and the root key with dke root backup (docs/backup.md, "On PostgreSQL")',
    );
};

/** Errors of the file system and of the formats, as the command says them. */
export const explain = (error: unknown, config: Config): unknown => {
  if (error instanceof ServiceError)
    return new StartError(
      error.code === 'conflict' ? 'config' : 'store',
      error.hint === undefined ? error.message : `${error.message}: ${error.hint}`,
      { cause: error },
    );
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return asStartError(error, config);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new StartError('store', 'the disk is full: free some space, or specify a file on another disk', {
      cause: error,
    });
  return new StartError(
    'permission',
    `${path ?? 'a file'} cannot be used (${code}): check its folder and its mode; this command runs as user ${process.geteuid?.() ?? 0}`,
    {
      cause: error,
    },
  );
};

const databaseDraft = 'dke.db.backup';
export const receiptPath = (dataDirectory: string): string => join(dataDirectory, 'backup-receipt');
/** The name of the file that is being written, for the next command if this one is cut off. */
const underWayPath = (dataDirectory: string): string => join(dataDirectory, 'backup-under-way');
/** Where the file of `underWayPath` is when the backup has failed, until its receipt says so. */
const failedPath = (dataDirectory: string): string => join(dataDirectory, 'backup-failed');
const parseUnderWay = (path: string): { readonly id?: string | undefined; readonly draft?: string | undefined } => {
  const [, id, draft] = /^(\S+) (.*\.part)$/s.exec(readFileSync(path, 'utf8')) ?? [];
  return { id, draft };
};

/** What the backups of this service left, the oldest first. */
export const readBackupReceipts = (dataDirectory: string): readonly BackupReceipt[] =>
  readReceipts(receiptPath(dataDirectory), parseBackupReceipt);

/** What a receipt says of a backup that was created. */
export const madeOf = ({
  records,
  rootEpochs,
}: {
  readonly records: number;
  readonly rootEpochs: readonly number[];
}) => ({
  ...{ state: 'made', records, rootEpoch: Math.max(...rootEpochs), oldestRootEpoch: Math.min(...rootEpochs) },
});

/**
 * Whether the draft is there, has its name and no other, and is not what has the name of the
 * backup.
 */
const isOnlyDraft = (draft: string, id: string | undefined): boolean => {
  const [found, published] = [draft, id === undefined ? '' : draft.slice(0, -`.${id}.part`.length)].map((path) =>
    statSync(path, { throwIfNoEntry: false }),
  );
  return found?.nlink === 1 && (found.dev !== published?.dev || found.ino !== published.ino);
};

/**
 * Removes what a failed backup has written, then says in its receipt that it failed. That it failed
 * is on the disk before: after a crash in between, the next command does the rest.
 */
const endFailed = (dataDirectory: string): void => {
  const path = failedPath(dataDirectory);
  if (!existsSync(path)) return;
  const { id, draft = '' } = parseUnderWay(path);
  removeDurably(draft);
  if (id !== undefined) addReceipt(receiptPath(dataDirectory), { id, at: systemClock.now(), state: 'failed' });
  removeDurably(path);
};

/**
 * Removes what a backup that was cut off, or that fails now, has left: its copy of the database,
 * and its file. The backup has failed for sure where its file has the draft's name and no other, or
 * where it has none (`isNone`). Otherwise, as where another program has moved it, its receipt says
 * that it has begun, and it counts.
 */
const clearCutOff = (dataDirectory: string, isNone = false): void => {
  for (const file of filesOf(join(dataDirectory, databaseDraft))) rmSync(file, { force: true });
  endFailed(dataDirectory);
  const path = underWayPath(dataDirectory);
  if (!existsSync(path)) return;
  const { id, draft = '' } = parseUnderWay(path);
  if (isNone || isOnlyDraft(draft, id)) {
    putInPlace(path, failedPath(dataDirectory));
    endFailed(dataDirectory);
    return;
  }
  removeDurably(draft);
  removeDurably(path);
};

const endCutOff = (dataDirectory: string, isNone: boolean): void => {
  try {
    clearCutOff(dataDirectory, isNone);
  } catch (error) {
    throw new StartError(
      'store',
      'the backup failed, and its receipt does not say so yet: free space in the data directory, then create another backup, which says it',
      { cause: error },
    );
  }
};

/** The id of the node whose data directory this is; empty before its first start. */
export const nodeIdOf = ({ dataDirectory }: Pick<Config, 'dataDirectory'>): string => {
  const path = join(dataDirectory, 'node');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().replaceAll('-', '') : '';
};

/**
 * The id of a backup that the service of `made` has created, too. The signature covers the id,
 * which begins with the time. Undefined for another file.
 */
export const backupOfOneService = async (path: string, made: string): Promise<string | undefined> => {
  const readMaker = async (file: string) => {
    const { preface, closing } = await readBackupHead(file);
    return { id: preface.backupId, maker: canonicalJson([preface.log, closing?.signer ?? '']) };
  };
  const own = await readMaker(made);
  const found = await readMaker(path).catch(() => undefined);
  return found?.maker === own.maker ? found.id : undefined;
};

/** A service that runs, or the keys of one that is stopped. */
const openAuthority = async (
  config: Config,
  ask: AskPassphrase,
): Promise<{ readonly authority: BackupAuthority; close(): Promise<void> }> => {
  const { dataDirectory } = config;
  if (isLocked(join(dataDirectory, 'lock')))
    return { authority: askService(dataDirectory), close: () => Promise.resolve() };
  // Opening it would upgrade it, and the version that made it could not open it afterwards.
  if (schemaOf(join(dataDirectory, 'dke.db')) !== newestSchema)
    throw new StartError(
      'store',
      'the database is of another version of the service: start the service, or create the backup with the version that ran last; nothing was changed',
    );
  const opened = await openOffline(config, ask);
  try {
    const finding = await compareAtStart({ ...opened, clock: systemClock });
    if (finding.state !== 'intact' || (await opened.store.read.decisions.get(restoredSetting)) !== undefined)
      throw new StartError(
        'store',
        'the database is not the one that the service signed last: start the service, and see dke quarantine show',
      );
    return { authority: createBackupAuthority(opened), close: opened.close };
  } catch (error) {
    await opened.close();
    throw error;
  }
};

/** Writes a backup into a new file. The service may run. Throws StartError. */
export const createBackup = async (
  config: Config,
  version: string,
  out: string,
  ask: AskPassphrase,
): Promise<BackupReport> => {
  requireEmbedded(config);
  const { dataDirectory } = config;
  const path = join(dataDirectory, 'dke.db');
  let lock: DirectoryLock | undefined;
  let opened: Awaited<ReturnType<typeof openAuthority>> | undefined;
  const draft = join(dataDirectory, databaseDraft);
  /** Nothing of this backup has been written at its place. */
  let isNone = false;
  try {
    if (!existsSync(path))
      throw new StartError('store', `there is no database ${path}: name the service's dke.toml with --config`);
    if (existsSync(out)) throw new StartError('permission', `${out} already exists: specify a new file`);
    lock = lockDirectory(join(dataDirectory, 'backup.lock'));
    clearCutOff(dataDirectory);
    isNone = true;
    opened = await openAuthority(config, ask);
    const keys = await opened.authority.recipients();
    // Read first: the database never knows less than what is kept next to the root key.
    const checkpoint = anchorBeside(config.root.path).read();
    const now = systemClock.now();
    const at = toRfc3339(now);
    const backupId = newId(now);
    // Before the database is read: an erasure run that ends in the meantime knows that there is a
    // backup.
    const begun = { id: backupId, state: 'begun', at: now };
    replaceFile(underWayPath(dataDirectory), `${backupId} ${draftOf(out, backupId)}`);
    addReceipt(receiptPath(dataDirectory), begun);
    const facts = copyDatabase(path, draft);
    const parts: BackupPart[] = [
      ...(config.source === null ? [] : [{ name: 'configuration', from: readFileSync(config.source) }]),
      { name: 'node', from: readFileSync(join(dataDirectory, 'node')) },
      ...(checkpoint === undefined ? [] : [{ name: 'checkpoint', from: Buffer.from(checkpoint) }]),
      { name: 'database', from: { path: draft } },
    ];
    const { core } = rootOptionsOf(config, ask);
    const { bytes, digest, signer } = await writeBackup(
      core,
      out,
      { backupId, at, version, ...facts },
      keys,
      parts,
      opened.authority,
      // The draft of a failed backup is removed below, when it is known that the backup has failed.
      async () => {
        isNone = false;
      },
    );
    isNone = false;
    // The service reads it: the digest comes into the audit log, and people are reminded when the
    // next one is due.
    const until = systemClock.now();
    addReceipt(receiptPath(dataDirectory), { ...begun, ...madeOf(facts), until, bytes, digest });
    removeDurably(underWayPath(dataDirectory));
    const rootEpoch = Math.max(...facts.rootEpochs);
    const receipt = backupBeside(config.root.path);
    return {
      file: out,
      backupId,
      at,
      bytes,
      auditRecords: facts.records,
      recoveryKeys: keys.map(({ id }) => id),
      signer,
      rootEpoch,
      rootKeyBackup: receipt === undefined ? 'none' : receipt.epoch === rootEpoch ? 'current' : 'outdated',
    };
  } catch (error) {
    throw explain(error, config);
  } finally {
    try {
      // Not what another command is making.
      if (lock !== undefined) endCutOff(dataDirectory, isNone);
    } finally {
      lock?.release();
      await opened?.close();
    }
  }
};
