// Whether the file of the embedded database can be opened by this version, without changing anything: no lock, no write-ahead log, no side
// files. What is in a write-ahead log that was not merged yet is not read, so that a database in use is checked only in part.

import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { foreignSchema } from '../migrate.ts';

export interface DatabaseInspection {
  /** `partly`: it is in use, or was not closed. */
  readonly state: 'good' | 'partly' | 'empty' | 'damaged' | 'newer' | 'unreleased';
  readonly evidence: string;
  /** Of a schema that this version cannot use. */
  readonly fix?: string;
}

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

export const inspectDatabase = (path: string): DatabaseInspection => {
  const { size } = statSync(path);
  if (size === 0) return { state: 'empty', evidence: `${path} is empty` };
  const header = readHeader(path);
  if (header.length < 100 || header.subarray(0, 16).toString('latin1') !== magic)
    return { state: 'damaged', evidence: `${path} is not a database of SQLite` };
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (log > 0)
    return { state: 'partly', evidence: `${path} is in use or was not closed: its write-ahead log has ${log} bytes` };
  const page = header.readUInt16BE(16);
  const whole = header.readUInt32BE(28) * (page === 1 ? 65_536 : page);
  if (size < whole) return { state: 'damaged', evidence: `${path} is cut off: it has ${size} of ${whole} bytes` };
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(`file:${encodeURI(path)}?immutable=1`, { readOnly: true });
    const applied = database.prepare('select name from kysely_migration order by name').all() as {
      readonly name: string;
    }[];
    const foreign = foreignSchema(applied.map(({ name }) => name));
    if (foreign !== undefined) return { state: foreign.code, evidence: `${path} ${foreign.why}`, fix: foreign.fix };
    if (size <= mostChecked) {
      const [found] = database.prepare('pragma quick_check(1)').all() as { readonly quick_check: string }[];
      if (found?.quick_check !== 'ok')
        return { state: 'damaged', evidence: `${path} is damaged: ${found?.quick_check}` };
    }
    return { state: 'good', evidence: `${path}, schema ${applied.at(-1)?.name ?? 'none'}` };
  } catch (error) {
    return {
      state: 'damaged',
      evidence: `${path} cannot be read: ${error instanceof Error ? error.message : 'unknown'}`,
    };
  } finally {
    database?.close();
  }
};
