// Tablespaces, tables, rows and redo of an instance.
import { mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DataFile } from './control-file.ts';
import type { Core, Session } from './core.ts';
import { currentKeyOf, under } from './current-key.ts';
import { OraError } from './ora-error.ts';
import { encryptionWallet, libraryPaths } from './parameters.ts';
import type { Answer, DatabaseProcess } from './process.ts';
import type { Statement } from './statements.ts';
import { encryptedColumns, keyRows, type Row } from './views.ts';

const mustBeOpen = (core: Core): void => {
  if (core.state !== 'open') throw new OraError('ORA-01109');
  if (core.control.role === 'standby') throw new OraError('ORA-16000');
};

export const createFile = async (
  core: Core,
  session: Session,
  name: string,
  file: string,
  kind: DataFile['kind'],
  encrypted: boolean,
): Promise<readonly Row[]> => {
  mustBeOpen(core);
  const container = core.container(session);
  const number = core.control.nextNumber++;
  if (encrypted) await core.attach(session.process);
  mkdirSync(dirname(core.path(file)), { recursive: true });
  await core.do(session.process, 'create-file', {
    path: core.path(file),
    file: number,
    redo: core.redo(),
    bytes: encrypted ? core.profile.keyBytes[kind].value : 0,
    ...(encrypted ? under(core, kind, currentKeyOf(core, container, kind)) : {}),
  });
  core.control.files.push({ number, container: container.id, name, file, kind, encrypted, readOnly: false });
  core.save();
  return [];
};

export const createTable = async (
  core: Core,
  statement: Statement & { kind: 'create-table' },
  session: Session,
): Promise<readonly Row[]> => {
  const { name, tablespace, encrypted } = statement;
  const place = core.control.files.find((each) => each.name === tablespace && each.container === session.container);
  if (place === undefined) throw new OraError('ORA-00959', tablespace);
  let file = place.number;
  if (encrypted) {
    // A table whose column is encrypted has a key of its own; its segment is a file of its own
    // here.
    const path = join(dirname(place.file), `${basename(place.file, '.dbf')}_${name.toLowerCase()}.dbf`);
    await createFile(core, session, name, path, 'column', true);
    file = core.control.nextNumber - 1;
  }
  core.control.tables.push({ container: session.container, name, file });
  core.save();
  return [];
};

export const alterTablespace = async (
  core: Core,
  statement: Statement & { kind: 'alter-tablespace' },
  session: Session,
): Promise<readonly Row[]> => {
  mustBeOpen(core);
  const file = core.control.files.find((each) => each.name === statement.name && each.container === session.container);
  if (file === undefined) throw new OraError('ORA-00959', statement.name);
  if (statement.action === 'read-only' || statement.action === 'read-write') {
    file.readOnly = statement.action === 'read-only';
    core.save();
    return [];
  }
  if (core.profile.releases[core.release]?.onlineEncryption.value !== true)
    throw new OraError('ORA-00922', 'ENCRYPTION ONLINE');
  if (file.readOnly) throw new OraError('ORA-00372', file.file);
  await core.attach(session.process);
  const encrypted = statement.action !== 'decrypt';
  await core.do(session.process, 'rekey', {
    path: core.path(file.file),
    file: file.number,
    redo: core.redo(),
    bytes: encrypted ? core.profile.keyBytes[file.kind].value : 0,
    ...under(core, file.kind, currentKeyOf(core, core.container(session), file.kind)),
  });
  file.encrypted = encrypted;
  core.save();
  return [];
};

const fileOf = (core: Core, table: string, session: Session): DataFile => {
  const found = core.control.tables.find((each) => each.name === table && each.container === session.container);
  const file = core.control.files.find(({ number }) => number === found?.file);
  if (file === undefined) throw new OraError('ORA-00942', table);
  if (file.encrypted && !core.openIn.has(session.container)) throw new OraError('ORA-28365');
  return file;
};

/**
 * A row; a lazy one has its redo on the disk and its block in memory only, so that a crash takes
 * the block.
 */
export const insert = async (
  core: Core,
  table: string,
  text: string,
  { session = core.session, lazy = false }: { readonly session?: Session | undefined; readonly lazy?: boolean } = {},
): Promise<void> => {
  mustBeOpen(core);
  if (session === undefined) throw new OraError('ORA-01034');
  const file = fileOf(core, table, session);
  if (file.readOnly) throw new OraError('ORA-00372', file.file);
  if (file.encrypted) await core.attach(session.process);
  const given = { path: core.path(file.file), file: file.number, redo: core.redo(), text, lazy };
  await core.do(session.process, 'insert', given);
  core.lazy ||= lazy;
};

export const selectRows = async (
  core: Core,
  from: string,
  count: boolean,
  session: Session,
): Promise<readonly Row[]> => {
  if (from === 'V$ENCRYPTION_WALLET') return await encryptionWallet(core, session);
  if (from === 'V$PKCS11_PATH' && core.of.libraryLocation.value) return libraryPaths(core);
  // The view came with ADMINISTER KEY MANAGEMENT.
  if (from === 'V$ENCRYPTION_KEYS' && core.profile.statements.value === 'administer') return keyRows(core.control.keys);
  if (core.state !== 'open') throw new OraError('ORA-01109');
  if (from === 'DBA_ENCRYPTED_COLUMNS') return encryptedColumns(core.control, session.container);
  const file = fileOf(core, from, session);
  if (file.encrypted) await core.attach(session.process);
  const { rows } = await core.do(session.process, 'select', { path: core.path(file.file) });
  return count ? [{ 'COUNT(*)': rows.length }] : rows.map((row) => ({ C: row }));
};

/** Unwraps the key of a table's file as a process does that has nothing cached. */
export const unwrapKey = async (core: Core, by: DatabaseProcess, table: string): Promise<Answer> => {
  const file = fileOf(core, table, { container: 1, process: by });
  await core.attach(by);
  return await by.step('unwrap', { path: core.path(file.file) });
};

/** Which master key the header of a table's file names. */
export const headerOf = async (core: Core, table: string, container = 1): Promise<string> => {
  const session: Session = { container, process: core.process('fg0') };
  const found = core.control.tables.find((each) => each.name === table && each.container === session.container);
  const file = core.control.files.find(({ number }) => number === found?.file);
  return (await core.do(session.process, 'describe', { path: core.path(file?.file ?? '') })).id ?? '';
};
