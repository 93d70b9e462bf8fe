// Where a database finds its PKCS#11 library: the one library under hsm/ of the shared base
// directory, or, in newer releases, the path in PKCS11_LIBRARY_LOCATION with its rules. The base
// directory is given, because tests cannot write to /opt/oracle.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { OraError } from './ora-error.ts';

const modeOf = (path: string): number => lstatSync(path).mode & 0o777;

/** Every shared library below hsm/. */
export const librariesUnder = (base: string): readonly string[] => {
  const folder = join(base, 'hsm');
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(^|\/)lib[^/]*\.so$/.test(name))
    .map((name) => join(folder, name));
};

/**
 * What is wrong with a value of PKCS11_LIBRARY_LOCATION; empty when nothing is. `owner` is root
 * where the database runs.
 */
export const checkLibraryLocation = (path: string, base: string, owner: number): readonly string[] => {
  const wrong: string[] = [];
  const start = join(base, 'pkcs11/');
  if (!path.startsWith(start)) wrong.push(`does not begin with ${start}`);
  if (path.length > 255) wrong.push('is longer than 255 characters');
  if (!existsSync(path)) return [...wrong, 'is not there'];
  for (let at = path; at.startsWith(base) && at !== base; at = dirname(at)) {
    const status = lstatSync(at);
    if (status.isSymbolicLink()) wrong.push(`${at} is a symbolic link`);
    else if (status.isDirectory() && status.uid !== owner) wrong.push(`${at} is not its owner's`);
    else if (status.isDirectory() && (modeOf(at) & 0o022) !== 0) wrong.push(`${at} may be written by others`);
  }
  return wrong;
};

/** The library that a database of this base directory loads. */
export const findLibrary = (base: string, location: string | null, owner: number): string => {
  if (location !== null) {
    const [wrong] = checkLibraryLocation(location, base, owner);
    if (wrong !== undefined) throw new OraError('ORA-46707', wrong);
    return location;
  }
  const [first, second] = librariesUnder(base);
  if (first === undefined) throw new OraError('ORA-28376', `no library under ${join(base, 'hsm')}`);
  if (second !== undefined) throw new OraError('ORA-28376', `more than one library under ${join(base, 'hsm')}`);
  return first;
};

/** Lays a file in its place, as a new file: processes that map the old one keep it. */
export const placeFile = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true, mode: 0o775 });
  copyFileSync(from, `${to}.new`);
  renameSync(`${to}.new`, to);
};

/**
 * Lays a program next to a library that runs the agent of this checkout. A copy of dke-agent would
 * look for the agent next to itself.
 */
export const placeAgent = (built: string, library: string): void => {
  const path = join(dirname(library), 'dke-agent');
  writeFileSync(path, `#!/bin/sh\nexec '${join(dirname(built), 'dke-agent')}' "$@"\n`);
  chmodSync(path, 0o755);
};
