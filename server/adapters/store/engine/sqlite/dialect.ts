// Kysely over node:sqlite. Everything that only SQLite knows is in this folder: pragmas, file
// checks, error numbers, checkpoints. Statements are synchronous underneath; the store's writer
// queue keeps transactions apart.

import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { type Dialect, sql } from 'kysely';
import type { ColumnKinds } from '../../schema/create-tables.ts';
import { StoreError } from '../store-error.ts';
import { GivingWayDialect } from './give-way.ts';
import { ReadingConnection } from './reading-connection.ts';
import { keepStatements } from './statements.ts';
import { whyNotWritable } from './writable.ts';

/** How long another process's lock is waited for. */
export const lockWaitMs = 5_000;

/**
 * In the database header, so that a foreign database is never taken for ours: "DKE" and the format.
 */
export const applicationId = 0x444b4501;
const magic = 'SQLite format 3\0';

export const sqliteColumns: ColumnKinds = {
  bytes: 'blob',
  long: 'integer',
  text: sql`text`,
  // SQLite always compares text bytewise.
  compareBytewise: async () => undefined,
  count: () => Promise.resolve(),
  sequence: { type: 'integer', define: (column) => column.primaryKey().autoIncrement() },
};

// SQLite's primary result codes (sqlite.org/rescode.html) that say something about the store as a
// whole.
const resultCodes = {
  busy: 5,
  full: 13,
  ioerr: 10,
  corrupt: 11,
  notadb: 26,
  cantopen: 14,
  readonly: 8,
  constraint: 19,
} as const;

const primaryCode = (error: unknown): number | undefined => {
  const code = (error as { readonly errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
};

export const isFull = (error: unknown): boolean => primaryCode(error) === resultCodes.full;
/** Another process holds the lock that is wanted. */
export const isBusy = (error: unknown): boolean => primaryCode(error) === resultCodes.busy;
export const isConstraint = (error: unknown): boolean => primaryCode(error) === resultCodes.constraint;
/**
 * After such an error nothing that was written since the last commit is certain (Linux reports a
 * lost page once).
 */
export const isFatal = (error: unknown): boolean => {
  const code = primaryCode(error);
  return code === resultCodes.ioerr || code === resultCodes.corrupt || code === resultCodes.notadb;
};

/**
 * The first bytes tell a database from anything else before SQLite writes to it. An empty file is a
 * database not yet begun.
 */
const checkHeader = (path: string): 'absent' | 'present' => {
  if (!existsSync(path)) return 'absent';
  const file = openSync(path, 'r');
  try {
    const size = fstatSync(file).size;
    if (size === 0) return 'absent';
    const header = Buffer.alloc(100);
    const length = readSync(file, header, 0, header.length, 0);
    if (length < header.length || header.toString('latin1', 0, 16) !== magic)
      throw new StoreError('corrupt', `${path} is not a database: restore it from a backup; nothing was changed`);
    const id = header.readUInt32BE(68);
    if (id !== applicationId && id !== 0)
      throw new StoreError('corrupt', `${path} belongs to another program; nothing was changed`);
    return 'present';
  } finally {
    closeSync(file);
  }
};

/** Sets a pragma and reads it back: several are per connection, and a refused one is silent. */
const pragma = (database: DatabaseSync, name: string, value: string | number, expected: string | number): void => {
  database.exec(`pragma ${name} = ${value}`);
  const row = database.prepare(`pragma ${name}`).get();
  const actual = row === undefined ? undefined : Object.values(row)[0];
  if (actual !== expected)
    throw new StoreError('open', `the database refuses ${name} = ${value} (it says ${String(actual)})`);
};

const openConnection = (path: string, readOnly: boolean): DatabaseSync => {
  const database = new DatabaseSync(path, { readOnly, timeout: lockWaitMs });
  try {
    if (!readOnly) {
      pragma(database, 'journal_mode', 'wal', 'wal');
      pragma(database, 'synchronous', 'full', 2);
      // A thread of the store's copies the log into the database (checkpointer.ts): here it would
      // make requests wait for the disk.
      pragma(database, 'wal_autocheckpoint', 0, 0);
      pragma(database, 'secure_delete', 'on', 1);
      pragma(database, 'foreign_keys', 'on', 1);
      // A rollback journal in memory is for statements only (WAL keeps transactions); temporary
      // tables never reach the disk.
      pragma(database, 'temp_store', 'memory', 2);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
};

const dialectOver = (database: DatabaseSync): Dialect =>
  new GivingWayDialect({
    database: keepStatements(database) as unknown as ConstructorParameters<typeof GivingWayDialect>[0]['database'] &
      object,
  });

/**
 * A database of one connection, without a name: what its cache does not hold is in a file that
 * nothing else can open, and that ends with it.
 */
export const temporaryDatabase = (): Dialect => {
  const database = new DatabaseSync('');
  database.exec(
    'pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536; pragma foreign_keys = on',
  );
  return dialectOver(database);
};

export const logInUse = (): StoreError =>
  new StoreError(
    'io',
    'the write-ahead log cannot be emptied while another program reads the database: close what has it open (a shell, a backup), and try again',
  );

export interface SqliteConnections {
  readonly writer: Dialect;
  readonly reader: Dialect;
  /** One more connection that only sees what is committed, with a thread of its own. */
  another(): ReadingConnection;
  readonly fresh: boolean;
  /**
   * Writes what is committed to a new file, in another thread: from the open file, whatever has its
   * name.
   */
  saveTo(path: string): Promise<void>;
  checkpoint(): void;
  /** From now on commits are synced by who makes them. */
  syncNoMore(): void;
  /**
   * From now on a statement that meets another process's lock fails at once: to wait in SQLite is
   * to stand still.
   */
  waitNoMore(): void;
  /** SQLite itself no longer copies the write-ahead log. */
  copyByItself(): void;
}

/**
 * Opens the two connections of the embedded store: one that writes, one that only sees what is
 * committed. Refuses, before anything is written, a file that is not a database of ours or whose
 * structure is broken.
 */
export const openSqlite = (path: string): SqliteConnections => {
  const present = checkHeader(path) === 'present';
  let writer: DatabaseSync | undefined;
  try {
    if (present) {
      // Checked read-only first: the opening connection of a broken file must not replay or
      // truncate anything.
      const probe = new DatabaseSync(path, { readOnly: true, timeout: lockWaitMs });
      try {
        const result = probe.prepare('pragma quick_check(1)').get();
        if (result === undefined || Object.values(result)[0] !== 'ok')
          throw new StoreError('corrupt', `${path} is damaged: restore it from a backup; nothing was changed`);
      } finally {
        probe.close();
      }
    }
    writer = openConnection(path, false);
    if (!present) writer.exec(`pragma application_id = ${applicationId}`);
    const reader = openConnection(path, true);
    const opened = writer;
    return {
      writer: dialectOver(writer),
      reader: dialectOver(reader),
      another: () => new ReadingConnection(path, lockWaitMs),
      fresh: !present,
      saveTo: async (to) => {
        await backup(reader, to, { rate: 64 });
      },
      checkpoint: () => {
        opened.exec(`pragma busy_timeout = ${lockWaitMs}`);
        const row = opened.prepare('pragma wal_checkpoint(truncate)').get();
        opened.exec('pragma busy_timeout = 0');
        if (row?.busy !== 0) throw logInUse();
      },
      syncNoMore: () => pragma(opened, 'synchronous', 'normal', 1),
      waitNoMore: () => {
        opened.exec('pragma busy_timeout = 0');
      },
      copyByItself: () => {
        opened.exec('pragma wal_autocheckpoint = 1000');
      },
    };
  } catch (error) {
    writer?.close();
    if (error instanceof StoreError) throw error;
    const code = primaryCode(error);
    if (code === resultCodes.corrupt || code === resultCodes.notadb)
      throw new StoreError('corrupt', `${path} is damaged: restore it from a backup; nothing was changed`, {
        cause: error,
      });
    if (code === resultCodes.ioerr) throw new StoreError('io', `${path} cannot be read or written`, { cause: error });
    if (code === resultCodes.full)
      throw new StoreError('open', `there is no room on the disk for ${path}: free some`, { cause: error });
    throw new StoreError(
      'open',
      `${path} cannot be opened: ${whyNotWritable(path) ?? (error instanceof Error ? error.message : 'unknown reason')}`,
      {
        cause: error,
      },
    );
  }
};
