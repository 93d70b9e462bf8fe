// Files that are there whole or not at all: written next to their place under a name of their own,
// synced, renamed, and the directory synced. A link at that place is replaced or refused, never
// followed.
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { codeOf, InstallError } from './error.ts';
import { type Owner, ownerOfNumbers } from './owner.ts';

/** Leftovers of a run that was cut off begin with this. */
export const temporaryPrefix = '.dke-new-';
const temporaryName = (): string => `${temporaryPrefix}${randomBytes(6).toString('hex')}`;

export const syncFolder = (folder: string): void => {
  const file = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/**
 * A regular file, not above a size: never a link, and never what makes a reader wait, which the
 * owner of the folder could put there.
 */
export const readRegular = (path: string, mostBytes: number): Buffer => {
  const foreign = (): InstallError =>
    new InstallError('refused', `${path} is not a file that the installer wrote`, 'move it elsewhere');
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw codeOf(error) === 'ELOOP' ? foreign() : error;
  }
  try {
    const state = fstatSync(file);
    if (!state.isFile() || state.size > mostBytes) throw foreign();
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
};

/** The largest program is Node. */
export const mostProgramBytes = 512 * 1024 * 1024;

/** A new file; it must not exist. */
export const writeNew = (path: string, content: Buffer, mode: number): void => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
    // After the content: half a program is never run.
    fchmodSync(file, mode);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/** Puts a file in its place at one stroke, whatever lay there. */
export const replaceFile = (path: string, content: Buffer, mode: number): void => {
  const temporary = join(dirname(path), temporaryName());
  try {
    writeNew(temporary, content, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
};

/** A directory made whole by `fill` and then named. */
export const makeFolderWhole = (path: string, mode: number, fill: (folder: string) => void): void => {
  const temporary = join(dirname(path), temporaryName());
  mkdirSync(temporary, { mode: 0o700 });
  try {
    fill(temporary);
    setMode(temporary, mode);
    syncFolder(temporary);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  syncFolder(dirname(path));
};

export const removeLeftovers = (folder: string): void => {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  for (const name of names)
    if (name.startsWith(temporaryPrefix)) rmSync(join(folder, name), { recursive: true, force: true });
};

export const isRoot = (): boolean => process.geteuid?.() === 0;

/** Most links on the way of a path, as in the kernel: more of them are a circle. */
const mostLinks = 40;

/**
 * Where a path leads while root acts on it. The owner of a folder on the way could put a link
 * there, which would let root change another folder of that name: only links of root are followed,
 * step by step, so that a link of root leads through no link of others either.
 */
export const wayOf = (path: string): string => {
  const namesOf = (text: string): string[] => text.split('/').filter((each) => each !== '' && each !== '.');
  const left = namesOf(resolve(path));
  let real = '/';
  let links = 0;
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    if (name === '..') {
      real = dirname(real);
      continue;
    }
    const next = join(real, name);
    const state = lstatSync(next, { throwIfNoEntry: false });
    if (state?.isSymbolicLink() !== true) {
      real = next;
      continue;
    }
    if (isRoot() && state.uid !== 0)
      throw new InstallError(
        'refused',
        `${next} is a symbolic link that does not belong to root`,
        'name the folder that it leads to, or let root make the link',
      );
    links += 1;
    if (links > mostLinks) throw new InstallError('refused', `${path} leads through too many links`, 'remove some');
    const to = readlinkSync(next);
    if (isAbsolute(to)) real = '/';
    left.unshift(...namesOf(to));
  }
  return real;
};

const withFolder = (path: string, run: (file: number) => void): void => {
  const way = isRoot() ? wayOf(path) : undefined;
  const file = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    // What is open stays what it is; a link that came after the check would have led elsewhere.
    if (way !== undefined && readlinkSync(`/proc/self/fd/${file}`) !== way)
      throw new InstallError('refused', `${path} was moved meanwhile`, 'run the command again');
    run(file);
  } finally {
    closeSync(file);
  }
};

/**
 * Acts inside a folder that another user may move: `at` names an entry of the folder that is open,
 * wherever its path leads meanwhile.
 */
export const inFolder = (path: string, run: (at: (name: string) => string, owner: Owner) => void): void =>
  withFolder(path, (file) => {
    const { uid, gid } = fstatSync(file);
    run((name) => `/proc/self/fd/${file}/${name}`, ownerOfNumbers(uid, gid));
  });
export const setMode = (folder: string, mode: number): void => withFolder(folder, (file) => fchmodSync(file, mode));
export const setOwner = (folder: string, owner: Owner, mode: number): void =>
  withFolder(folder, (file) => {
    fchownSync(file, owner.uid, owner.gid);
    fchmodSync(file, mode);
  });

/**
 * Makes a directory and those above it that are missing, which are left as they are when they
 * exist. Answers those made.
 */
export const makeFolders = (path: string, mode: number, owner: Owner | undefined): string[] => {
  wayOf(path);
  const state = lstatSync(path, { throwIfNoEntry: false });
  if (state !== undefined) {
    if (state.isDirectory()) return [];
    throw new InstallError('refused', `${path} already exists and is not a directory`, 'move it elsewhere');
  }
  const upper = dirname(path);
  const made = lstatSync(upper, { throwIfNoEntry: false }) === undefined ? makeFolders(upper, 0o755, undefined) : [];
  mkdirSync(path, { mode: 0o700 });
  // Through one descriptor: another user who can write above it may have put a link there
  // meanwhile.
  if (owner !== undefined && isRoot()) setOwner(path, owner, mode);
  else setMode(path, mode);
  syncFolder(upper);
  return [...made, path];
};

/** Removes a folder that is empty, and whose removal this user may decide. */
export const removeEmpty = (path: string): void => {
  try {
    rmdirSync(wayOf(path));
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'EACCES', 'EPERM'].includes(codeOf(error) ?? '')) throw error;
  }
};
