// One process of a simulated database (driver/main.c) as a child: one step at a time, each with its
// answer.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { endWithTest } from '../support/children.ts';

export const processProgram = resolve(import.meta.dirname, '../../build/tde-process');

export interface Answer {
  readonly ok: boolean;
  /**
   * Why the step failed: `call` when the library refused a call, otherwise a word of the driver.
   */
  readonly why?: string;
  readonly what?: string;
  readonly call?: string;
  readonly rv?: number;
  readonly id?: string;
  readonly found?: number;
  readonly keystore?: 'H' | 'F' | '-';
  readonly bytes?: number;
  readonly blocks?: number;
  readonly applied?: number;
  readonly manufacturer?: string;
  readonly description?: string;
  readonly version?: string;
  readonly flags?: number;
  /** The result of the steps `cipher` (hexadecimal) and `metadata`. */
  readonly value?: string;
  readonly rows: readonly string[];
}

export type StepName =
  | 'load'
  | 'open'
  | 'close'
  | 'finalize'
  | 'find'
  | 'generate'
  | 'create-file'
  | 'rewrap'
  | 'rekey'
  | 'insert'
  | 'select'
  | 'unwrap'
  | 'describe'
  | 'create-redo'
  | 'replay'
  | 'heartbeat'
  | 'destroy'
  | 'template'
  | 'cipher'
  | 'tag'
  | 'metadata'
  | 'wallet-create'
  | 'wallet-open'
  | 'wallet-password'
  | 'wallet-automatic'
  | 'wallet-secret';

/** The parameters of a step; a boolean becomes 0 or 1, and undefined ones are omitted. */
export type Given = Readonly<Record<string, string | number | boolean | undefined>>;

/** The process has ended: a session of the database gets ORA-03113. */
export class ProcessEnded extends Error {}

export interface DatabaseProcess {
  /** `gen0`, `fg0`, `lgwr`, … */
  readonly role: string;
  readonly pid: number;
  readonly trace: string;
  step(name: StepName, given?: Given): Promise<Answer>;
  /** Ends its input and waits for its end. */
  stop(): Promise<void>;
  /** SIGKILL, and waits for its end. */
  kill(): Promise<void>;
}

export interface ProcessOptions {
  readonly role: string;
  /** What the service sees: `ora_<role>_<SID>`, as the database's processes are called. */
  readonly name: string;
  readonly profile: string;
  readonly trace: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly program?: string | undefined;
  /** A command that runs its last arguments. */
  readonly through?: readonly string[] | undefined;
}

export const startDatabaseProcess = (options: ProcessOptions): DatabaseProcess => {
  const [profile, trace] = [options.profile, options.trace];
  const { through = [], program = processProgram } = options;
  // A process keeps the name that the database gives it, whatever runs it.
  const named = ['bash', '-c', 'exec -a "$0" "$@"', options.name, program, profile, trace];
  const [command = program, ...rest] = through.length === 0 ? [program, profile, trace] : [...through, ...named];
  const child = spawn(command, rest, {
    ...(through.length === 0 ? { argv0: options.name } : {}),
    env: { ...process.env, ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  endWithTest(child);
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  child.stdin.on('error', () => undefined);
  const gone = once(child, 'close');
  const waiting: PromiseWithResolvers<Answer>[] = [];
  let rows: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Answer & { readonly row?: string };
    if (said.row !== undefined) rows.push(said.row);
    else {
      waiting.shift()?.resolve({ ...said, rows });
      rows = [];
    }
  });
  void gone.then(([code, signal]) => {
    for (const each of waiting.splice(0))
      each.reject(new ProcessEnded(`${options.name}: ${signal ?? code} ${complaints}`));
  });
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    role: options.role,
    pid: child.pid ?? 0,
    trace: options.trace,
    step: (name, given = {}) => {
      const answer = Promise.withResolvers<Answer>();
      if (!alive()) answer.reject(new ProcessEnded(`${options.name} has ended: ${complaints}`));
      else {
        waiting.push(answer);
        const words = Object.entries(given).flatMap(([key, value]) =>
          value === undefined ? [] : [`${key}=${value === true ? 1 : value === false ? 0 : value}`],
        );
        const line = [name, ...words].join('\t');
        if (/[\n\r]/.test(line)) throw new Error('a step is one line');
        child.stdin.write(`${line}\n`);
      }
      return answer.promise;
    },
    stop: async () => {
      if (alive()) child.stdin.end();
      await gone;
    },
    kill: async () => {
      if (alive()) child.kill('SIGKILL');
      await gone;
    },
  };
};
