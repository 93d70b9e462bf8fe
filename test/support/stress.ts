// The differential stress test: processes of the real library (test/native/stress) against a real
// agent and service, which is stopped, continued and killed in the meantime. Every result is
// compared with OpenSSL's in the calling process.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { mechanismName } from '../../provider/schema/mechanisms.ts';
import { returnValueName } from '../../provider/schema/return-values.ts';
import { type CompatibilitySwitch, compatibilitySwitches } from '../../server/base/compatibility-switches.ts';
import { endWithTest } from './children.ts';
import { createGroup, registerApplication } from './console-api.ts';
import { until } from './host.ts';
import { type Site, startSite } from './site.ts';

/** Sanitizers that library, addon and test program are built with. */
export const sanitizers = { none: '', address: 'address,undefined', thread: 'thread' } as const;
export type Sanitizer = keyof typeof sanitizers;

export interface StressOptions {
  readonly processes: number;
  /** Threads of each process, 1 to 64. */
  readonly threads: number;
  /** Longest message in bytes. */
  readonly largest: number;
  readonly seed: number;
  readonly sanitizer: Sanitizer;
  /** Every second process uses an application with all compatibility switches on. */
  readonly switches: boolean;
  /**
   * Asked after each round of disturbances. `mechanisms`: of how many one process at least has
   * compared results.
   */
  readonly goesOn: (rounds: number, mechanisms: number) => boolean;
  readonly tell?: (line: string) => void;
}

export interface StressReport {
  readonly rounds: number;
  readonly kills: number;
  readonly stops: number;
  readonly jobs: number;
  /** Results that were compared. */
  readonly bytes: number;
  /** Answers that came through the lane; all others came through the socket. */
  readonly laneAnswers: number;
  /**
   * Wrong bytes, wrong return values, session keys lost while the agent lived, sanitizers' reports:
   * each is a defect.
   */
  readonly findings: readonly string[];
  /** How often each call returned what, while the agent was well and while it was being killed. */
  readonly calls: { readonly calm: CallCounts; readonly storm: CallCounts };
  /** How often a result of each mechanism was compared while the agent was well. */
  readonly mechanisms: Readonly<Record<string, number>>;
}
type CallCounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

interface Progress {
  readonly jobs: number;
  readonly least: number;
  readonly seen: boolean;
  /** How many mechanisms have had at least one result compared, over all threads. */
  readonly mechanisms: number;
}
interface ProcessReport {
  readonly jobs: number;
  readonly bytes: number;
  readonly wrongResults: number;
  readonly firstWrongResult: string;
  readonly wrongReturns: number;
  readonly firstWrongReturn: string;
  readonly lostKeys: number;
  readonly laneAnswers: number;
  /** Lists of all threads, one after the other: a call or a mechanism can have several entries. */
  readonly calls: readonly (readonly [call: string, rv: number, storm: boolean, times: number])[];
  readonly mechanisms: readonly (readonly [type: number, times: number])[];
}

const root = resolve(import.meta.dirname, '../..');
/**
 * A thread without a finished job for so long hangs. Sanitizers slow everything down by a factor of
 * ten.
 */
const hangSeconds = { none: 120, address: 300, thread: 300 } as const;

/** Where sanitizers write what they find. */
const reportsOf = (folder: string): string => join(folder, 'reports');

const environmentOf = (sanitizer: Sanitizer, folder: string): Readonly<Record<string, string>> => {
  if (sanitizer === 'none') return {};
  const runtimes = sanitizer === 'address' ? ['libasan.so', 'libubsan.so'] : ['libtsan.so'];
  const paths = runtimes.map((name) => execFileSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim());
  const settings = `log_path=${join(reportsOf(folder), 'sanitizer')}:detect_leaks=0:halt_on_error=0:print_stacktrace=1`;
  return { LD_PRELOAD: paths.join(':'), ASAN_OPTIONS: settings, UBSAN_OPTIONS: settings, TSAN_OPTIONS: settings };
};

/**
 * Stands in for the agent's program. The library gives the agent only the variables that it needs,
 * so those of the sanitizer are added here, for Node alone: the thread sanitizer cannot be loaded
 * into a shell.
 */
const writeAgent = (program: string, environment: Readonly<Record<string, string>>): void => {
  const variables = Object.entries(environment).map(([name, value]) => `'${name}=${value}'`);
  const node = join(root, 'node_modules/.bin/node');
  const main = resolve(program, '../../dist/provider/agent/threads/main.js');
  const lines = [
    '#!/bin/sh',
    '[ "$1" = --detach ] && shift',
    `env ${variables.join(' ')} '${node}' '${main}' "$@" </dev/null >/dev/null 2>&1 &`,
    'echo "$!"',
    '',
  ];
  writeFileSync(program, lines.join('\n'), { mode: 0o755 });
};

/**
 * Node itself is built without the thread sanitizer, which therefore does not see how V8's threads
 * agree, nor that libuv closes a descriptor (by a bare system call) before another thread gets its
 * number. It reports races there. A report is ours if the code of this project made one of the two
 * accesses; of a descriptor, both.
 */
const isOurs = (report: string): boolean => {
  const accesses = report.split('\n\n').filter((block) => /(read|write) of size|Mutex|lock/i.test(block));
  const ours = accesses
    .map((block) => block.split('\n').find((line) => /^ +#\d/.test(line) && !line.includes('libtsan')) ?? '')
    .map((line) => /dke_core\.node|libdke_pkcs11|stress\+/.test(line));
  return report.includes('Location is file descriptor') ? ours.every((is) => is) : ours.some((is) => is);
};
const findingsOf = (sanitizer: Sanitizer, said: string): readonly string[] =>
  sanitizer === 'thread'
    ? said.split(/^={18}$/m).filter((report) => report.includes('WARNING') && isOurs(report))
    : [said];

/** Builds missing programs; returns the folder of the build. */
const build = (sanitizer: Sanitizer): string => {
  if (sanitizer === 'none') return join(root, 'build');
  const folder = join(root, `build-${sanitizer}`);
  const bin = join(root, 'node_modules/.bin/cmake-js');
  for (const target of ['dke_pkcs11', 'dke_addon', 'stress'])
    execFileSync(
      bin,
      ['compile', '-O', folder, `--CDDKE_SANITIZE=${sanitizers[sanitizer]}`, '--target', target, '--parallel', '2'],
      {
        cwd: root,
        stdio: 'pipe',
      },
    );
  // The library starts the agent next to it: this one runs the code above it, with the addon of the
  // same build.
  const program = join(folder, 'provider');
  rmSync(join(program, 'dist'), { recursive: true, force: true });
  cpSync(join(root, 'dist'), join(program, 'dist'), { recursive: true });
  copyFileSync(join(folder, 'Release/dke_core.node'), join(program, 'dke_core.node'));
  rmSync(reportsOf(folder), { recursive: true, force: true });
  mkdirSync(reportsOf(folder));
  writeAgent(join(program, '1.0/dke-agent'), environmentOf(sanitizer, folder));
  return folder;
};

/** xorshift: disturbances are the same for the same seed. */
const dice = (seed: number): ((sides: number) => number) => {
  let state = (seed >>> 0) + 1;
  return (sides) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % sides;
  };
};

interface Stressed {
  readonly child: ChildProcess;
  progress(): Progress;
  /** "s" before the agent is disturbed, "c" when it works again. */
  command(letter: 's' | 'c'): void;
  finish(): Promise<ProcessReport>;
}

const startStressed = (
  site: Site,
  config: string,
  options: StressOptions,
  folder: string,
  number: number,
): Stressed => {
  const words = [options.seed + number, options.threads, options.largest].map(String);
  const child = spawn(join(folder, 'stress'), [join(folder, 'provider/1.0/libdke_pkcs11.so'), ...words], {
    env: {
      ...process.env,
      ...environmentOf(options.sanitizer, folder),
      DKE_PKCS11_CONF: config,
      DKE_PKCS11_SOCKET: site.socket,
      DKE_AGENT_LOG_DIR: site.logDirectory,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  endWithTest(child);
  let progress: Progress = { jobs: 0, least: 0, seen: true, mechanisms: 0 };
  let report: ProcessReport | undefined;
  let complaints = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Progress & { readonly report?: ProcessReport };
    if (said.report === undefined) progress = said;
    else report = said.report;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  child.stdin.on('error', () => undefined);
  const gone = once(child, 'close');
  const broken = (): Error =>
    new Error(`process ${number} ended with ${child.signalCode ?? child.exitCode}: ${complaints}`);
  return {
    child,
    progress() {
      if (child.exitCode !== null || child.signalCode !== null) throw broken();
      return progress;
    },
    command(letter) {
      progress = { ...progress, seen: false };
      child.stdin.write(letter);
    },
    async finish() {
      child.stdin.end();
      await gone;
      if (report === undefined) throw broken();
      return report;
    },
  };
};

const countCalls = (reports: readonly ProcessReport[], storm: boolean): CallCounts => {
  const counts: Record<string, Record<string, number>> = {};
  for (const [call, rv, inStorm, times] of reports.flatMap(({ calls }) => calls)) {
    if (inStorm !== storm) continue;
    counts[call] ??= {};
    const row = counts[call];
    const name = returnValueName(rv);
    row[name] = (row[name] ?? 0) + times;
  }
  return counts;
};

const countMechanisms = (reports: readonly ProcessReport[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const [type, times] of reports.flatMap(({ mechanisms }) => mechanisms)) {
    const name = mechanismName(type);
    counts[name] = (counts[name] ?? 0) + times;
  }
  return counts;
};

export const runStress = async (options: StressOptions): Promise<StressReport> => {
  const { tell = () => undefined } = options;
  const folder = build(options.sanitizer);
  const roll = dice(options.seed);
  const site = await startSite();
  const processes: Stressed[] = [];
  let kills = 0;
  let stops = 0;
  let rounds = 0;
  try {
    const group = await createGroup(site.api, 'stress');
    const configOf = async (name: string, switches: readonly CompatibilitySwitch[]): Promise<string> => {
      const registered = await registerApplication(site.api, name, group);
      const path = `/api/tde/applications/${registered.application.id}/compatibility`;
      if (switches.length > 0) await site.api.call('PUT', path, { switches });
      return site.config(name, registered, 'call_timeout_ms = 60000\nspin_us = 200\n');
    };
    const configs = [await configOf('pkcs11', []), await configOf('switches', compatibilitySwitches)];
    for (let i = 0; i < options.processes; i++) {
      const config = configs[options.switches ? i % configs.length : 0] ?? '';
      processes.push(startStressed(site, config, options, folder, i));
    }
    const seconds = hangSeconds[options.sanitizer];
    /** Each thread of each process finishes so many more jobs. */
    const work = async (jobs: number): Promise<void> => {
      const goals = processes.map((each) => each.progress().least + jobs);
      for (const [i, each] of processes.entries())
        await until(
          `${jobs} jobs of each thread`,
          async () => (each.progress().least >= (goals[i] ?? 0) ? true : undefined),
          seconds,
        );
    };
    const command = async (letter: 's' | 'c'): Promise<void> => {
      for (const each of processes) each.command(letter);
      for (const each of processes)
        await until('a command', async () => (each.progress().seen ? true : undefined), seconds);
    };
    const agent = (): Promise<number> => until('an agent', async () => site.agents()[0]);
    await work(5);
    do {
      for (let i = 0; i < 3; i++) {
        const pid = await agent();
        process.kill(pid, 'SIGSTOP');
        await new Promise((resolve) => setTimeout(resolve, 1 + roll(300)));
        process.kill(pid, 'SIGCONT');
        stops++;
        await work(1 + roll(8));
      }
      await command('s');
      for (let i = 1 + roll(3); i > 0; i--) {
        const pid = await agent();
        process.kill(pid, roll(3) === 0 ? 'SIGTERM' : 'SIGKILL');
        kills++;
        await until(
          'the next agent',
          async () => (site.agents().some((each) => each !== pid) ? true : undefined),
          seconds,
        );
        await work(1 + roll(3));
      }
      await command('c');
      await work(5 + roll(20));
      rounds++;
      tell(
        `round ${rounds}: ${processes.reduce((sum, each) => sum + each.progress().jobs, 0)} jobs, ${stops} stops, ${kills} kills`,
      );
    } while (options.goesOn(rounds, Math.max(...processes.map((each) => each.progress().mechanisms))));
    const reports = await Promise.all(processes.map((each) => each.finish()));
    const said =
      options.sanitizer === 'none'
        ? []
        : readdirSync(reportsOf(folder)).flatMap((name) =>
            findingsOf(options.sanitizer, readFileSync(join(reportsOf(folder), name), 'utf8')),
          );
    return {
      rounds,
      kills,
      stops,
      jobs: reports.reduce((sum, { jobs }) => sum + jobs, 0),
      bytes: reports.reduce((sum, { bytes }) => sum + bytes, 0),
      laneAnswers: reports.reduce((sum, { laneAnswers }) => sum + laneAnswers, 0),
      findings: [
        ...reports.flatMap((report, i) => [
          ...(report.wrongResults > 0
            ? [`process ${i}: ${report.wrongResults} wrong results, first: ${report.firstWrongResult}`]
            : []),
          ...(report.wrongReturns > 0
            ? [`process ${i}: ${report.wrongReturns} wrong return values, first: ${report.firstWrongReturn}`]
            : []),
          ...(report.lostKeys > 0
            ? [`process ${i}: ${report.lostKeys} calls found a session key lost while the agent lived`]
            : []),
        ]),
        ...said,
      ],
      calls: { calm: countCalls(reports, false), storm: countCalls(reports, true) },
      mechanisms: countMechanisms(reports),
    };
  } finally {
    for (const { child } of processes) child.kill('SIGKILL');
    await site.end();
  }
};
