// Servers of others that a test runs: started on a free port of the loopback, waited for by what they print or by their port,
// stopped by their id.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { findProgram } from './tools.ts';

/** A port that nobody had a moment ago. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
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
}

/** Starts a program and waits until it prints that it serves. Its input stays open and empty. */
export const startDaemon = async (
  program: string,
  args: readonly string[],
  options: DaemonOptions,
): Promise<Daemon> => {
  const { environment, folder, uid, gid, ready } = options;
  const child: ChildProcess = spawn(findProgram(program) ?? program, [...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C', ...environment },
    ...(folder === undefined ? {} : { cwd: folder }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
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
