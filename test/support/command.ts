// The `dke` command as a child process.

import { fork, spawn } from 'node:child_process';
import { join } from 'node:path';
import { endWithTest } from './children.ts';
import { programAt, programsVariable } from './program.ts';

export const commandPath = programAt('server/cli/main.js', 'dist/server/cli/main.js');

export interface CommandRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  readonly cwd?: string;
  /** Ends it by SIGTERM when it has said this. */
  readonly until?: RegExp;
}

const environmentOf = ({ environment }: CommandOptions): NodeJS.ProcessEnv => {
  const all: NodeJS.ProcessEnv = { ...process.env };
  for (const name of Object.keys(all)) if (name.startsWith('DKE_') && name !== programsVariable) delete all[name];
  return { ...all, ...environment };
};

/**
 * Runs it to its end, without the variables of the test's own environment that the command reads.
 */
export const runCommand = (args: readonly string[], options: CommandOptions = {}): Promise<CommandRun> => {
  const child = spawn(process.execPath, [commandPath, ...args], {
    env: environmentOf(options),
    cwd: options.cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (options.until?.test(stdout) === true) child.kill();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => done({ code, stdout, stderr }));
  });
};

export interface CommandProcess {
  run(args: readonly string[]): Promise<CommandRun>;
  end(): void;
}

/**
 * A process that runs one command after the other, each by the program's own entry; none has an
 * input.
 */
export const openCommands = (
  options: Pick<CommandOptions, 'environment' | 'cwd'> & { readonly user?: number },
): CommandProcess => {
  const child = fork(join(import.meta.dirname, 'command-child.ts'), {
    ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
    env: environmentOf(options),
    cwd: options.cwd,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  endWithTest(child);
  let last: Promise<unknown> = Promise.resolve();
  const one = (args: readonly string[]): Promise<CommandRun> =>
    new Promise((done, fail) => {
      const gone = (code: number | null): void => fail(new Error(`dke ${args.join(' ')} ended the process: ${code}`));
      child.once('exit', gone);
      child.once('message', (ran) => {
        child.off('exit', gone);
        done(ran as CommandRun);
      });
      child.send({ args });
    });
  return {
    run: (args) => {
      const next = last.then(() => one(args));
      last = next.catch(() => undefined);
      return next;
    },
    end: () => child.disconnect(),
  };
};
