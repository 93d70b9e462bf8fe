// A host of its own on this machine, as namespaces of the kernel: its own /etc, /run and network,
// kept by a process that sleeps. Needs root. What runs there starts through `nsenter`; the service
// is reached by two relays over a socket of the file system, which no network divides, so that a
// host can lose its network and get it back.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { endWithTest } from '../support/children.ts';
import { endProcess, killProcess, until } from '../support/host.ts';

/** Why no such host can be here; undefined when it can. */
export const whyNoHost = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'only root makes namespaces';
  const { status, stderr } = spawnSync('unshare', ['--mount', '--net', 'true'], { encoding: 'utf8' });
  return status === 0 ? undefined : `unshare: ${stderr.trim()}`;
};

export interface LinuxHost {
  /** What is /etc there. */
  readonly etc: string;
  /** What is /run there. */
  readonly run: string;
  /** A command that runs its last arguments there; as another user when one is named. */
  through(user?: { readonly uid: number; readonly gid: number }): readonly string[];
  /** Cuts every connection, and refuses new ones until `restore`. */
  cut(): void;
  restore(): void;
  /** Ends what was started there and is still running. */
  end(): Promise<void>;
}

/** Runs in the host's network: each connection to the service's port goes to the socket. */
const relayProgram = `
const { connect, createServer } = require('node:net');
const [port, path] = process.argv.slice(1);
createServer((near) => {
  const far = connect(path);
  near.pipe(far).pipe(near);
  near.on('error', () => far.destroy());
  far.on('error', () => near.destroy());
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));
`;

export const startLinuxHost = async (folder: string, servicePort: number): Promise<LinuxHost> => {
  const [etc, run] = [join(folder, 'etc'), join(folder, 'run')];
  mkdirSync(run, { recursive: true, mode: 0o755 });
  cpSync('/etc', etc, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  mkdirSync(join(etc, 'dke'), { recursive: true, mode: 0o755 });
  const setUp = `mount --bind '${etc}' /etc && mount --bind '${run}' /run && ip link set lo up && echo ready && exec sleep infinity`;
  const holder = spawn('unshare', ['--mount', '--net', 'sh', '-c', setUp], { stdio: ['ignore', 'pipe', 'inherit'] });
  endWithTest(holder);
  await once(holder.stdout, 'data');
  const enter = ['nsenter', `--target=${holder.pid}`, '--mount', '--net', '--'];

  const open = new Set<Socket>();
  let reachable = true;
  const path = join(folder, 'network.sock');
  const outside: Server = createServer((near) => {
    if (!reachable) return near.destroy();
    const far = connect(servicePort, '127.0.0.1');
    near.pipe(far).pipe(near);
    for (const each of [near, far]) {
      open.add(each);
      each
        .on('error', () => undefined)
        .on('close', () => {
          open.delete(each);
          near.destroy();
          far.destroy();
        });
    }
  });
  outside.listen(path);
  await once(outside, 'listening');
  const [command = '', ...rest] = [...enter, process.execPath, '-e', relayProgram, String(servicePort), path];
  const relay: ChildProcess = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  endWithTest(relay);
  const ended = once(relay, 'exit').then(([code]) => {
    throw new Error(`the relay of the host ended with ${String(code)}`);
  });
  if (relay.stdout !== null) await Promise.race([once(relay.stdout, 'data'), ended]);
  ended.catch(() => undefined);

  const space = readlinkSync(`/proc/${holder.pid}/ns/mnt`);
  const inside = (): readonly number[] =>
    readdirSync('/proc')
      .map(Number)
      .filter((pid) => {
        try {
          return pid > 0 && readlinkSync(`/proc/${pid}/ns/mnt`) === space;
        } catch {
          return false; // it ended meanwhile
        }
      });
  return {
    etc,
    run,
    through: (user) =>
      user === undefined
        ? enter
        : [...enter, 'setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--'],
    cut: () => {
      reachable = false;
      for (const each of open) each.destroy();
    },
    restore: () => {
      reachable = true;
    },
    end: async () => {
      for (const pid of inside().filter((each) => each !== holder.pid)) await endProcess(pid);
      killProcess(holder.pid ?? 0);
      await until('the end of the host', async () => (inside().length === 0 ? true : undefined));
      for (const each of open) each.destroy();
      outside.close();
    },
  };
};
