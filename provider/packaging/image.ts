// A container image of a staged folder: an OCI image layout in one archive, which podman, docker,
// containerd and skopeo load. It has one layer: the program, the libraries that Node needs, from
// the Debian packages of the machine's parts, and the user that it runs as. No shell, no package
// manager, no network while it is made; the same input gives the same bytes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { PackageSpec } from './packages.ts';
import { type Build, copy, packageVersion, put, settleFolders } from './stage.ts';

/**
 * Debian's packages of the libraries that Node and the addon are linked with. Names are resolved
 * inside libc itself.
 */
export const systemLibraries = [
  {
    name: 'libc6',
    licence: 'LGPL-2.1-or-later',
    files: ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0'],
  },
  { name: 'libgcc-s1', licence: 'GPL-3.0-or-later WITH GCC-exception-3.1', files: ['libgcc_s.so.1'] },
  { name: 'libstdc++6', licence: 'GPL-3.0-or-later WITH GCC-exception-3.1', files: ['libstdc++.so.6'] },
] as const;

/**
 * Everything that a runtime has to know, and what compose.yaml and the Kubernetes manifests must
 * agree with.
 */
export const image = {
  name: 'localhost/dke',
  /**
   * Belongs to no user of a host; without a name, so that a runtime can tell that it is not root.
   */
  user: 10_001,
  /** Not 443: a user without capabilities cannot open it everywhere. */
  port: 8443,
  data: '/var/lib/dke',
  configuration: '/etc/dke',
  command: '/usr/bin/dke',
  arguments: ['server', '--config', '/etc/dke/dke.toml', '--token-out', '/var/lib/dke/administrator-token'],
  environment: {
    PATH: '/usr/bin',
    HOME: '/var/lib/dke',
    // The only folder that can be written.
    TMPDIR: '/var/lib/dke',
    // For dke inside of the container: the first administrator's token, and the self-signed
    // certificate.
    DKE_SERVER: 'https://localhost:8443',
    DKE_CA_FILE: '/var/lib/dke/data/tls.crt',
    DKE_TOKEN_FILE: '/var/lib/dke/administrator-token',
  },
  /**
   * Not in the OCI specification, which reserves the name for Docker; compose.yaml says it again.
   */
  health: ['/usr/bin/dke', 'server', 'health', '--config', '/etc/dke/dke.toml'],
} as const;

const seconds = 1_000_000_000;

/** The image's configuration, of OCI's media type application/vnd.oci.image.config.v1+json. */
export const imageConfiguration = (
  { version, date }: Pick<Build, 'version' | 'date'>,
  { summary, licence }: Pick<PackageSpec, 'summary' | 'licence'>,
  architecture: string,
  layer: string,
) => {
  const created = date.toISOString();
  return {
    created,
    architecture,
    os: 'linux',
    config: {
      User: `${image.user}:${image.user}`,
      ExposedPorts: { [`${image.port}/tcp`]: {} },
      Env: Object.entries(image.environment).map(([name, value]) => `${name}=${value}`),
      Entrypoint: [image.command],
      Cmd: image.arguments,
      // Not the configuration: every container would keep a copy of it in a volume without a name,
      // across upgrades, too.
      Volumes: { [image.data]: {} },
      WorkingDir: image.data,
      StopSignal: 'SIGTERM',
      Healthcheck: {
        Test: ['CMD', ...image.health],
        Interval: 30 * seconds,
        Timeout: 20 * seconds,
        StartPeriod: 120 * seconds,
        Retries: 3,
      },
      Labels: {
        'org.opencontainers.image.title': 'DKE',
        'org.opencontainers.image.description': summary,
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.created': created,
        'org.opencontainers.image.licenses': licence,
        'org.opencontainers.image.documentation': '/usr/share/doc/dke-image/containers.md',
      },
    },
    rootfs: { type: 'layers', diff_ids: [layer] },
    history: [{ created, created_by: 'npm run package' }],
  };
};

const query = (system: string, debianPackage: string): string =>
  execFileSync('dpkg-query', [`--admindir=${join(system, 'var/lib/dpkg')}`, '--status', debianPackage], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });

const stageSystem = ({ root, system, machine }: Build, stage: string): void => {
  const { libraries, loader } = machine;
  const link = (path: string, target: string): void => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    symlinkSync(target, join(stage, path));
  };
  for (const folder of ['usr/lib', 'usr/lib64', 'dev', 'proc', 'run', 'sys', 'tmp'])
    mkdirSync(join(stage, folder), { recursive: true });
  link('lib', 'usr/lib');
  link('lib64', 'usr/lib64');
  link('usr/bin/dke', '../lib/dke-image/bin/dke');
  link('usr/bin/node', '../lib/dke-image/bin/node');
  copy(join(root, 'server/packaging/image-command'), join(stage, 'usr/lib/dke-image/bin/dke'), 0o755);
  copy(realpathSync(join(system, loader)), join(stage, 'usr', loader), 0o755);
  for (const { name, files } of systemLibraries) {
    for (const file of files) copy(realpathSync(join(system, libraries, file)), join(stage, libraries, file));
    copy(join(system, 'usr/share/doc', name, 'copyright'), join(stage, 'usr/share/doc', name, 'copyright'));
    // Where scanners of images without a package manager find what is installed.
    put(join(stage, 'var/lib/dpkg/status.d', name), query(system, name));
  }
  copy('/usr/lib/os-release', join(stage, 'etc/os-release'));
  // Most runtimes mount their own over it.
  put(join(stage, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  put(join(stage, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n');
  put(
    join(stage, 'etc/passwd'),
    `root:x:0:0:root:/:/nonexistent\ndke:x:${image.user}:${image.user}:DKE key service:${image.data}:/nonexistent\n`,
  );
  put(join(stage, 'etc/group'), `root:x:0:\ndke:x:${image.user}:\n`);
  settleFolders(stage);
};

/** One tar archive of a folder: names in order, one time, no user of this machine. */
const archive = (file: string, folder: string, date: Date, owner: number, ...more: readonly string[]): void =>
  void execFileSync(
    'tar',
    [
      ...['--file', file, '--directory', folder, '--format=gnu', '--sort=name', '--numeric-owner'],
      ...[`--mtime=@${date.getTime() / 1000}`, `--owner=${owner}`, `--group=${owner}`],
      ...more,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'], env: { PATH: process.env.PATH, LC_ALL: 'C' } },
  );

const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

const makeLayer = (build: Build, stage: string, work: string): Buffer => {
  const file = join(work, 'layer.tar');
  archive(file, stage, build.date, 0, '--create', '.');
  // A new volume takes the owner and the mode of the folder that it covers.
  const own = join(work, 'own');
  mkdirSync(join(own, image.data), { recursive: true });
  archive(file, own, build.date, image.user, '--append', '--mode=0700', `.${image.data}`);
  const content = readFileSync(file);
  rmSync(file);
  return content;
};

export const makeImage = (build: Build, spec: PackageSpec, stage: string): string => {
  const architecture = build.machine.debian;
  stageSystem(build, stage);
  const work = mkdtempSync(join(tmpdir(), 'dke-image-'));
  const layout = join(work, 'layout');
  const addBlob = (mediaType: string, content: Buffer) => {
    const digest = digestOf(content);
    put(join(layout, 'blobs', digest.replace(':', '/')), content);
    return { mediaType, digest, size: content.length };
  };
  const addJson = (mediaType: string, value: unknown) => addBlob(mediaType, Buffer.from(JSON.stringify(value)));
  const tar = makeLayer(build, stage, work);
  const layer = build.fast
    ? addBlob('application/vnd.oci.image.layer.v1.tar', tar)
    : addBlob('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(tar, { level: 6 }));
  const configuration = addJson(
    'application/vnd.oci.image.config.v1+json',
    imageConfiguration(build, spec, architecture, digestOf(tar)),
  );
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = addJson(mediaType, { schemaVersion: 2, mediaType, config: configuration, layers: [layer] });
  const reference = `${image.name}:${build.version}`;
  const annotations = { 'org.opencontainers.image.ref.name': reference, 'io.containerd.image.name': reference };
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [{ ...manifest, platform: { architecture, os: 'linux' }, annotations }],
  };
  put(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  put(join(layout, 'index.json'), JSON.stringify(index));
  // Docker before version 25 does not read the files above.
  const blob = ({ digest }: { readonly digest: string }): string => `blobs/${digest.replace(':', '/')}`;
  put(
    join(layout, 'manifest.json'),
    JSON.stringify([{ Config: blob(configuration), RepoTags: [reference], Layers: [blob(layer)] }]),
  );
  settleFolders(layout);
  const name = `${spec.name}_${packageVersion(build.version)}_${architecture}.oci.tar`;
  archive(
    join(build.out, name),
    layout,
    build.date,
    0,
    '--create',
    'blobs',
    'index.json',
    'manifest.json',
    'oci-layout',
  );
  rmSync(work, { recursive: true });
  return join(build.out, basename(name));
};
