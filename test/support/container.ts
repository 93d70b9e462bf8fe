// A container of the service's image, as a runtime runs it: the archive unpacked by umoci, run by
// crun as the image's configuration says, with no capability and a root file system that cannot be
// written. No daemon, no registry.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { endWithTest } from './children.ts';
import { installed } from './tools.ts';

/**
 * crun does not start where a second hierarchy of control groups has a controller. It is hidden
 * from crun, for this process alone.
 */
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
  /** Its name in a network of its own, instead of the network of this host. */
  readonly hostname?: string;
  /** In addition to the image's own. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Container {
  /** What it wrote so far. */
  log(): string;
  /** Undefined while it runs, null when a signal ended it. */
  exitCode(): number | null | undefined;
  /** Runs a program in the running container, as its user. */
  exec(...command: readonly string[]): string;
  /** The words of `exec` before its command, for a shell. */
  readonly execWords: readonly string[];
  /**
   * Sends the signal, as a runtime does to stop a container. Returns the exit code; null when a
   * signal ended it.
   */
  stop(signal: string): Promise<number | null>;
  ended(): Promise<number | null>;
}

export const startContainer = ({ folder, rootfs, config }: Bundle, options: ContainerOptions): Container => {
  const { volumes, command, hostname, environment = {} } = options;
  const [entry = ''] = config.process.args;
  const { uid, gid } = config.process.user;
  const places = volumes.map(({ to }) => to);
  const none: readonly string[] = [];
  const settings = {
    ...config,
    ...(hostname === undefined ? {} : { hostname }),
    process: {
      ...config.process,
      terminal: false,
      noNewPrivileges: true,
      env: [...config.process.env, ...Object.entries(environment).map((each) => each.join('='))],
      args: command === undefined ? config.process.args : [entry, ...command],
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
    },
    root: { path: rootfs, readonly: true },
    mounts: [
      ...config.mounts.filter(({ destination }) => destination !== '/sys/fs/cgroup' && !places.includes(destination)),
      ...volumes.map(({ from, to, readOnly }) => ({
        destination: to,
        type: 'bind',
        source: from,
        options: ['bind', readOnly === true ? 'ro' : 'rw', 'nosuid', 'nodev'],
      })),
    ],
    linux: {
      ...config.linux,
      namespaces: config.linux.namespaces.filter(({ type }) => hostname !== undefined || type !== 'network'),
    },
  };
  const own = mkdtempSync(join(folder, '../container-'));
  writeFileSync(join(own, 'config.json'), JSON.stringify(settings));
  const id = basename(own);
  const crun = (...args: readonly string[]): string[] => inNamespace(['crun', '--root', join(own, 'crun'), ...args]);
  const child = spawn('unshare', crun('run', '--bundle', own, id), { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithTest(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  let code: number | null | undefined;
  const closed = new Promise<number | null>((resolve) =>
    child.once('close', (status) => {
      code = status;
      rmSync(own, { recursive: true, force: true });
      resolve(status);
    }),
  );
  const exec = crun('exec', '--user', `${uid}:${gid}`, id);
  return {
    log: () => text,
    exitCode: () => code,
    exec: (...words) => execFileSync('unshare', [...exec, ...words], { encoding: 'utf8' }),
    execWords: ['unshare', ...exec],
    stop: (signal) => {
      if (code === undefined) execFileSync('unshare', crun('kill', id, signal));
      return closed;
    },
    ended: () => closed,
  };
};
