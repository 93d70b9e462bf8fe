// A container of the service's image, as a runtime runs it: the archive unpacked by umoci, run by crun as the image's configuration says, with
// no capability, a root file system that cannot be written, and the host's network. No daemon, no registry.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { endWithTest } from './children.ts';
import { installed } from './tools.ts';

/** crun does not start where a second hierarchy of control groups has a controller. It is hidden from crun, for this process alone. */
const wrapper = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"';
const inNamespace = (command: readonly string[]): string[] => ['--mount', 'sh', '-c', wrapper, 'sh', ...command];

export const whyNoContainer = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'it takes root';
  if (!installed('umoci', 'umoci') || !installed('crun', 'crun')) return 'the tools are not installed';
  const { status } = spawnSync('unshare', inNamespace(['true']));
  return status === 0 ? undefined : 'this host allows no namespaces';
};

interface RuntimeMount {
  readonly destination: string;
  readonly type?: string;
  readonly source?: string;
  readonly options?: readonly string[];
}
interface RuntimeConfig {
  readonly process: {
    readonly user: { readonly uid: number; readonly gid: number };
    readonly args: readonly string[];
    readonly env: readonly string[];
    readonly cwd: string;
  };
  readonly root: { readonly path: string };
  readonly mounts: readonly RuntimeMount[];
  readonly linux: { readonly namespaces: readonly { readonly type: string }[] };
}

export interface Bundle {
  readonly folder: string;
  readonly rootfs: string;
  readonly config: RuntimeConfig;
}

/** Unpacks the archive: its own checksums are compared by umoci. */
export const unpackImage = (archive: string, folder: string, reference: string): Bundle => {
  const layout = join(folder, 'layout');
  mkdirSync(layout, { recursive: true });
  execFileSync('tar', ['--extract', '--file', archive, '--directory', layout]);
  const bundle = join(folder, 'bundle');
  execFileSync('umoci', ['unpack', '--image', `${layout}:${reference}`, bundle], { stdio: 'pipe' });
  const config = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8')) as RuntimeConfig;
  return { folder: bundle, rootfs: join(bundle, 'rootfs'), config };
};

export interface Volume {
  readonly from: string;
  readonly to: string;
  readonly readOnly?: true;
}
export interface ContainerOptions {
  readonly volumes: readonly Volume[];
  /** Behind the image's entry point, instead of the image's own. */
  readonly command?: readonly string[];
  /** Groups of the volumes that are not the user's own. */
  readonly groups?: readonly number[];
}

export interface Container {
  readonly child: ChildProcess;
  log(): string;
  /** Runs a program in the running container. */
  exec(...command: readonly string[]): string;
  /** As a runtime stops a container. Answers the exit code. */
  stop(signal: string): Promise<number | null>;
}

export const startContainer = ({ folder, config }: Bundle, options: ContainerOptions): Container => {
  const { volumes, command, groups = [] } = options;
  const [entry = ''] = config.process.args;
  const { uid, gid } = config.process.user;
  const places = volumes.map(({ to }) => to);
  const none: readonly string[] = [];
  const settings = {
    ...config,
    process: {
      ...config.process,
      terminal: false,
      noNewPrivileges: true,
      args: command === undefined ? config.process.args : [entry, ...command],
      user: { ...config.process.user, additionalGids: groups },
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
    },
    root: { ...config.root, readonly: true },
    mounts: [
      ...config.mounts.filter(({ destination }) => destination !== '/sys/fs/cgroup' && !places.includes(destination)),
      ...volumes.map(({ from, to, readOnly }) => ({
        destination: to,
        type: 'bind',
        source: from,
        options: ['bind', readOnly === true ? 'ro' : 'rw', 'nosuid', 'nodev'],
      })),
    ],
    linux: { ...config.linux, namespaces: config.linux.namespaces.filter(({ type }) => type !== 'network') },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(settings));
  const state = join(folder, '../crun');
  const id = `dke-${basename(join(folder, '..'))}`;
  const crun = (...args: readonly string[]): string[] => inNamespace(['crun', '--root', state, ...args]);
  const child = spawn('unshare', crun('run', '--bundle', folder, id), { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithTest(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return {
    child,
    log: () => text,
    exec: (...words) =>
      execFileSync('unshare', crun('exec', '--user', `${uid}:${gid}`, id, ...words), { encoding: 'utf8' }),
    stop: async (signal) => {
      if (child.exitCode === null) {
        const ended = once(child, 'exit');
        execFileSync('unshare', crun('kill', id, signal));
        await ended;
      }
      rmSync(state, { recursive: true, force: true });
      return child.exitCode;
    },
  };
};
