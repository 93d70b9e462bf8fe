// npm run package [-- --kind deb|rpm|oci] [--architecture x86_64|aarch64] [--only NAME] [--out
// FOLDER] [--fast]: makes the packages of the built project and the container image, of all kinds
// unless one is named, for this machine unless another is named; --fast leaves them uncompressed.
// With DKE_SIGNING_KEY_FILE, what is made is signed. The same commit gives the same bytes: times
// are those of the commit, or of SOURCE_DATE_EPOCH.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { agentEntries, closureOf, packagesOfSources, programRoot, readPackage } from '../install/payload.ts';
import { makeDeb } from './deb.ts';
import { makeImage } from './image.ts';
import { machines, partsOf } from './machines.ts';
import { type Kind, kinds, packages } from './packages.ts';
import { writeRelease } from './release.ts';
import { makeRpm } from './rpm.ts';
import { billOfMaterials } from './sbom.ts';
import { type Build, missingBuilds, packageVersion, put, stagePackage } from './stage.ts';

const entries = [
  'dist/server/cli/main.js',
  ...agentEntries,
  'dist/provider/agent/threads/diagnose.js',
  'dist/provider/install/command.js',
];

/** Programs that a kind needs, with Debian's package. */
const tools: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
  deb: { 'dpkg-deb': 'dpkg' },
  rpm: { rpmbuild: 'rpm' },
  oci: { 'dpkg-query': 'dpkg', tar: 'tar' },
};
const noMachine = `packages are made for ${machines.map(({ name }) => name).join(' and ')}; name one with --architecture`;
const makers = { deb: makeDeb, rpm: makeRpm, oci: makeImage } satisfies Record<Kind, unknown>;

const missingTools = (wanted: readonly Kind[]): readonly string[] =>
  wanted.flatMap((kind) =>
    Object.entries(tools[kind])
      .filter(([name]) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error !== undefined)
      .map(
        ([name, debianPackage]) =>
          `${name} is not installed: apt-get install -y --no-install-recommends ${debianPackage}; or make another kind: npm run package -- --kind ${kinds.find((each) => each !== kind)}`,
      ),
  );

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

/** Sources of the console's pages, relative to the root. */
const pageSources = (root: string): readonly string[] =>
  readdirSync(join(root, 'server/clients/web'), { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter((entry) => entry.isFile() && /^(?!.*config\.ts$).*\.(tsx?|css)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));

const ofRelease = [
  'SHA256SUMS',
  'SHA256SUMS.asc',
  'dke-signing-key.asc',
  'Packages',
  'Release',
  'InRelease',
  'repodata',
];
/** Packages of another version or commit would get into SHA256SUMS. */
const removeOld = (out: string): void => {
  mkdirSync(out, { recursive: true });
  for (const name of readdirSync(out))
    if (/^dke-.*\.(deb|rpm|oci\.tar|cdx\.json|provenance\.json|stage)$/.test(name) || ofRelease.includes(name))
      rmSync(join(out, name), { recursive: true });
};

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      fast: { type: 'boolean', default: false },
      only: { type: 'string' },
      kind: { type: 'string' },
      architecture: { type: 'string' },
    },
  });
  const root = programRoot();
  const wanted = kinds.filter((kind) => values.kind === undefined || values.kind === kind);
  const chosen = packages.filter(
    (spec) =>
      (values.only === undefined || values.only === spec.name) && spec.kinds.some((kind) => wanted.includes(kind)),
  );
  const machine = machines.find(({ name, node }) =>
    values.architecture === undefined ? node === process.arch : name === values.architecture,
  );
  const parts = machine && partsOf(root, machine);
  const missing = [
    ...(wanted.length === 0 ? [`--kind is ${kinds.join(' or ')}`] : []),
    ...(chosen.length === 0 ? [`--only is one of ${packages.map(({ name }) => name).join(', ')}`] : []),
    ...missingTools(wanted),
    ...(process.env.DKE_SIGNING_KEY_FILE === undefined || spawnSync('gpg', ['--version']).status === 0
      ? []
      : [
          'gpg is not installed, and DKE_SIGNING_KEY_FILE names a key: apt-get install -y --no-install-recommends gnupg',
        ]),
    ...(process.env.DKE_SIGNING_KEY_FILE === undefined ||
    !wanted.includes('rpm') ||
    spawnSync('createrepo_c', ['--version']).status === 0
      ? []
      : [
          'createrepo_c is not installed, and DKE_SIGNING_KEY_FILE names a key: apt-get install -y --no-install-recommends createrepo-c; or make another kind: npm run package -- --kind deb',
        ]),
    ...(parts === undefined ? [noMachine] : missingBuilds(root, parts, chosen)),
  ];
  if (parts === undefined || missing.length > 0) {
    process.stderr.write(`no package was made:\n${missing.map((line) => `  ${line}\n`).join('')}`);
    process.exit(1);
  }
  const signingKey = process.env.DKE_SIGNING_KEY_FILE;
  const version = readPackage(root).version ?? '0.0.0';
  const date = new Date(sourceDate(root) * 1000);
  // The commands themselves know what completes them.
  const { shellFiles } = (await import(join(root, 'dist/server/cli/shell-files.js'))) as {
    readonly shellFiles: (version: string, date: Date) => Promise<Readonly<Record<string, string>>>;
  };
  const build: Build = {
    ...parts,
    root,
    closure: closureOf(root, entries),
    pages: packagesOfSources(root, pageSources(root)),
    version,
    date,
    shellFiles: await shellFiles(version, date),
    maintainer: `${process.env.DEBFULLNAME ?? 'DKE maintainers'} <${process.env.DEBEMAIL ?? 'dke@packages.invalid'}>`,
    fast: values.fast,
    out: resolve(values.out ?? join(parts.built, 'packages')),
  };
  removeOld(build.out);
  const made: string[] = [];
  for (const spec of chosen) {
    const bill = billOfMaterials(build, spec);
    const billName = `${spec.name}_${packageVersion(build.version)}.cdx.json`;
    put(join(build.out, billName), bill);
    made.push(billName);
    for (const kind of wanted.filter((each) => spec.kinds.includes(each))) {
      const stage = stagePackage(build, spec, kind, bill);
      const file = makers[kind](build, spec, stage);
      rmSync(stage, { recursive: true });
      made.push(basename(file));
      process.stdout.write(`${basename(file)}  ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB  ${file}\n`);
    }
  }
  writeRelease(build, made, signingKey);
}
