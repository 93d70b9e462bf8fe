// A Debian package of a staged folder, made with dpkg-deb (Debian's package dpkg).
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { PackageSpec } from './packages.ts';
import { type Build, copy, filesBelow, packageVersion, put, settleFolders } from './stage.ts';

const stageDocumentation = ({ version, date, maintainer }: Build, spec: PackageSpec, stage: string): void => {
  const stamp = date.toUTCString().replace('GMT', '+0000');
  const changelog = `dke (${packageVersion(version)}) unstable; urgency=medium\n\n  * Changes of the program: NEWS.md.gz\n\n -- ${maintainer}  ${stamp}\n`;
  put(join(stage, 'usr/share/doc', spec.name, 'changelog.gz'), gzipSync(changelog, { level: 9 }));
  if (spec.program === undefined) return;
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

/**
 * What Node and our own files need: GCC's libraries of release 8, and glibc 2.28, which
 * test/house/shipped-binaries.test.ts checks. Not from dpkg-shlibdeps: it asks for the glibc in
 * which this machine has the symbols, which no older system has.
 */
const libraries = (spec: PackageSpec): readonly string[] => [
  'libc6 (>= 2.28)',
  ...(spec.program === undefined ? [] : ['libstdc++6 (>= 8)', 'libgcc-s1 | libgcc1']),
];

/** Lines of at most 78 characters, each behind a blank; paragraphs apart. */
const folded = (paragraphs: readonly string[]): string =>
  paragraphs.map((text) => text.replaceAll(/(?=\S)(.{1,77})(?:\s+|$)/g, ' $1\n').trimEnd()).join('\n .\n');

const stageControl = (build: Build, spec: PackageSpec, stage: string): void => {
  const files = filesBelow(stage).filter((path) => statSync(path).isFile());
  const kib = Math.ceil(files.reduce((sum, path) => sum + statSync(path).size, 0) / 1024);
  const control = join(stage, 'DEBIAN');
  const fields = {
    Package: spec.name,
    Version: packageVersion(build.version),
    Architecture: build.machine.debian,
    Maintainer: build.maintainer,
    'Installed-Size': String(kib),
    Depends: [...libraries(spec), ...(spec.depends.deb ?? [])].join(', '),
    Section: 'admin',
    Priority: 'optional',
    Source: 'dke',
    Description: `${spec.summary}\n${folded(spec.description)}`,
  };
  const sums = files.map(
    (path) => `${createHash('md5').update(readFileSync(path)).digest('hex')}  ${path.slice(stage.length + 1)}`,
  );
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  put(join(control, 'control'), lines.join(''));
  put(join(control, 'md5sums'), `${sums.join('\n')}\n`);
  if (spec.configurationFiles.length > 0) put(join(control, 'conffiles'), `${spec.configurationFiles.join('\n')}\n`);
  if (spec.scripts !== undefined)
    for (const name of ['postinst', 'prerm', 'postrm'])
      copy(join(build.root, spec.scripts, name), join(control, name), 0o755);
};

export const makeDeb = (build: Build, spec: PackageSpec, stage: string): string => {
  stageDocumentation(build, spec, stage);
  stageControl(build, spec, stage);
  settleFolders(stage);
  const file = join(build.out, `${spec.name}_${packageVersion(build.version)}_${build.machine.debian}.deb`);
  // A higher level takes four times as long and saves a sixth.
  const compression = build.fast ? ['-Znone'] : ['-Zxz', '-z1'];
  execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', stage, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(build.date.getTime() / 1000) },
  });
  return file;
};
