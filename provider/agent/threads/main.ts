// `dke agent`: the process on a database host that the library talks to. Starts the socket thread,
// and stops: on SIGTERM or SIGINT, when the socket thread fails, or after a while without
// connections when it was not started by systemd.
//
//   --socket <path>         where to listen; DKE_PKCS11_SOCKET otherwise. A socket from systemd
//                           (LISTEN_FDS) goes first.
//   --user-limits <list>    what the processes of one user may have together; DKE_AGENT_USER_LIMITS
//                           otherwise. Default
//                           connections=4096,sessions=16384,objects=65536,memory=128 (MiB).
//   --idle-seconds <n>      stop after so long without a connection; 0 = never. Default 600, with
//                           systemd 0.
//
// Who may connect: on a socket below /run or /var/run, and on systemd's, everybody (mode 0666; each
// configuration file is opened with the rights of the user who names it), elsewhere the agent's own
// user and root (mode 0600). One agent serves one socket: a second one refuses to start.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { MessageChannel, Worker } from 'node:worker_threads';
import { core, type FrameServerOptions } from '../../../addon/core.ts';
import { ignoreForeignSignals } from '../../../server/base/foreign-signals.ts';
import { ownVersion } from '../codec/wire.ts';
import { parseLimits, type UserLimits } from '../sessions/user-limits.ts';
import { type Log, openLogs } from '../settings/log.ts';
import { startHost } from './main-thread.ts';
import type { ListenOptions } from './socket-thread.ts';

interface AgentOptions {
  /** Null: systemd's. */
  readonly socket: string | null;
  readonly idleSeconds: number;
  readonly limits: UserLimits;
}

const defaultConfig = '/etc/dke/pkcs11.toml';
const firstListenFd = 3;
const maxFrame = 1 << 20;
/** Most connections; fewer when there are not enough descriptors. */
const maxConnections = 16_384;
/** A peer that has not called C_Initialize within this time, in milliseconds, is disconnected. */
const admissionMilliseconds = 10_000;
/** Largest frame before that: the hello of a process with as many sessions as one user may have. */
const admissionFrame = 256 * 1024;
/**
 * Connections that one user may have in addition to those that have called C_Initialize: these are
 * told why more are refused.
 */
const uninitialized = 64;
/**
 * How much the heap may grow between two collections of old objects. What a client leaves behind
 * when it goes (ten thousand keys, say) is garbage at once, and by default it would stay until the
 * heap has doubled: 100 MiB more after load, and not faster.
 */
const heapGrowth = '--heap-growing-percent=20';
/** Until a configuration says otherwise. */
const defaultSpin = 20;

class UsageError extends Error {}

const parseOptions = (argv: readonly string[], environment: NodeJS.ProcessEnv): AgentOptions => {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      socket: { type: 'string' },
      'idle-seconds': { type: 'string' },
      'user-limits': { type: 'string' },
    },
  });
  const inherited = environment.LISTEN_PID === String(process.pid) && Number(environment.LISTEN_FDS) > 0;
  const socket = inherited ? null : (values.socket ?? environment.DKE_PKCS11_SOCKET);
  if (socket === undefined || socket === '') {
    throw new UsageError('no socket: give --socket <path>, set DKE_PKCS11_SOCKET, or use a systemd socket unit');
  }
  const idleSeconds = Number(values['idle-seconds'] ?? (inherited ? 0 : 600));
  if (!Number.isInteger(idleSeconds) || idleSeconds < 0) throw new UsageError('--idle-seconds must be 0 or more');
  const limits = parseLimits(values['user-limits'] ?? environment.DKE_AGENT_USER_LIMITS ?? '');
  return { socket, idleSeconds, limits };
};

const isSystemSocket = (socket: string | null): boolean =>
  socket === null || /^\/(?:var\/)?run\/dke-pkcs11\//.test(socket);

const serverOptions = (socket: string | null, limits: UserLimits): FrameServerOptions => ({
  ...(socket === null ? { fd: firstListenFd } : { path: socket, mode: isSystemSocket(socket) ? 0o666 : 0o600 }),
  spinMicroseconds: defaultSpin,
  laneVersion: ownVersion,
  maxFrame,
  maxConnections,
  admissionMilliseconds,
  admissionFrame,
  userConnections: limits.connections + uninitialized,
  userBytes: limits.memory,
});

/** Runs until it is told to stop. The exit code: 0 stopped as asked, 1 failed. */
const run = async ({ socket, idleSeconds, limits }: AgentOptions, environment: NodeJS.ProcessEnv): Promise<number> => {
  process.umask(0o077);
  ignoreForeignSignals();
  // The agent holds keys of all processes of its users, and any of them may have started it.
  core.forbidDumps();
  setFlagsFromString(heapGrowth);
  const logs = openLogs(environment);
  const log = await logs.own('info');
  if (socket !== null) mkdirSync(dirname(socket), { recursive: true, mode: 0o700 });

  const { port1, port2 } = new MessageChannel();
  const workerData: ListenOptions = {
    port: port2,
    server: serverOptions(socket, limits),
    limits,
    onlyUser: isSystemSocket(socket) ? null : (process.geteuid?.() ?? null),
  };
  const file = import.meta.url.endsWith('.ts') ? './socket-thread.ts' : './socket-thread.js';
  const worker = new Worker(new URL(file, import.meta.url), { workerData, transferList: [port2] });

  const idle = new IdleClock(idleSeconds, () => stop('idle'));
  let server: number | null = null;
  let stopping = false;
  const stop = (reason: string): void => {
    if (stopping) return;
    stopping = true;
    log.write('info', { reason }, 'stopping');
    // The thread blocks in native code: it must be woken before anything else can end it.
    if (server !== null) core.stopFrameServer(server);
  };
  const host = startHost({
    port: port1,
    logs,
    log,
    defaultConfig: environment.DKE_PKCS11_CONF ?? defaultConfig,
    listening(id) {
      server = id;
      log.write('info', { socket: socket ?? 'systemd', idle_seconds: idleSeconds }, 'listening');
      // For a parent that is Node and asked for a channel.
      process.send?.('listening');
      if (stopping) core.stopFrameServer(id);
    },
    counted: (connections) => idle.set(connections),
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal));
  // A terminal that goes away is not a reason to leave databases without keys.
  process.on('SIGHUP', () => undefined);

  const code = await ended(worker, log);
  idle.stop();
  await host.close();
  log.write('info', { code }, 'stopped');
  await logs.close();
  return code;
};

/** The exit code, once the socket thread has ended. */
const ended = (worker: Worker, log: Log): Promise<number> =>
  new Promise((resolve) => {
    let failed = false;
    worker.once('error', (error) => {
      failed = true;
      // The addon's messages name what to do: a path and the wanted mode, a limit to raise.
      const message = error instanceof Error ? error.message : 'the socket thread failed';
      log.write('fatal', {}, message);
      process.stderr.write(`dke agent: ${message}\n`);
    });
    worker.once('exit', (code) => resolve(failed || code !== 0 ? 1 : 0));
  });

/** Calls back when there was no connection for so many seconds. */
class IdleClock {
  readonly #seconds: number;
  readonly #expired: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(seconds: number, expired: () => void) {
    this.#seconds = seconds;
    this.#expired = expired;
    this.set(0);
  }

  set(connections: number): void {
    this.stop();
    if (connections === 0 && this.#seconds > 0) this.#timer = setTimeout(this.#expired, this.#seconds * 1000);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** `dke agent`. Answers the exit code: 2 for a wrong command line. */
export const main = async (argv: readonly string[], environment: NodeJS.ProcessEnv = process.env): Promise<number> => {
  let options: AgentOptions;
  try {
    options = parseOptions(argv, environment);
  } catch (error) {
    process.stderr.write(`dke agent: ${(error as Error).message}\n`);
    return 2;
  }
  return run(options, environment);
};

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
