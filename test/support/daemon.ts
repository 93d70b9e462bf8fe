// Third-party servers that a test runs: started on a free loopback port, ready when they print a
// text or open the port, stopped by their id.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { endWithTest } from './children.ts';
import { findProgram } from './tools.ts';

/** The first of the ports that the system gives to connections, and to listeners that name none. */
const [firstGiven = 32_768] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number);
const firstPort = 10_000;
/** Test files that run at the same time use different ports. */
const lanes = 8;
const lane = Number(process.env.VITEST_POOL_ID ?? 0) % lanes;
const given = new Set<number>();

/**
 * A free port that nothing else is given: it stays free until it is used, and while its server is
 * restarted.
 */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const most = Math.max(firstGiven, firstPort + 1_000) - firstPort;
    const port = firstPort + lanes * randomInt(Math.floor(most / lanes)) + lane;
    if (given.has(port)) continue;
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    given.add(port);
    return port;
  }
};

export interface Daemon {
  readonly pid: number;
  /** What it has printed so far. */
  printed(): string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface DaemonOptions {
  readonly environment?: NodeJS.ProcessEnv;
  readonly folder?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** What it prints when it serves. */
  readonly ready: RegExp;
  /** What ends it with this process: SIGKILL when absent. */
  readonly last?: NodeJS.Signals;
}

/** Starts a program and waits until it prints that it serves. Its input stays open and empty. */
export const startDaemon = async (
  program: string,
  args: readonly string[],
  options: DaemonOptions,
): Promise<Daemon> => {
  const { environment, folder, uid, gid, ready, last } = options;
  const child: ChildProcess = spawn(findProgram(program) ?? program, [...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C', ...environment },
    ...(folder === undefined ? {} : { cwd: folder }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  endWithTest(child, last);
  let printed = '';
  const gone = once(child, 'exit');
  await new Promise<void>((resolve, reject) => {
    const take = (part: Buffer): void => {
      printed += part.toString();
      if (ready.test(printed)) resolve();
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${program} ended before it served:\n${printed}`)));
  });
  return {
    pid: child.pid ?? 0,
    printed: () => printed,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      await gone;
    },
  };
};
