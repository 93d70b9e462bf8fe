// The bill of materials of a package, as CycloneDX 1.5: packages from npm (those in the console's
// pages included), Node with what is built into it, and the libraries that are linked into our own
// native files. It has no time and no random number, so that the same commit gives the same bytes.
// `npm sbom` is not used: it lists what a build needs, and knows nothing native.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPackage } from '../install/payload.ts';
import { systemLibraries } from './image.ts';
import type { PackageSpec } from './packages.ts';
import { addon, type Build, packagesInside } from './stage.ts';

interface Component {
  readonly type: 'library' | 'application';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version?: string;
  readonly purl?: string;
  readonly description?: string;
  readonly licenses?: readonly unknown[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly components?: readonly Component[];
}

const component = (
  name: string,
  version: string | undefined,
  purl: string,
  more: Partial<Component> = {},
): Component => ({
  type: 'library',
  'bom-ref': purl,
  name,
  ...(version === undefined ? {} : { version }),
  purl,
  ...more,
});

/** An SPDX expression, or the name of a licence that has none. */
const licences = (license: unknown): readonly unknown[] | undefined => {
  if (typeof license !== 'string') return undefined;
  return /^[\w.+()-]+( (AND|OR|WITH) [\w.+()-]+)*$/.test(license)
    ? [{ expression: license }]
    : [{ license: { name: license } }];
};
const withLicence = (license: unknown): Partial<Component> => {
  const found = licences(license);
  return found === undefined ? {} : { licenses: found };
};

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly integrity?: string; readonly dependencies?: Readonly<Record<string, string>> }>
  >;
}
const readLock = ({ root }: Build): Lock => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;

/**
 * Where Node finds a package that another one imports: in its own folder first, then in those above
 * it.
 */
const placeOf = (from: string, name: string, inside: ReadonlySet<string>): string | undefined => {
  const folders = from
    .split('/node_modules/')
    .map((_, index, all) => all.slice(0, all.length - index).join('/node_modules/'));
  return [...folders.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`].find((path) =>
    inside.has(path),
  );
};

/** Who needs whom. What no other package needs is what our own programs import. */
const dependenciesOf = (build: Build, spec: PackageSpec, subject: Component, others: readonly Component[]) => {
  const { packages } = readLock(build);
  const inside = new Set(packagesInside(build, spec));
  const graph = [...inside].map((path) => ({
    ref: path,
    dependsOn: Object.keys(packages[path]?.dependencies ?? {})
      .flatMap((name) => placeOf(path, name, inside) ?? [])
      .sort(),
  }));
  const needed = new Set(graph.flatMap(({ dependsOn }) => dependsOn));
  const direct = [...inside].filter((path) => !needed.has(path));
  const refs = others.map((each) => each['bom-ref']);
  const parts = others.flatMap(({ 'bom-ref': ref, components = [] }) => ({
    ref,
    dependsOn: components.map((each) => each['bom-ref']).sort(),
  }));
  return [{ ref: subject['bom-ref'], dependsOn: [...direct, ...refs].sort() }, ...graph, ...parts];
};

const fromNpm = (build: Build, spec: PackageSpec): readonly Component[] => {
  const lock = readLock(build);
  return packagesInside(build, spec).map((path) => {
    const name = path.replace(/^.*node_modules\//, '');
    const { version = '' } = readPackage(join(build.root, path));
    const { license } = JSON.parse(readFileSync(join(build.root, path, 'package.json'), 'utf8')) as {
      readonly license?: unknown;
    };
    const [, sha512] = /^sha512-(.+)$/.exec(lock.packages[path]?.integrity ?? '') ?? [];
    return component(name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`, {
      // Two versions of a package may be inside, and one version twice.
      'bom-ref': path,
      ...withLicence(license),
      ...(sha512 === undefined
        ? {}
        : { hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }] }),
    });
  });
};

/**
 * What process.versions has beside the parts of Node: itself, numbers of its interfaces, and the
 * releases of the data in ICU. Everything else is a part, also one that a later Node brings; one
 * without a version was left out of the build.
 */
export const notParts: ReadonlySet<string> = new Set(['node', 'modules', 'napi', 'cldr', 'tz', 'unicode']);

/**
 * Node of another machine is of the release that runs here (cross.sh), which is made of the same
 * libraries.
 */
const node = (program: string): Component => {
  const version = process.versions.node;
  const sha256 = createHash('sha256').update(readFileSync(program)).digest('hex');
  const parts = Object.entries(process.versions)
    .filter((entry): entry is [string, string] => (entry[1] ?? '') !== '' && !notParts.has(entry[0]))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, found]) => component(name, found, `pkg:generic/${name}@${found}`, { 'bom-ref': `node/${name}` }));
  return component('node', version, `pkg:generic/node@${version}`, {
    type: 'application',
    licenses: [{ expression: 'MIT' }],
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    components: parts,
  });
};

/** A library of Debian: its version shows which corrections are in it. */
const fromDebian = (
  system: string,
  name: string,
  debianPackage: string,
  license: string,
  description: string,
): Component => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: fields of dpkg-query.
  const format = ['--showformat', '${source:Package} ${source:Version}'];
  const { stdout } = spawnSync(
    'dpkg-query',
    [`--admindir=${join(system, 'var/lib/dpkg')}`, '--show', ...format, debianPackage],
    { encoding: 'utf8' },
  );
  const [source, version] = (stdout ?? '').trim().split(' ');
  const purl =
    version === undefined ? `pkg:generic/${name}` : `pkg:deb/debian/${source}@${encodeURIComponent(version)}`;
  return component(name, version, purl, {
    'bom-ref': `native/${name}`,
    description,
    licenses: [{ expression: license }],
  });
};

/** GCC's own libraries, by the version that the compiler has left in the file. */
const ofCompiler = (file: string): Component => {
  const [, version] = /GCC: \([^)]*\) (\d+\.\d+\.\d+)/.exec(readFileSync(file, 'latin1')) ?? [];
  return component('libstdc++', version, version === undefined ? 'pkg:generic/gcc' : `pkg:generic/gcc@${version}`, {
    'bom-ref': 'native/libstdc++',
    description: 'libstdc++ and libgcc, linked into dke_core.node',
    licenses: [{ expression: 'GPL-3.0-or-later WITH GCC-exception-3.1' }],
  });
};

const native = ({ root, machine, built, node: program, system }: Build, spec: PackageSpec): readonly Component[] => {
  // Where addon/libcrypto/fetch.sh has put it, on systems with an older one.
  const fetched = join(root, '.libcrypto', machine.debian);
  return spec.program === undefined
    ? [fromDebian(system, 'mysqlservices', 'libmariadbd-dev', 'GPL-2.0-only', 'linked into dke_key_management.so')]
    : [
        node(program),
        fromDebian(
          existsSync(fetched) ? fetched : system,
          ...(['libcrypto', 'libssl-dev', 'Apache-2.0', 'linked into dke_core.node'] as const),
        ),
        ofCompiler(join(built, addon)),
        ...(spec.kinds.includes('oci') ? systemLibraries : []).map(({ name, licence }) =>
          fromDebian(system, name, name, licence, 'a library that Node is linked with'),
        ),
      ];
};

/** A UUID that the content gives. */
const serialNumber = (content: string): string => {
  const hex = createHash('sha256').update(content).digest('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

export const billOfMaterials = (build: Build, spec: PackageSpec): string => {
  const { version } = build;
  const subject = component(spec.name, version, `pkg:generic/${spec.name}@${version}`, {
    type: spec.program === undefined ? 'library' : 'application',
    description: spec.summary,
    licenses: [{ expression: spec.licence }],
  });
  const others = native(build, spec);
  const components = [...fromNpm(build, spec), ...others];
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: serialNumber(JSON.stringify([subject, components])),
    version: 1,
    metadata: { component: subject },
    components,
    dependencies: dependenciesOf(build, spec, subject, others),
  };
  return `${JSON.stringify(bill, undefined, 1)}\n`;
};
