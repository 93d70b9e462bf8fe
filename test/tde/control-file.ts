// The control file of a simulated database: its parts, and the current master key of each
// container. It contains ids and names, no key. After every step of a statement that changes it, it
// is written completely, synced and renamed.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';

export type KeystoreKind = 'H' | 'F';
export type Purpose = 'all' | 'column' | 'tablespace';

export interface Container {
  readonly id: number;
  readonly name: string;
  open: boolean;
  /** The current master key for each purpose, and the keystore that has it. */
  keys: Partial<Record<Purpose, { readonly id: string; readonly keystore: KeystoreKind }>>;
}
export interface DataFile {
  readonly number: number;
  readonly container: number;
  /** The name of the tablespace, or of the table whose column is encrypted. */
  readonly name: string;
  /** Relative to the database's directory. */
  readonly file: string;
  readonly kind: 'tablespace' | 'column';
  encrypted: boolean;
  readOnly: boolean;
}
export interface Table {
  readonly container: number;
  readonly name: string;
  readonly file: number;
}
export interface MasterKey {
  readonly id: string;
  readonly container: number;
  readonly keystore: KeystoreKind;
  readonly createdAt: string;
  activatedAt: string | null;
}
export interface ControlFile {
  readonly name: string;
  readonly cdb: boolean;
  role: 'primary' | 'standby';
  /** False while it is open, or after it died. */
  clean: boolean;
  nextNumber: number;
  containers: Container[];
  files: DataFile[];
  tables: Table[];
  keys: MasterKey[];
  redo: { current: number; checkpoint: number };
  parameters: Record<string, string>;
}

export const newControlFile = (name: string, cdb: boolean): ControlFile => ({
  name,
  cdb,
  role: 'primary',
  clean: true,
  nextNumber: 1,
  containers: [{ id: 1, name: cdb ? 'CDB$ROOT' : name, open: true, keys: {} }],
  files: [],
  tables: [],
  keys: [],
  redo: { current: 1, checkpoint: 1 },
  parameters: {},
});

export const readControlFile = (path: string): ControlFile | undefined =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as ControlFile) : undefined;

export const writeControlFile = (path: string, control: ControlFile): void => {
  const fd = openSync(`${path}.new`, 'w', 0o600);
  writeSync(fd, `${JSON.stringify(control, null, 1)}\n`);
  fsyncSync(fd);
  closeSync(fd);
  renameSync(`${path}.new`, path);
};
