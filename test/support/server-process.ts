// The real server as a child process, on a free port, with a data directory of its own: for every
// suite that needs a service. Creates a fresh directory by default; `stop` ends the process,
// `remove` deletes the created files.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { endWithTest, leave } from './children.ts';
import { freePort } from './daemon.ts';
import { until } from './host.ts';
import { programAt } from './program.ts';
import { recordStop } from './stops.ts';
import { storeToml } from './test-store.ts';

const main = programAt('server/app/process.js', 'server/app/process.ts');

export interface ServerProcess {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  readonly port: number;
  /** The server's self-signed certificate, PEM. */
  readonly caFile: string;
  /** The first administrator token; the empty text when the data directory had been used before. */
  readonly adminToken: string;
  readonly folder: string;
  readonly dataDirectory: string;
  readonly child: ChildProcess;
  /** Everything it wrote to its standard error so far: the log, one JSON object a line. */
  log(): string;
  /** Everything it wrote to its standard output so far. */
  output(): string;
  /** Ends it with a signal (SIGTERM when none is named) and answers its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Stops it and deletes the folder. */
  remove(): Promise<void>;
  /** Lets it live on when this process ends. */
  leave(): void;
}

export interface ServerProcessOptions {
  /** A folder of an earlier server: its data are used again. */
  readonly folder?: string;
  /** More lines of dke.toml, as tables other than [server] and [data]. */
  readonly toml?: string;
  /** The program to run instead of the sources, for example the built one. */
  readonly program?: readonly string[];
  /** A command that runs the server as its last arguments say, for example `prlimit --fsize=N`. */
  readonly through?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Runs in its own folder, where a heap snapshot then lands. */
  readonly inFolder?: boolean;
  /** A fixed port, so that a restarted server keeps its address; a free one when absent. */
  readonly port?: number;
  /** The address that people are given, where it is not the one that it listens on. */
  readonly publicUrl?: string;
}

export class ServerEnded extends Error {
  readonly exitCode: number | null;
  constructor(exitCode: number | null, output: string) {
    super(`the server ended with ${exitCode} before it listened: ${output}`);
    this.exitCode = exitCode;
  }
}

/**
 * The code that a server in quarantine has shown last: it may be known to be in quarantine before
 * that line is read.
 */
export const quarantineCodeOf = (server: Pick<ServerProcess, 'output'>): Promise<string> =>
  until(
    'the confirmation code',
    async () => [...server.output().matchAll(/^quarantine confirmation code: (\w+)$/gm)].at(-1)?.[1],
  );

export const startServerProcess = async (options: ServerProcessOptions = {}): Promise<ServerProcess> => {
  const port = options.port ?? (await freePort());
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'dke-server-'));
  const config = join(folder, 'dke.toml');
  const named = options.publicUrl === undefined ? '' : `public_url = "${options.publicUrl}"\n`;
  const server = `[server]\nhost = "127.0.0.1"\nport = ${port}\npublic_names = ["127.0.0.1", "localhost"]\n${named}`;
  const toml = options.toml ?? '[erasure]\ngather_ms = 20\n';
  writeFileSync(config, `${server}drain_seconds = 2\n${toml}${await storeToml(folder, toml)}`);
  const program = options.program ?? [main];
  const [command = process.execPath, ...before] = [...(options.through ?? []), process.execPath];
  const child = spawn(command, [...before, ...program, '--config', config], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.inFolder === true ? { cwd: folder } : {}),
    env: { ...process.env, ...options.environment },
  });
  endWithTest(child);
  // Not 'exit': its last words are read after its end.
  const gone = once(child, 'close');
  let log = '';
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });

  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let url: string | undefined;
  let caFile = '';
  let adminToken = '';
  for await (const line of createInterface({ input: child.stdout })) {
    const [, value = ''] = /: (\S+)$/.exec(line) ?? [];
    if (line.startsWith('administrator token')) adminToken = value;
    else if (line.startsWith('certificate')) caFile = value;
    else if (line.startsWith('listening on ')) {
      url = line.slice('listening on '.length);
      break;
    }
  }
  if (url === undefined) {
    await gone;
    // A test in another folder may have claimed it in the meantime.
    if (options.port === undefined && log.includes('EADDRINUSE')) {
      const again = await startServerProcess({ ...options, folder });
      return { ...again, adminToken: again.adminToken || adminToken };
    }
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    throw new ServerEnded(child.exitCode, log);
  }
  child.stdout.resume();
  // What it wrote to its standard error before is in the pipe: one round of the event loop reads
  // it.
  await setImmediate();
  await setImmediate();

  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    const isAsked = child.exitCode === null && child.signalCode === null && child.kill(signal);
    const ended = isAsked && signal === 'SIGTERM' ? recordStop(child, () => log) : undefined;
    await gone;
    ended?.();
    return child.exitCode;
  };
  return {
    url,
    port: Number(new URL(url).port),
    caFile,
    adminToken,
    folder,
    dataDirectory: join(folder, 'dke-data'),
    child,
    log: () => log,
    output: () => output,
    stop,
    leave: () => leave(child),
    remove: async () => {
      await stop();
      if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
    },
  };
};
