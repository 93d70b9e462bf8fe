// A test's side of the host processes in C (test/native/host): computes the answers they compare
// with, starts them, and reads what they report.
import { type ChildProcess, spawn } from 'node:child_process';
import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { returnValueName } from '../../provider/schema/return-values.ts';
import { endWithTest } from './children.ts';

const build = resolve(import.meta.dirname, '../../build');
const rows = 64;
const sharedKeys = 8;

const cbc = (key: Buffer, iv: Buffer, plain: Buffer): Buffer => {
  const cipher = createCipheriv('aes-256-cbc', key, iv).setAutoPadding(false);
  return Buffer.concat([cipher.update(plain), cipher.final()]);
};

/**
 * Writes the file of known answers, as host.h has it. `token`: the value of the key that the token
 * has been given.
 */
export const writeAnswers = (folder: string, token: Buffer): string => {
  const all = Array.from({ length: rows }, () => ({
    key: randomBytes(32),
    iv: randomBytes(16),
    plain: randomBytes(48),
  }));
  const path = join(folder, 'answers');
  const bytes = all.flatMap(({ key, iv, plain }) => [
    key,
    iv,
    plain,
    cbc(key, iv, plain),
    createHmac('sha256', key).update(plain).digest(),
    createHash('sha256').update(plain).digest(),
    ...all.slice(0, sharedKeys).map((row) => cbc(row.key, iv, plain)),
    cbc(token, iv, plain),
  ]);
  writeFileSync(path, Buffer.concat(bytes));
  return path;
};

/** What host-threads reports. */
export interface ThreadsReport {
  readonly rounds: number;
  /** The lowest number of rounds without an error over all threads. */
  readonly whole: number;
  /** Milliseconds of the longest call. */
  readonly longest: number;
  /** How many results were wrong: must be none. */
  readonly wrong: number;
  readonly firstWrong: string;
  /** Sessions that the token counts as open, next to those that are. */
  readonly sessionsLeft: number;
  /** How often each call returned each value: by name of the call, then of the return value. */
  readonly calls: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface HostOptions {
  readonly config: string;
  readonly socket: string;
  readonly logDirectory: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The build under the thread sanitizer. */
  readonly tsan?: boolean;
}

/** A line of a host's standard output. */
export interface Said {
  readonly whole?: number;
  readonly report?: ThreadsReport;
  /**
   * Only host-crowd writes these: connections of the agent, and milliseconds of the longest call.
   */
  readonly connected?: number;
  readonly longest?: number;
}

export interface Host {
  readonly child: ChildProcess;
  /** Rounds without any error, so far. */
  whole(): number;
  /** Every line that it has written so far. */
  readonly said: readonly Said[];
  /** Everything that it wrote on its standard error so far. */
  complaints(): string;
  /** Ends its input, and answers its report when it has ended. Rejects when it ended badly. */
  finish(): Promise<ThreadsReport>;
  /** Waits for its end: exit code or signal. */
  ended(): Promise<number | NodeJS.Signals>;
}

const named = (calls: Readonly<Record<string, Readonly<Record<string, number>>>>): ThreadsReport['calls'] =>
  Object.fromEntries(
    Object.entries(calls).map(([call, counts]) => [
      call,
      Object.fromEntries(Object.entries(counts).map(([rv, times]) => [returnValueName(Number(rv)), times])),
    ]),
  );

export const startHostProcess = (
  program: 'threads' | 'life' | 'forks' | 'crowd' | 'descriptors' | 'neighbours',
  options: HostOptions,
  ...words: readonly (string | number)[]
): Host => {
  const { tsan = false } = options;
  const path = tsan ? join(build, `tsan/host-${program}-tsan`) : join(build, `host-${program}`);
  const library = join(build, tsan ? 'tsan/libdke_pkcs11_tsan.so' : 'provider/1.0/libdke_pkcs11.so');
  const child = spawn(path, [library, ...words.map(String)], {
    env: {
      ...process.env,
      DKE_PKCS11_CONF: options.config,
      DKE_PKCS11_SOCKET: options.socket,
      DKE_AGENT_LOG_DIR: options.logDirectory,
      ...options.environment,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  endWithTest(child);
  const said: Said[] = [];
  let whole = 0;
  let report: ThreadsReport | undefined;
  let complaints = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    const what = JSON.parse(line) as Said;
    said.push(what);
    whole = what.whole ?? whole;
    report = what.report ?? report;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  child.stdin.on('error', () => undefined);
  const gone = once(child, 'close');
  const ended = async (): Promise<number | NodeJS.Signals> => {
    await gone;
    return child.signalCode ?? child.exitCode ?? -1;
  };
  return {
    child,
    whole: () => whole,
    said,
    complaints: () => complaints,
    ended,
    async finish() {
      child.stdin.end();
      const code = await ended();
      if (code !== 0 || report === undefined) throw new Error(`host-${program} ended with ${code}: ${complaints}`);
      return { ...report, calls: named(report.calls) };
    },
  };
};
