// The requirements of a program or library, read from its file: libraries, versions of symbols.
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';

const pinned = resolve(import.meta.dirname, `../../node_modules/node-linux-${process.arch}/bin/node`);
/** The Node of the packages and the image, whichever one runs the tests. */
export const shippedNode = realpathSync(existsSync(pinned) ? pinned : process.execPath);

export const isElf = (path: string): boolean => {
  const start = Buffer.alloc(4);
  const fd = openSync(path, 'r');
  try {
    return readSync(fd, start) === 4 && start.toString('latin1') === '\x7fELF';
  } finally {
    closeSync(fd);
  }
};

/**
 * The oldest systems that DKE runs on: the newest version of each kind that RHEL 8 and Debian 10
 * both have.
 */
const newestOfOldSystems: Readonly<Record<string, string>> = {
  GLIBC: '2.28',
  GLIBCXX: '3.4.25',
  CXXABI: '1.3.11',
  GCC: '7.0.0',
};

const isNewer = (version: string, than: string): boolean =>
  version.localeCompare(than, 'en', { numeric: true }) > 0 && version !== than;

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });

export const librariesOf = (path: string): readonly string[] =>
  [...run('readelf', '-dW', path).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name = '']) => name);

/** The machine in readelf's words, such as AArch64; empty: it has none. */
export const machineOf = (path: string): string => /^ *Machine: +(.+)$/m.exec(run('readelf', '-hW', path))?.[1] ?? '';

/** The libraries of the C library, its loader included. */
export const ofGlibc = /^(lib(c|pthread|dl|rt|m)\.so\.\d|ld-linux-(x86-64\.so\.2|aarch64\.so\.1))$/;

/** Folders in which the loader looks for libraries before those of the system. */
export const searchFoldersOf = (path: string): readonly string[] =>
  [...run('readelf', '-dW', path).matchAll(/\((?:RPATH|RUNPATH)\).*\[(.+)\]/g)].map(([, name = '']) => name);

/**
 * Symbols that must be there when it is loaded, as nm writes them: name@VERSION, or a name alone
 * when any version will do.
 */
const symbolsWanted = (path: string): readonly string[] =>
  run('nm', '-D', '--undefined-only', path)
    .split('\n')
    .filter((line) => / U /.test(line))
    .map((line) => line.trim().split(' ').at(-1) ?? '');

/**
 * Symbols without a version: those that the linker has not found anywhere. In an addon, those of
 * Node are meant to be.
 */
export const openSymbols = (path: string): readonly string[] =>
  symbolsWanted(path).filter(
    (symbol) => !symbol.includes('@') && !(path.endsWith('.node') && /^(napi_|node_api_|uv_backend_fd$)/.test(symbol)),
  );

const isMissing = (kind: string, version: string): boolean => {
  const newest = newestOfOldSystems[kind];
  return newest === undefined || isNewer(version, newest);
};

/** The versions of symbols in the text, such as GLIBC_2.28, that the oldest systems do not have. */
export const missingVersions = (text: string): readonly string[] =>
  [...text.matchAll(/\b([A-Z]+)_([\d.]+)\b/g)]
    .filter(([, kind = '', version = '']) => isMissing(kind, version))
    .map(([name]) => name);

/** What the oldest systems do not have: symbols, weak ones included, whose version is newer. */
export const missingOnOldSystems = (path: string): readonly string[] =>
  run('nm', '-D', '--undefined-only', path)
    .split('\n')
    .map((line) => line.trim().split(' ').at(-1) ?? '')
    .filter((symbol) => {
      const [, kind = '', version = ''] = /@+([A-Z]+)_(.+)$/.exec(symbol) ?? [];
      return symbol.includes('@') && isMissing(kind, version);
    });
