// Injects faults into every persistent call of an operation of a real server (strikes.ts): killed
// before the Nth, killed in the middle of the Nth write, gets a full disk from the Nth call on, or
// a failure of the Nth sync. After each, the stored data are checked on a copy (`dke verify`), the
// server restarts if it has ended, and its data are compared with what it had acknowledged
// (fault-workload.ts).
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { faultOperations, isGone, type Operation, openWorkload } from './fault-workload.ts';
import { builtServer, verifyCopy } from './killed-server.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { type Blow, everyKind, openStrikes } from './strikes.ts';

export const faultBlows = ['killed', 'torn', 'full disk', 'failed sync'] as const;
export type FaultBlow = (typeof faultBlows)[number];
const blows = {
  killed: { mode: 'kill', kinds: everyKind },
  torn: { mode: 'tear', kinds: ['write'] },
  'full disk': { mode: 'fail-from', kinds: ['write', 'truncate', 'create'], error: 'ENOSPC' },
  'failed sync': { mode: 'fail', kinds: ['sync'], error: 'EIO' },
} as const satisfies Record<FaultBlow, Omit<Blow, 'number'>>;

export interface StruckOperation {
  /** The number of such calls that the operation makes without a fault. */
  readonly calls: number;
  readonly strikes: number;
  /** How often the server ended: of itself, where it was not killed. */
  readonly ended: number;
}
export interface StrikeReport {
  readonly strikes: number;
  readonly operations: Readonly<Record<string, StruckOperation>>;
  readonly findings: readonly string[];
}

/** 1, 2, 3, 5, 8, ...: each call of a short operation, and ever fewer of a long one. */
function* fibonacci(): Generator<number> {
  for (let [number, next] = [1, 2]; ; [number, next] = [next, number + next]) yield number;
}
function* each(): Generator<number> {
  for (let number = 1; ; number += 1) yield number;
}

/** Longer than any operation takes on a busy machine: what has not answered by then hangs. */
const hangsAfterMs = 300_000;

const strikeOperation = async (
  operation: Operation,
  blow: FaultBlow,
  options: { readonly every: boolean; readonly seed: number; readonly most: number; readonly codeCache: string },
  tell: (line: string) => void,
): Promise<StruckOperation & { readonly findings: readonly string[] }> => {
  const { every, seed, most, codeCache } = options;
  const { mode, kinds, ...error } = blows[blow];
  const isKilled = mode === 'kill' || mode === 'tear';
  const folder = mkdtempSync(join(tmpdir(), 'dke-struck-'));
  const blowing = openStrikes(folder);
  const environment = { NODE_COMPILE_CACHE: codeCache, ...blowing.environment };
  const toml = '[erasure]\ngather_ms = 10\n[snapshots]\nrestore_second_person = false\n';
  const begin = (port?: number) =>
    startServerProcess({ folder, toml, program: [builtServer], environment, ...(port === undefined ? {} : { port }) });
  const first = await begin();
  const place: { server: ServerProcess } = { server: first };
  const findings: string[] = [];
  let ended = 0;
  let strikes = 0;
  let calls = 0;
  const again = async (where: string): Promise<void> => {
    findings.push(...(await verifyCopy(folder)).findings.map((finding) => `${where}: dke verify: ${finding}`));
    place.server = await begin(first.port);
  };
  try {
    const workload = await openWorkload(place, first.adminToken, { seed });
    const ready = async (): Promise<() => Promise<void>> => {
      const work = await workload.prepare(operation);
      await workload.settle();
      return work;
    };
    /** Answers whether a call was struck. */
    const strike = async (number: number): Promise<boolean> => {
      const where = `${operation}, ${blow} at ${number}`;
      const work = await ready();
      const { child } = place.server;
      const over = new AbortController();
      // After a timeout the request stays open: nothing waits for it.
      const gone = once(child, 'exit', { signal: over.signal }).then(
        () => 'gone',
        () => new Promise<string>(() => undefined),
      );
      /** How a call ended; it is over as well when the server is. */
      const outcomeOf = async (call: () => Promise<void>): Promise<string> => {
        let hanging: NodeJS.Timeout | undefined;
        const answer = call().then(
          () => 'done',
          (failure: unknown) => (isGone(failure) ? gone : `refused: ${String(failure)}`),
        );
        const hangs = new Promise<string>((resolve) => {
          hanging = setTimeout(() => resolve('hangs'), hangsAfterMs);
        });
        return Promise.race([answer, gone, hangs]).finally(() => clearTimeout(hanging));
      };
      const theEnd = (): Promise<string> => outcomeOf(() => new Promise(() => undefined));
      blowing.arm({ mode, kinds, number, ...error });
      const outcome = await outcomeOf(work);
      const { struck } = blowing.disarm();
      if (outcome === 'hangs') findings.push(`${where}: no answer came`);
      if (struck === 0) {
        over.abort();
        if (outcome !== 'done') findings.push(`${where}: nothing was struck, and it is ${outcome}`);
        return false;
      }
      strikes += 1;
      // A server that ends on its own may have answered before. Its store accepts nothing after the
      // failure, so a change shows whether it will end: the change succeeds, or it fails and the
      // server ends.
      const afterwards = outcome === 'gone' ? outcome : await outcomeOf(workload.change);
      const itEnds = afterwards !== 'done';
      if (itEnds && (await theEnd()) !== 'gone')
        findings.push(`${where}: it neither makes changes nor ends: ${afterwards}`);
      over.abort();
      if (itEnds) {
        ended += 1;
        if (blow === 'full disk' || (!isKilled && child.exitCode !== 5))
          findings.push(`${where}: it ended with ${child.exitCode}: ${place.server.log().slice(-500)}`);
        await again(where);
      } else {
        await workload.serve().catch((failure: unknown) => findings.push(`${where}: ${String(failure)}`));
        // A turn that failed is tried again half a minute later, or at the next start.
        if ((await workload.settle()) === 'failed') {
          const code = await place.server.stop();
          if (code !== 0) findings.push(`${where}: it stopped with ${code}`);
          await again(where);
        }
      }
      findings.push(...(await workload.check(false)).map((finding) => `${where}: ${finding}`));
      return true;
    };
    // First a warm-up, so that one-time work is not counted; then once to count.
    await (await ready())();
    await workload.settle();
    const work = await ready();
    blowing.arm({ mode: 'count', kinds, number: 0 });
    await work();
    calls = blowing.disarm().counted;
    let tried = 0;
    for (const number of every ? each() : fibonacci()) {
      if (findings.length > 0 || tried >= most || !(await strike(number))) break;
      tried += 1;
      if (tried % 20 === 0) tell(`  ${operation}, ${blow}: ${tried} of ${calls}`);
    }
    if (findings.length === 0) {
      findings.push(...(await workload.check(true)));
      await place.server.stop();
      findings.push(...(await verifyCopy(folder)).findings);
    }
  } catch (failure) {
    findings.push(`${operation}, ${blow}: ${failure instanceof Error ? failure.stack : String(failure)}`);
  } finally {
    await place.server.stop('SIGKILL');
    if (findings.length === 0) rmSync(folder, { recursive: true, force: true });
    else tell(`kept: ${folder}`);
  }
  return { calls, strikes, ended, findings };
};

export const strikeServer = async (options: {
  readonly blow: FaultBlow;
  /** Every call, or ever fewer of many. */
  readonly every: boolean;
  readonly operations?: readonly Operation[];
  readonly seed: number;
  readonly tell?: (line: string) => void;
  /** The highest number of strikes at each operation; undefined: no limit. */
  readonly most?: number;
}): Promise<StrikeReport> => {
  const { blow, operations = faultOperations, tell = () => undefined, most = Infinity, every, seed } = options;
  const codeCache = mkdtempSync(join(tmpdir(), 'dke-code-'));
  const reported: Record<string, StruckOperation> = {};
  const findings: string[] = [];
  let strikes = 0;
  try {
    // Compiled code is kept by a process that ends in peace.
    const warm = await startServerProcess({ program: [builtServer], environment: { NODE_COMPILE_CACHE: codeCache } });
    await warm.remove();
    for (const operation of operations) {
      const { findings: found, ...counts } = await strikeOperation(
        operation,
        blow,
        { every, seed, most, codeCache },
        tell,
      );
      reported[operation] = counts;
      findings.push(...found);
      strikes += counts.strikes;
      tell(`${operation}, ${blow}: ${counts.strikes} strikes, ${counts.calls} calls, ended ${counts.ended} times`);
      for (const finding of found) tell(`  ${finding}`);
    }
    return { strikes, operations: reported, findings };
  } finally {
    rmSync(codeCache, { recursive: true, force: true });
  }
};
