// Strikes a real server in single system calls of one operation, by strace: SIGKILL at the Nth write or sync, or an error that the
// call answers with. Counted by thread and by kind of call, from the moment when strace has taken hold of the running server.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { faultOperations, isGone, type Operation, openWorkload } from './fault-workload.ts';
import { builtServer, verifyCopy } from './killed-server.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** Calls that make something lasting: SQLite's and the root key file's, and those of files that are replaced as a whole. */
export const lastingCalls = ['pwrite64', 'fdatasync', 'fsync', 'rename', 'ftruncate'] as const;
export type LastingCall = (typeof lastingCalls)[number];

/** strace on a process and all its threads, once it has hold of them. */
const takeHold = async (pid: number, injection: string): Promise<ChildProcess> => {
  const [call = ''] = injection.split(':');
  const tracer = spawn(
    'strace',
    ['-f', '-p', String(pid), '-e', `trace=${call}`, '-e', `inject=${injection}`, '-o', '/dev/null'],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const { stderr } = tracer;
  let told = '';
  for await (const text of stderr.setEncoding('utf8')) {
    told += String(text);
    if (/attached/.test(told)) break;
  }
  if (!/attached/.test(told)) throw new Error(`strace does not take hold: ${told}`);
  return tracer;
};
const letGo = async (tracer: ChildProcess): Promise<void> => {
  if (tracer.exitCode !== null || tracer.signalCode !== null) return;
  const gone = once(tracer, 'exit');
  // The kernel lets its process go on. Asked politely it can wait for ever for a thread of a process that has ended.
  tracer.kill('SIGKILL');
  await gone;
};

export interface StrikeReport {
  readonly strikes: number;
  /** By operation and call: how many calls were struck before the operation came through. */
  readonly reached: Readonly<Record<string, number>>;
  readonly findings: readonly string[];
}

/** Why no server can be struck here; undefined: it can. */
export const whyNoStrikes = (): string | undefined => {
  const { error, status } = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']);
  if (error !== undefined) return 'strace is not installed';
  return status === 0 ? undefined : 'this host lets nobody trace a process';
};

/** 1, 2, 3, 5, 8, ...: each call of a short operation, and ever fewer of a long one. */
function* fibonacci(): Generator<number> {
  for (let [number, next] = [1, 2]; ; [number, next] = [next, number + next]) yield number;
}
function* each(): Generator<number> {
  for (let number = 1; ; number += 1) yield number;
}

export const strikeServer = async (options: {
  /** Every call, or ever fewer of many. */
  readonly every: boolean;
  readonly operations?: readonly Operation[];
  readonly calls?: readonly LastingCall[];
  /** SIGKILL when absent. ENOSPC: refused, and it goes on. EIO: it ends. */
  readonly error?: 'ENOSPC' | 'EIO';
  readonly seed: number;
  readonly tell?: (line: string) => void;
  /** Of each operation and call at most so many. */
  readonly most?: number;
}): Promise<StrikeReport> => {
  const { every, operations = faultOperations, calls = lastingCalls, error, seed, most = Infinity } = options;
  const tell = options.tell ?? (() => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'dke-struck-'));
  const environment = { NODE_COMPILE_CACHE: join(folder, 'code') };
  const toml = '[erasure]\ngather_ms = 10\n';
  const begin = (port?: number) =>
    startServerProcess({ folder, toml, program: [builtServer], environment, ...(port === undefined ? {} : { port }) });
  const first = await begin();
  const place: { server: ServerProcess } = { server: first };
  const findings: string[] = [];
  const reached: Record<string, number> = {};
  let strikes = 0;
  const again = async (): Promise<void> => {
    findings.push(...(await verifyCopy(folder)).findings);
    place.server = await begin(first.port);
  };
  try {
    const workload = await openWorkload(place, first.adminToken, { seed });
    const strike = async (operation: Operation, call: LastingCall, number: number): Promise<boolean> => {
      const work = await workload.prepare(operation);
      const { child } = place.server;
      const ended = once(child, 'exit');
      const action = error === undefined ? 'signal=KILL' : `error=${error}`;
      const tracer = await takeHold(child.pid ?? 0, `${call}:${action}:when=${number}`);
      // An erasure turn that fails is tried again half a minute later: nobody waits for that here.
      const outcome = await Promise.race([
        work().then(
          () => 'done',
          (failure: unknown) => (isGone(failure) ? 'gone' : `refused: ${String(failure)}`),
        ),
        ended.then(() => 'gone'),
        ...(error === undefined ? [] : [new Promise<string>((resolve) => setTimeout(() => resolve('waits'), 5_000))]),
      ]);
      await letGo(tracer);
      strikes += 1;
      const where = `${operation}, ${call} ${number}`;
      if (child.exitCode === null && child.signalCode === null && outcome === 'gone') await ended;
      // A server that ends by itself says so to its callers before it is gone.
      if (error === 'EIO') await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
      const dead = child.exitCode !== null || child.signalCode !== null;
      if (error === 'ENOSPC' && dead)
        findings.push(`${where}: a full disk ended the server (${child.exitCode}): ${place.server.log().slice(-300)}`);
      if (error === 'EIO' && dead && child.exitCode !== 5) findings.push(`${where}: it ended with ${child.exitCode}`);
      if (error !== undefined && !dead)
        await workload.serve().catch((failure: unknown) => findings.push(`${where}: ${String(failure)}`));
      // What failed halfway is looked at as it lies there; a server that goes on is looked at through its answers alone.
      if (dead) await again();
      findings.push(...(await workload.check(false)).map((finding) => `${where}: ${finding}`));
      return outcome === 'done';
    };
    for (const operation of operations)
      for (const call of calls) {
        let tried = 0;
        for (const number of every ? each() : fibonacci()) {
          if (findings.length > 0 || tried >= most) break;
          tried += 1;
          // With an error a call that is struck can go unseen: the operation may not need it. Then a few more are tried.
          const through = await strike(operation, call, number);
          if (through && (error === undefined || tried >= 4)) break;
          if (!through) reached[`${operation}, ${call}`] = number;
        }
        if (findings.length > 0) break;
        tell(`${operation}, ${call}: ${reached[`${operation}, ${call}`] ?? 0}`);
      }
    if (findings.length === 0) {
      findings.push(...(await workload.check(true)));
      await place.server.stop();
      findings.push(...(await verifyCopy(folder)).findings);
    }
    return { strikes, reached, findings };
  } finally {
    await place.server.stop('SIGKILL');
    if (findings.length === 0) rmSync(folder, { recursive: true, force: true });
    else tell(`kept: ${folder}`);
  }
};
