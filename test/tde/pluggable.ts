// Pluggable databases: created, cloned, unplugged and plugged in.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Container } from './control-file.ts';
import type { Core, Session } from './core.ts';
import { OraError } from './ora-error.ts';
import { type Archive, readArchive, writeArchive } from './pdb-file.ts';
import type { Statement } from './statements.ts';
import type { Row } from './views.ts';

const newContainer = (core: Core, name: string, keys: Container['keys']): Container => {
  const id = Math.max(2, ...core.control.containers.map((each) => each.id)) + 1;
  const made: Container = { id, name, open: false, keys };
  core.control.containers.push(made);
  return made;
};

const describePdb = (core: Core, name: string): Archive => {
  const container = core.containerNamed(name);
  return {
    keys: container.keys,
    files: core.control.files
      .filter((file) => file.container === container.id)
      .map((file) => ({
        ...file,
        table: core.control.tables.filter((table) => table.file === file.number).map((table) => table.name),
        bytes: readFileSync(core.path(file.file)),
      })),
  };
};

export const createPdb = async (
  core: Core,
  statement: Statement & { kind: 'create-pdb' },
  session: Session,
): Promise<readonly Row[]> => {
  if (!core.control.cdb) throw new OraError('ORA-65090');
  if (session.container !== 1) throw new OraError('ORA-65040');
  const { name, from, using, convert, password } = statement;
  if (from === null && using === null) {
    newContainer(core, name, {});
    core.save();
    return [];
  }
  const source = from === null ? readArchive(core.path(using ?? '')) : describePdb(core, from);
  const encrypted = source.files.some((file) => file.encrypted);
  if (encrypted && password === null) throw new OraError('ORA-46697');
  if (encrypted && Object.keys(core.control.containers[0]?.keys ?? {}).length === 0)
    throw new OraError('ORA-28361', 'CDB$ROOT');
  const container = newContainer(core, name, source.keys);
  for (const file of source.files) {
    const path = file.file.replace(convert[0], convert[1]);
    mkdirSync(dirname(core.path(path)), { recursive: true });
    writeFileSync(core.path(path), file.bytes, { mode: 0o600, flag: 'wx' });
    const { bytes: _bytes, table, ...kept } = file;
    const number = core.control.nextNumber++;
    core.control.files.push({ ...kept, number, container: container.id, file: path });
    for (const each of table) core.control.tables.push({ container: container.id, name: each, file: number });
  }
  core.save();
  return [];
};

export const unplug = (core: Core, statement: Statement & { kind: 'unplug-pdb' }): readonly Row[] => {
  const container = core.containerNamed(statement.name);
  if (container.open) throw new OraError('ORA-01081', `${statement.name} is open`);
  writeArchive(core.path(statement.file), describePdb(core, statement.name));
  return [];
};
