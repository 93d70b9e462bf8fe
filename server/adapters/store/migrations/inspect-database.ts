// Whether the file of the embedded database can be opened by this version, without changing
// anything: no lock, no write-ahead log, no side files. What is in a write-ahead log that was not
// merged yet is not read, so that a database in use is checked only in part.

import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { StoredKek } from '../../../ports/store.ts';
import { applicationId } from '../engine/sqlite/dialect.ts';
import { foreignSchema } from './migrate.ts';

export interface DatabaseInspection {
  /** Whether no start can use it. */
  readonly fault: boolean;
  /** False: what it contains was not read, because it is in use or was not closed. */
  readonly read: boolean;
  readonly evidence: string;
  readonly fix?: string;
}
/** The fix, in the words of a start that notices the fault only when it opens the file. */
export const restoreIt = 'restore it from a backup; nothing was changed';
const damaged = (evidence: string): DatabaseInspection => ({ fault: true, read: true, evidence, fix: restoreIt });

/** A larger file would take minutes to check; its size and schema are checked. */
const mostChecked = 1 << 30;
const magic = 'SQLite format 3\0';

const readHeader = (path: string): Buffer => {
  const header = Buffer.alloc(100);
  const file = openSync(path, 'r');
  try {
    return header.subarray(0, readSync(file, header, 0, header.length, 0));
  } finally {
    closeSync(file);
  }
};

/** A name may have each character that means something in a URL. */
const openUnchanged = (path: string): DatabaseSync =>
  new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true });

const hasTable = (database: DatabaseSync, name: string): boolean =>
  database.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(name) !== undefined;

/**
 * The keys that the root key opens. Undefined: they cannot be read without changing the files of a
 * database that was not closed.
 */
export const readStoredKeks = (path: string): readonly StoredKek[] | undefined => {
  const inUse = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (inUse && !existsSync(`${path}-shm`)) return undefined;
  const database = inUse ? new DatabaseSync(path, { readOnly: true }) : openUnchanged(path);
  try {
    if (!hasTable(database, 'tenant_keks')) return [];
    const rows = database.prepare('select tenant_id, epoch, root_epoch, record from tenant_keks').all() as {
      readonly tenant_id: string;
      readonly epoch: number;
      readonly root_epoch: number;
      readonly record: Uint8Array;
    }[];
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      epoch: row.epoch,
      rootEpoch: row.root_epoch,
      record: Buffer.from(row.record),
    }));
  } finally {
    database.close();
  }
};

/** `how`: its head takes a moment; all of it is read for long. */
export const inspectDatabase = (path: string, how: 'its head' | 'all of it'): DatabaseInspection => {
  const { size } = statSync(path);
  const header = readHeader(path);
  if (header.length < 100 || header.subarray(0, 16).toString('latin1') !== magic)
    return damaged(`${path} is not a database`);
  const id = header.readUInt32BE(68);
  if (id !== applicationId && id !== 0)
    return { fault: true, read: true, evidence: `${path} belongs to another program`, fix: 'nothing was changed' };
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (log > 0)
    return {
      fault: false,
      read: false,
      evidence: `${path} is in use or was not closed: its write-ahead log has ${log} bytes and is read by the start`,
    };
  const page = header.readUInt16BE(16);
  const whole = header.readUInt32BE(28) * (page === 1 ? 65_536 : page);
  if (size < whole) return damaged(`${path} is cut off: it has ${size} of ${whole} bytes`);
  let database: DatabaseSync | undefined;
  try {
    database = openUnchanged(path);
    const applied = hasTable(database, 'kysely_migration')
      ? (database.prepare('select name from kysely_migration order by name').all() as { readonly name: string }[])
      : [];
    const foreign = foreignSchema(applied.map(({ name }) => name));
    if (foreign !== undefined)
      return { fault: true, read: true, evidence: `the database ${foreign.why}`, fix: foreign.fix };
    if (how === 'all of it' && size <= mostChecked) {
      const [found] = database.prepare('pragma quick_check(1)').all() as { readonly quick_check: string }[];
      if (found?.quick_check !== 'ok') return damaged(`${path} is damaged (${found?.quick_check})`);
    }
    return { fault: false, read: true, evidence: `${path}, schema ${applied.at(-1)?.name ?? 'none'}` };
  } catch (error) {
    return damaged(`${path} is damaged (${error instanceof Error ? error.message : 'it cannot be read'})`);
  } finally {
    database?.close();
  }
};
