// The source tree as the house tests read it: which files there are, what they import or include,
// and their text without comments. A reader for this project's own style, not a parser of
// TypeScript or C.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** What is not ours or not kept: the folders that .gitignore names, and the repository itself. */
const isForeign = (name: string): boolean =>
  ['node_modules', 'dist', 'coverage', '.git', '.demo', '.libcrypto', 'output', 'dke.toml', 'dke-data'].includes(
    name,
  ) || /^build(-|$)/.test(name);

const walk = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (isForeign(entry.name)) return [];
    return entry.isDirectory() ? walk(path) : [path];
  });

/** Names in the package's folder itself, files and folders. */
export const topLevel = (): string[] => readdirSync(root).filter((name) => !isForeign(name) && !name.endsWith('.log'));

/**
 * Paths relative to the package, with forward slashes, of the files below these folders that end in
 * one of the endings.
 */
export const files = (folders: readonly string[], ...endings: readonly string[]): string[] =>
  folders
    .flatMap((folder) => (topLevel().includes(folder.split('/')[0] ?? '') ? walk(folder) : []))
    .filter((path) => endings.some((ending) => path.endsWith(ending)))
    .sort();

export const read = (path: string): string => readFileSync(join(root, path), 'utf8');

export interface Import {
  /** A path relative to the package, or the name of a package. */
  readonly target: string;
  readonly ours: boolean;
  readonly typeOnly: boolean;
}

const importStatement =
  /^(?:import|export)\s+(?:(?<type>type)\s+)?(?:(?<names>[^'";]*?)\s+from\s+)?['"](?<source>[^'"]+)['"]/gm;
const dynamicImport = /\bimport\(\s*['"](?<source>[^'"]+)['"]\s*\)/g;

const everyNameIsAType = (names: string): boolean => {
  const inside = /^\{(.*)\}$/s.exec(names.trim())?.[1];
  return inside?.split(',').every((name) => name.trim() === '' || /^type\s/.test(name.trim())) ?? false;
};

/** The imports and re-exports of a TypeScript file. */
export const importsOf = (path: string, text = read(path)): Import[] => {
  const resolve = (source: string, typeOnly: boolean): Import =>
    source.startsWith('.')
      ? { target: relative('.', normalize(join(dirname(path), source))), ours: true, typeOnly }
      : { target: source, ours: false, typeOnly };
  return [
    ...[...text.matchAll(importStatement)].map(({ groups }) =>
      resolve(groups?.source ?? '', groups?.type !== undefined || everyNameIsAType(groups?.names ?? '')),
    ),
    ...[...text.matchAll(dynamicImport)].map(({ groups }) => resolve(groups?.source ?? '', false)),
  ];
};

/**
 * The headers that a C or C++ file includes: its own as paths relative to the package, the system's
 * as they are written.
 */
export const includesOf = (path: string, text = read(path)): Import[] =>
  [...text.matchAll(/^\s*#\s*include\s+(?:"(?<own>[^"]+)"|<(?<system>[^>]+)>)/gm)].map(({ groups }) =>
    groups?.own === undefined
      ? { target: groups?.system ?? '', ours: false, typeOnly: false }
      : { target: placeOfHeader(path, groups.own), ours: true, typeOnly: false },
  );

/**
 * Headers of the core and of the library are named by their shelf, others by their place next to
 * the file.
 */
const placeOfHeader = (path: string, name: string): string =>
  [join('addon/core', name), join('provider/module', name), join(dirname(path), name)]
    .map(normalize)
    .find((place) => existsSync(join(root, place))) ?? normalize(join(dirname(path), name));

/** The code of a file in TypeScript, C or C++, line by line: comments are blanked, strings stay. */
export const withoutComments = (text: string): string =>
  text.replace(
    /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (whole, string) => (string === undefined ? whole.replace(/[^\n]/g, ' ') : whole),
  );

/**
 * The first circle that following the edges finds, as the names on it; empty when there is none.
 */
export const findCircle = (edges: ReadonlyMap<string, readonly string[]>): readonly string[] => {
  const done = new Set<string>();
  const visit = (node: string, trail: readonly string[]): readonly string[] => {
    const seen = trail.indexOf(node);
    if (seen >= 0) return [...trail.slice(seen), node];
    if (done.has(node)) return [];
    for (const next of edges.get(node) ?? []) {
      const circle = visit(next, [...trail, node]);
      if (circle.length > 0) return circle;
    }
    done.add(node);
    return [];
  };
  for (const node of edges.keys()) {
    const circle = visit(node, []);
    if (circle.length > 0) return circle;
  }
  return [];
};
