// Where a database looks for its PKCS#11 library, and what it asks of that place.
//
//   hsm      <base>/hsm/dke/1.0: Oracle's directory of hardware modules. Exactly one library may
//            lie under hsm; directory and library belong to the database's OS user and group, mode
//            775.
//   pkcs11   <base>/pkcs11/dke/1.0: for PKCS11_LIBRARY_LOCATION. Everything belongs to root and
//            only root writes; no symbolic link on the way; at most 255 characters (ORA-46707
//            otherwise).
//
// What the installer itself must remember (which build, the previous files) is outside both, in
// <base>/dke-provider/<layout>: a second library under hsm would stop the database from loading the
// first.
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { codeOf, InstallError } from './error.ts';

export const defaultBase = '/opt/oracle/extapi/64';
export const defaultLogDirectory = '/var/log/dke-pkcs11';
export const libraryName = 'libdke_pkcs11.so';

export type LayoutName = 'hsm' | 'pkcs11';

export interface Layout {
  readonly name: LayoutName;
  readonly base: string;
  /** The tree that the database searches. */
  readonly tree: string;
  /** The directory of this version: library, dke-agent, agent/<build>. */
  readonly folder: string;
  readonly library: string;
  readonly agentScript: string;
  /** Names the build under agent/ that dke-agent starts. */
  readonly agentName: string;
  /** What the installer remembers. */
  readonly state: string;
  /** The mode of directories, of the library and of dke-agent. */
  readonly mode: number;
  readonly rootOnly: boolean;
}

const maxPath = 255;

export const layoutOf = (name: LayoutName, base: string): Layout => {
  const tree = join(base, name);
  const folder = join(tree, 'dke', '1.0');
  const library = join(folder, libraryName);
  if (name === 'pkcs11' && library.length > maxPath)
    throw new InstallError('config', `${library} has more than ${maxPath} characters`, 'choose a shorter --base');
  return {
    name,
    base,
    tree,
    folder,
    library,
    agentScript: join(folder, 'dke-agent'),
    agentName: join(folder, 'agent', 'current'),
    state: join(base, 'dke-provider', name),
    mode: name === 'hsm' ? 0o775 : 0o755,
    rootOnly: name === 'pkcs11',
  };
};

export const octal = (mode: number): string => (mode & 0o7777).toString(8);

/**
 * Libraries under the tree that are not ours, the version-less names and links included. Our
 * agent's folder contains none.
 */
export const otherLibraries = ({ tree, folder, library }: Layout): string[] => {
  const search = (directory: string): string[] => {
    if (directory === join(folder, 'agent')) return [];
    let entries: string[];
    try {
      entries = readdirSync(directory);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw new InstallError(
        'permission',
        `${directory} cannot be searched for other libraries (${codeOf(error)})`,
        'run this as root or as the OS user of the database',
      );
    }
    return entries.flatMap((name) => {
      const path = join(directory, name);
      if (lstatSync(path).isDirectory()) return search(path);
      return /\.so(\.[\d.]+)?$/.test(path) && path !== library ? [path] : [];
    });
  };
  return search(tree).sort();
};

/**
 * What is wrong with owner, mode and kind of the way from the tree down to the library; one line
 * each.
 */
export const placeFaults = (layout: Layout, owner: { readonly uid: number; readonly gid: number }): string[] => {
  const faults: string[] = [];
  const inside = relative(layout.base, layout.folder).split('/');
  const down = inside.map((_, at) => join(layout.base, ...inside.slice(0, at + 1)));
  const upTo = layout.base.split('/').map((_, at, parts) => parts.slice(0, at + 1).join('/') || '/');
  const look = (path: string, kind: 'directory' | 'file', exactMode: number | null): void => {
    const state = lstatSync(path, { throwIfNoEntry: false });
    if (state === undefined) return void faults.push(`${path} is missing`);
    if (state.isSymbolicLink()) return void faults.push(`${path} is a symbolic link`);
    if (kind === 'directory' ? !state.isDirectory() : !state.isFile())
      return void faults.push(`${path} is not a ${kind}`);
    if (exactMode === null) return;
    if (state.uid !== owner.uid || state.gid !== owner.gid)
      faults.push(`${path} belongs to ${state.uid}:${state.gid} instead of ${owner.uid}:${owner.gid}`);
    if ((state.mode & 0o7777) !== exactMode)
      faults.push(`${path} has mode ${octal(state.mode)} instead of ${octal(exactMode)}`);
  };
  if (layout.rootOnly) {
    for (const path of [...upTo, ...down]) {
      const state = lstatSync(path, { throwIfNoEntry: false });
      if (state === undefined) faults.push(`${path} is missing`);
      else if (state.isSymbolicLink()) faults.push(`${path} is a symbolic link`);
      else if (state.uid !== 0 || ((state.mode & 0o022) !== 0 && (state.mode & 0o1000) === 0))
        faults.push(`${path} can be changed by users other than root (uid ${state.uid}, mode ${octal(state.mode)})`);
    }
  } else look(layout.folder, 'directory', layout.mode);
  if (existsSync(layout.folder)) {
    look(layout.library, 'file', layout.mode);
    look(layout.agentScript, 'file', layout.mode);
  }
  return faults;
};
