// The files of a package, as they will be in the system, below a folder: the program, what was
// built for it, licences, documentation and the bill of materials. What a kind of package adds
// (control files, a spec) is in deb.ts and rpm.ts.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Closure, filesOfPackage, installedScript, isLicence, readPackage } from '../install/payload.ts';
import { licenceOfNode, type Parts } from './machines.ts';
import type { Kind, PackageSpec } from './packages.ts';

export interface Build extends Parts {
  readonly root: string;
  readonly closure: Closure;
  /** Packages that are bundled into the console's pages. */
  readonly pages: readonly string[];
  readonly version: string;
  /** Completion and the manual page of the command, by file name. */
  readonly shellFiles: Readonly<Record<string, string>>;
  /** What files are not younger than. */
  readonly date: Date;
  readonly maintainer: string;
  /** Packages are not compressed. */
  readonly fast: boolean;
  readonly out: string;
}

const run = (command: string, args: readonly string[], cwd?: string): string =>
  execFileSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(cwd === undefined ? {} : { cwd }),
  });

export const put = (path: string, content: string | Buffer, mode = 0o644): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
};
export const copy = (from: string, to: string, mode = 0o644): void => {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, mode);
};

/** Files and links, sorted: the order of directories is not the same on every machine. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

/** Below the folder of a native build. */
export const addon = 'Release/dke_core.node';
const libraryFolder = 'provider/1.0';

/** Removes names that only a debugger reads. */
const strip = (build: Build, path: string): void =>
  void run(build.strip, ['--strip-unneeded', '--remove-section=.comment', '--remove-section=.note', path]);

const command = `#!/bin/sh
# The dke command, with the Node that came with it. /usr/bin/dke leads here by way of a link.
here=$(dirname -- "$(readlink -f -- "$0")") || exit 1
exec "$here/node" --disable-sigusr1 "$here/../dist/server/cli/main.js" "$@"
`;

/** Packages of others in this one, relative to the root. */
export const packagesInside = ({ closure, pages }: Build, { program }: PackageSpec): readonly string[] =>
  program === undefined ? [] : [...new Set([...closure.packages, ...(program.pages ? pages : [])])].sort();

/** The program, below /usr/lib/<name>, with the same folders as the project. */
const stageProgram = (build: Build, spec: PackageSpec, stage: string): void => {
  if (spec.program === undefined) return;
  const { root, built, closure, version, shellFiles } = build;
  const folder = join(stage, 'usr/lib', spec.name);
  for (const path of [...closure.code, ...closure.packages.flatMap((each) => filesOfPackage(root, each))])
    copy(join(root, path), join(folder, path));
  for (const each of spec.program.folders)
    for (const path of filesBelow(join(root, 'dist', each))) copy(path, join(folder, relative(root, path)));
  put(join(folder, 'package.json'), `${JSON.stringify({ name: spec.name, version, type: 'module', private: true })}\n`);
  copy(join(built, addon), join(folder, 'dke_core.node'));
  strip(build, join(folder, 'dke_core.node'));
  copy(build.node, join(folder, 'bin/node'), 0o755);
  put(join(folder, 'bin/dke'), command, 0o755);
  // Links lead here from where shells and man look: those of the package whose command is
  // /usr/bin/dke (postinst).
  for (const [name, text] of Object.entries(shellFiles))
    if (/\.1$/.test(name)) put(join(folder, 'share', `${name}.gz`), gzipSync(text, { level: 9 }));
    else put(join(folder, 'share', name), text);
  if (!spec.program.library) return;
  const from = join(built, libraryFolder);
  copy(join(from, 'libdke_pkcs11.so'), join(folder, '1.0/libdke_pkcs11.so'));
  copy(join(from, 'dke-probe'), join(folder, '1.0/dke-probe'), 0o755);
  for (const name of ['libdke_pkcs11.so', 'dke-probe']) strip(build, join(folder, '1.0', name));
  put(join(folder, '1.0/dke-agent'), installedScript(readFileSync(join(from, 'dke-agent'), 'utf8')), 0o755);
};

/** Why a package cannot be complete, with the line that helps. */
export const missingBuilds = (
  root: string,
  { machine, built }: Parts,
  specs: readonly PackageSpec[],
): readonly string[] => {
  const isCross = machine.node !== process.arch;
  return specs.flatMap(({ name, program, built: files }) =>
    [
      ...(program === undefined ? [] : [{ from: addon, madeWith: undefined }]),
      ...(program?.library ? [{ from: join(libraryFolder, 'libdke_pkcs11.so'), madeWith: undefined }] : []),
      ...files,
    ]
      .filter(({ from }) => !existsSync(join(built, from)))
      .map(({ from, madeWith }) => {
        const install = madeWith === undefined ? '' : `apt-get install -y --no-install-recommends ${madeWith} && `;
        const line = isCross ? `npm run package -- --architecture ${machine.name}` : `${install}npm run build:native`;
        return `${name} needs ${relative(root, join(built, from))}, which was not built: ${line}`;
      }),
  );
};

const stageBuilt = (build: Build, spec: PackageSpec, kind: Kind, stage: string): void => {
  for (const { from, to, links = {}, strip: isElf } of spec.built) {
    const place = to[kind];
    if (place === undefined) continue;
    const path = join(stage, place);
    copy(join(build.built, from), path);
    if (isElf) strip(build, path);
    const link = links[kind];
    if (link === undefined) continue;
    mkdirSync(dirname(join(stage, link)), { recursive: true });
    symlinkSync(relative(dirname(link), place), join(stage, link));
  }
};

/** Licences of everything inside that is not ours, and our own. */
const stageLicences = (build: Build, spec: PackageSpec, stage: string): void => {
  const { root, date } = build;
  const doc = join(stage, 'usr/share/doc', spec.name);
  const year = date.getUTCFullYear();
  const isEither = spec.licence !== 'Apache-2.0';
  const lines = [
    'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/',
    'Upstream-Name: dke',
    ...(spec.program === undefined
      ? ['Comment: Under either license; loaded into MariaDB, it is under the GPL.']
      : [
          "Comment: Inside are Node.js (licences-of-node.gz), OpenSSL's libcrypto (linked into dke_core.node, Apache-2.0) and the packages of",
          ' licences-of-packages.gz, each under its own licence. sbom.cdx.json lists them.',
        ]),
    '',
    'Files: *',
    `Copyright: ${year} DKE authors`,
    `License: ${spec.licence.replace(' OR ', ' or ')}`,
    '',
    'License: Apache-2.0',
    ' On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.',
    ...(isEither
      ? [
          '',
          'License: GPL-2.0-or-later',
          ' On Debian systems the text of version 2 is in /usr/share/common-licenses/GPL-2.',
        ]
      : []),
  ];
  put(join(doc, 'copyright'), `${lines.join('\n')}\n`);
  if (spec.program === undefined) return;
  const parts = packagesInside(build, spec).map((path) => {
    const { version = '' } = readPackage(join(root, path));
    const texts = readdirSync(join(root, path)).filter(isLicence).sort();
    const { license = 'see its files' } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) as {
      readonly license?: unknown;
    };
    const text = texts.map((name) => readFileSync(join(root, path, name), 'utf8').trim()).join('\n\n');
    return `==== ${path.replace(/^.*node_modules\//, '')} ${version}: ${String(license)} ====\n\n${text}\n`;
  });
  const nodeLicence = [
    join(root, `node_modules/node-linux-${build.machine.node}/LICENSE`),
    licenceOfNode(build),
    join(root, 'licences-of-node'),
  ].find((path) => existsSync(path));
  const node =
    nodeLicence === undefined
      ? 'See https://github.com/nodejs/node/blob/main/LICENSE'
      : readFileSync(nodeLicence, 'utf8');
  put(join(doc, 'licences-of-packages.gz'), gzipSync(parts.join('\n'), { level: 9 }));
  put(join(doc, 'licences-of-node.gz'), gzipSync(node, { level: 9 }));
};

/** Directories have the same mode whatever the umask was. */
export const settleFolders = (stage: string): void => {
  for (const entry of readdirSync(stage, { recursive: true, withFileTypes: true, encoding: 'utf8' }))
    if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), 0o755);
  chmodSync(stage, 0o755);
};

/** A fresh folder with everything but what the kind of package adds. */
export const stagePackage = (build: Build, spec: PackageSpec, kind: Kind, billOfMaterials: string): string => {
  const stage = join(build.out, `${spec.name}.${kind}.stage`);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  stageProgram(build, spec, stage);
  stageBuilt(build, spec, kind, stage);
  for (const [path, text] of Object.entries(spec.texts((name) => readFileSync(join(build.root, name), 'utf8'))))
    put(join(stage, path), text);
  for (const path of spec.directories) mkdirSync(join(stage, path), { recursive: true });
  stageLicences(build, spec, stage);
  put(join(stage, 'usr/share/doc', spec.name, 'sbom.cdx.json'), billOfMaterials);
  put(
    join(stage, 'usr/share/doc', spec.name, 'NEWS.md.gz'),
    gzipSync(readFileSync(join(build.root, 'CHANGELOG.md')), { level: 9 }),
  );
  settleFolders(stage);
  return stage;
};

/** A hyphen would start the package's own revision, and a pre-release comes before the release. */
export const packageVersion = (version: string): string => version.replaceAll('-', '~');
