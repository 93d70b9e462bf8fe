// An RPM package of a staged folder, made with rpmbuild (Debian's package rpm). Its scripts are
// those of the Debian package.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PackageSpec } from './packages.ts';
import { type Build, filesBelow, packageVersion, put } from './stage.ts';

/**
 * Each script of Debian, called with the arguments that dpkg would give it. RPM tells how many of
 * the package are there afterwards: after an installation 1, after an upgrade 2, after a removal 0.
 */
const scriptlets = { post: 'postinst', preun: 'prerm', postun: 'postrm' } as const;
const argumentsOf: Readonly<Record<keyof typeof scriptlets, string>> = {
  post: 'if [ "$1" -gt 1 ]; then set -- configure previous; else set -- configure; fi',
  preun: 'if [ "$1" -eq 0 ]; then set -- remove; else set -- upgrade; fi',
  postun: 'if [ "$1" -eq 0 ]; then set -- remove; else set -- upgrade; fi',
};

/** The text of a scriptlet, from the folder of the package's scripts. */
export const scriptletOf = (folder: string, scriptlet: keyof typeof scriptlets): string =>
  `${argumentsOf[scriptlet]}\n${readFileSync(join(folder, scriptlets[scriptlet]), 'utf8').replace(/^#!.*\n/, '')}`;

/** Folders that belong to the package whole; of all others only its files do. */
const ownFolders = ({ name }: PackageSpec): readonly string[] => [`/usr/lib/${name}`, `/usr/share/doc/${name}`];

const listedFiles = (spec: PackageSpec, stage: string): string[] => {
  const own = ownFolders(spec);
  const paths = filesBelow(stage).map((path) => path.slice(stage.length));
  const inside = (folder: string): boolean => paths.some((path) => path.startsWith(`${folder}/`));
  return [
    ...spec.directories.map((path) => `%dir ${path}`),
    ...own.filter(inside),
    ...paths
      .filter((path) => !own.some((folder) => path.startsWith(`${folder}/`)))
      .map((path) => (spec.configurationFiles.includes(path) ? `%config(noreplace) ${path}` : path)),
  ];
};

const specOf = (build: Build, spec: PackageSpec, stage: string): string => {
  const { scripts } = spec;
  const parts =
    scripts === undefined
      ? []
      : (Object.keys(scriptlets) as (keyof typeof scriptlets)[]).flatMap((scriptlet) => [
          `%${scriptlet}`,
          // A percent sign would start a macro.
          scriptletOf(join(build.root, scripts), scriptlet).replaceAll('%', '%%'),
        ]);
  return [
    `Name: ${spec.name}`,
    `Version: ${packageVersion(build.version)}`,
    'Release: 1',
    `Summary: ${spec.summary}`,
    `License: ${spec.licence}`,
    `Packager: ${build.maintainer}`,
    ...[...(spec.depends.rpm ?? []), ...(scripts === undefined ? [] : ['/usr/sbin/update-alternatives'])].map(
      (name) => `Requires: ${name}`,
    ),
    // Libraries inside are only for this package.
    '%global __provides_exclude ^lib.*[.]so.*$',
    '%description',
    ...spec.description.flatMap((text) => [text, '']),
    '%install',
    `mkdir -p %{buildroot} && mv '${stage}'/* %{buildroot}/`,
    '%files',
    '%defattr(-,root,root,-)',
    ...listedFiles(spec, stage),
    ...parts,
    '',
  ].join('\n');
};

export const makeRpm = (build: Build, spec: PackageSpec, stage: string): string => {
  const { name: architecture } = build.machine;
  // rpmbuild's own scripts do not work in a folder whose name has a blank.
  const work = mkdtempSync(join(tmpdir(), 'dke-rpm-'));
  const specFile = join(work, `${spec.name}.spec`);
  put(specFile, specOf(build, spec, stage));
  const macros = {
    _topdir: work,
    _rpmdir: build.out,
    _build_name_fmt: '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm',
    _binary_payload: build.fast ? 'w0.ufdio' : 'w1T2.xzdio',
    // Nothing of the machine, and no other time than that of the commit.
    _buildhost: 'localhost',
    use_source_date_epoch_as_buildtime: '1',
    clamp_mtime_to_source_date_epoch: '1',
    // Files are as they were staged: no debug packages, no second strip, no links by build id.
    debug_package: '%{nil}',
    __os_install_post: '%{nil}',
    _build_id_links: 'none',
    __brp_mangle_shebangs: '%{nil}',
  };
  const args = Object.entries(macros).flatMap(([name, value]) => ['--define', `${name} ${value}`]);
  execFileSync('rpmbuild', ['--quiet', '-bb', '--target', `${architecture}-linux`, ...args, specFile], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(build.date.getTime() / 1000) },
  });
  rmSync(work, { recursive: true });
  return join(build.out, `${spec.name}-${packageVersion(build.version)}-1.${architecture}.rpm`);
};
