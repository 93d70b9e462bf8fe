// The `dke` command as a child process.

import { spawn } from 'node:child_process';
import { programAt } from './program.ts';

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
}

/** Runs it to its end, without the variables of the test's own environment that the command reads. */
export const runCommand = (args: readonly string[], options: CommandOptions = {}): Promise<CommandRun> => {
  const environment: NodeJS.ProcessEnv = { ...process.env };
  for (const name of Object.keys(environment)) if (name.startsWith('DKE_')) delete environment[name];
  const child = spawn(process.execPath, [commandPath, ...args], {
    env: { ...environment, ...options.environment },
    cwd: options.cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
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
