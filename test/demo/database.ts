// The demonstration's side of a database process: sends it commands, waits for its answers.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export type Answer = { readonly ok: boolean; readonly error?: string } & Readonly<Record<string, unknown>>;

export interface Database {
  readonly pid: number;
  ask(command: { readonly do: string } & Readonly<Record<string, unknown>>): Promise<Answer>;
  stop(): Promise<void>;
}

export const startDatabase = (options: {
  readonly library: string;
  readonly environment: Readonly<Record<string, string>>;
}): Database => {
  const child: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'database-process.ts')], {
    env: { ...process.env, ...options.environment, DKE_DEMO_LIBRARY: options.library },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout, pid } = child;
  if (stdin === null || stdout === null || pid === undefined) throw new Error('the database process did not start');
  const waiting: ((answer: Answer) => void)[] = [];
  createInterface({ input: stdout }).on('line', (line) => waiting.shift()?.(JSON.parse(line) as Answer));
  child.on('exit', (code, signal) => {
    for (const give of waiting.splice(0)) give({ ok: false, error: `the database process ended (${signal ?? code})` });
  });
  return {
    pid,
    ask: (command) =>
      new Promise((resolve) => {
        if (child.exitCode !== null) return resolve({ ok: false, error: 'the database process has ended' });
        waiting.push(resolve);
        stdin.write(`${JSON.stringify(command)}\n`);
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      stdin.end();
      await gone;
    },
  };
};
