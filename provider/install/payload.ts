// What is installed, gathered from where this program is: a package, or the project as it was
// built. The library, the script that starts the agent, and the agent's program: Node, the addon,
// and exactly the compiled files and packages that it imports.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { InstallError } from './error.ts';
import { libraryName } from './layout.ts';

export interface PayloadFile {
  /** Below agent/<build>. */
  readonly path: string;
  readonly mode: number;
  readonly content: Buffer;
}

export interface Payload {
  readonly version: string;
  /** Names the content: the same files have the same build. */
  readonly build: string;
  readonly library: Buffer;
  readonly agentScript: Buffer;
  readonly agent: readonly PayloadFile[];
}

/** What no program needs at run time: types, maps, and the tests and pages of packages. */
const isIdle = (name: string): boolean =>
  /(^\.|\.(map|[cm]?ts|md|markdown|flow|html|sh)$)/i.test(name) && !isLicence(name);
export const isLicence = (name: string): boolean => /^(licen[cs]e|copying|notice)/i.test(name);
const idleFolders = new Set([
  'node_modules',
  'test',
  'tests',
  '__tests__',
  'docs',
  'benchmark',
  'benchmarks',
  'example',
  'examples',
  '.github',
]);

const literal = /['"](\.{1,2}\/[^'"\n]+\.js)['"]/g;
/**
 * Statements at the start of a line, and import(): other text may have the same words, such as
 * SQL's "is distinct from 'x'".
 */
const imported = /(?:^(?:import|export)\s[^'";]*\bfrom\s*|^import\s*|\bimport\s*\(\s*)['"]([@a-z][^'"\n]*)['"]/gm;
const packageName = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');

export interface Closure {
  /** Compiled files, relative to the root. */
  readonly code: readonly string[];
  /** Folders of packages, relative to the root. */
  readonly packages: readonly string[];
}

interface PackageManifest {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
export const readPackage = (folder: string): PackageManifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageManifest;

/** Where Node would find a package that is imported by a file in `from`. */
const findPackage = (root: string, from: string, name: string): string | undefined => {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name);
    if (existsSync(join(candidate, 'package.json'))) return candidate;
    if (folder === root || folder === dirname(folder)) return undefined;
  }
};

/** Collects packages with all that they depend on. */
const collectPackages = (root: string) => {
  const packages = new Set<string>();
  const add = (from: string, name: string, optional = false): void => {
    const folder = findPackage(root, from, name);
    if (folder === undefined) {
      if (optional) return;
      throw new InstallError('config', `the package ${name} is not installed`, 'run npm ci');
    }
    const path = relative(root, folder);
    if (packages.has(path)) return;
    packages.add(path);
    const { dependencies = {}, optionalDependencies = {} } = readPackage(folder);
    for (const each of Object.keys(dependencies)) add(folder, each, Object.hasOwn(optionalDependencies, each));
    for (const each of Object.keys(optionalDependencies)) add(folder, each, true);
  };
  const addImports = (path: string, text: string): void => {
    for (const [, specifier = ''] of text.matchAll(imported))
      if (!specifier.startsWith('node:')) add(join(root, dirname(path)), packageName(specifier));
  };
  return { addImports, sorted: () => [...packages].sort() };
};

/** Everything that these compiled files (relative to the root) lead to. */
export const closureOf = (root: string, entries: readonly string[]): Closure => {
  const code = new Set<string>();
  const packages = collectPackages(root);
  const addCode = (path: string): void => {
    if (code.has(path)) return;
    code.add(path);
    const text = readFileSync(join(root, path), 'utf8');
    // Workers are named by a text too, so any text that names a file next to this one counts.
    for (const [, target = ''] of text.matchAll(literal)) {
      const found = join(dirname(path), target);
      if (existsSync(join(root, found))) addCode(found);
    }
    packages.addImports(path, text);
  };
  for (const entry of entries) addCode(entry);
  return { code: [...code].sort(), packages: packages.sorted() };
};

/**
 * Packages that source files (relative to the root) import, such as those that a bundler puts into
 * pages.
 */
export const packagesOfSources = (root: string, sources: readonly string[]): readonly string[] => {
  const packages = collectPackages(root);
  for (const path of sources)
    packages.addImports(path, readFileSync(join(root, path), 'utf8').replaceAll('@import', 'import'));
  return packages.sorted();
};

/** Files of a package that matter at run time, and its licences, relative to the root. */
export const filesOfPackage = (root: string, folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory())
        return entry.name.startsWith('.') || idleFolders.has(entry.name) ? [] : filesOfPackage(root, path);
      return entry.isFile() && !isIdle(entry.name) ? [path] : [];
    })
    .sort();

/** The folder that contains package.json and dist: the project, or what a package installed. */
export const programRoot = (from = import.meta.dirname): string => {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'dist'))) return folder;
    if (folder === dirname(folder))
      throw new InstallError('config', 'the compiled program is not next to this command', 'run npm run build:code');
  }
};

const firstThere = (what: string, ...paths: readonly string[]): string => {
  const path = paths.find((each) => existsSync(each));
  if (path === undefined)
    throw new InstallError(
      'config',
      `${what} is not next to this command`,
      'install the package dke-provider, or run npm run build',
    );
  return path;
};

const addonOf = (root: string): string =>
  firstThere('the core addon', join(root, 'dke_core.node'), join(root, 'build/Release/dke_core.node'));
const libraryPaths = (root: string): readonly string[] =>
  ['1.0', 'build/provider/1.0'].map((folder) => join(root, folder, libraryName));
/** The folder with the library, dke-agent and dke-probe, as they were built. */
export const libraryFolderOf = (root: string): string => dirname(firstThere(libraryName, ...libraryPaths(root)));
/**
 * The folder of the provider: the one of this program or, when this is the `dke` of the service on
 * the same host, the one of the package dke-provider.
 */
export const providerRoot = (own = programRoot(), packaged = '/usr/lib/dke-provider'): string =>
  libraryPaths(own).some((path) => existsSync(path)) || !libraryPaths(packaged).some((path) => existsSync(path))
    ? own
    : packaged;

/**
 * The script without the place of the project that built it: an installed agent runs only what is
 * next to it.
 */
export const installedScript = (text: string): string => text.replace(/^project=.*$/m, "project=''");

export const agentEntries = [
  'dist/provider/agent/threads/main.js',
  'dist/provider/agent/threads/socket-thread.js',
] as const;

/** Reads it all. Throws InstallError when something is not built or not installed. */
export const gatherPayload = (root = providerRoot()): Payload => {
  if (!agentEntries.every((path) => existsSync(join(root, path))))
    throw new InstallError('config', 'the agent is not compiled', 'run npm run build:code');
  const folder = libraryFolderOf(root);
  const library = readFileSync(join(folder, libraryName));
  const agentScript = Buffer.from(installedScript(readFileSync(join(folder, 'dke-agent'), 'utf8')));
  const { version = '0.0.0' } = readPackage(root);
  const { code, packages } = closureOf(root, agentEntries);
  const file = (path: string, from: string, mode = 0o644): PayloadFile => ({ path, mode, content: readFileSync(from) });
  const plain = [...code, ...packages.flatMap((each) => filesOfPackage(root, each))];
  const agent = [
    file(
      'bin/node',
      existsSync(join(root, 'bin/node')) ? join(root, 'bin/node') : realpathSync(process.execPath),
      0o755,
    ),
    file('dke-probe', join(folder, 'dke-probe'), 0o755),
    file('dke_core.node', addonOf(root)),
    {
      path: 'package.json',
      mode: 0o644,
      content: Buffer.from(`${JSON.stringify({ name: 'dke-agent', version, type: 'module', private: true })}\n`),
    },
    ...plain.map((path) => file(path, join(root, path))),
  ];
  return { version, build: buildOf({ library, agentScript, agent }), library, agentScript, agent };
};

export const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

export const buildOf = ({
  library,
  agentScript,
  agent,
}: Pick<Payload, 'library' | 'agentScript' | 'agent'>): string => {
  const lines = [`${sha256(library)} library`, `${sha256(agentScript)} script`];
  for (const { path, content } of agent) lines.push(`${sha256(content)} ${path}`);
  return sha256(Buffer.from(lines.sort().join('\n'))).slice(0, 12);
};
