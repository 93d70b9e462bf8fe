// `dke agent` as a child process, for tests that load the library: PKCS#11 calls block their thread, so the
// agent cannot live in the test's own process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endWithTest } from './children.ts';
import { programAt } from './program.ts';

export interface AgentProcess {
  readonly socket: string;
  readonly child: ChildProcess;
  /** Every line that it logged so far. */
  log(): string;
  /** Ends it with a signal and answers its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export const main = programAt('provider/client/main.js', 'provider/client/main.ts');

/** Answers when it listens, or has ended. */
export const startAgent = async (
  folder: string,
  options: {
    readonly arguments?: readonly string[];
    readonly environment?: NodeJS.ProcessEnv;
    readonly inFolder?: boolean;
  } = {},
): Promise<AgentProcess> => {
  const socket = join(folder, 'agent.sock');
  const logs = join(folder, 'log');
  mkdirSync(folder, { recursive: true });
  const child = spawn(process.execPath, [main, '--socket', socket, ...(options.arguments ?? [])], {
    ...(options.inFolder === true ? { cwd: folder } : {}),
    env: { ...process.env, DKE_AGENT_LOG_DIR: logs, ...options.environment },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  endWithTest(child);
  const gone = once(child, 'exit');
  // A child that a test forgets keeps nothing waiting.
  child.unref();
  child.channel?.unref();
  await Promise.race([once(child, 'message'), gone]);
  return {
    socket,
    child,
    log: () =>
      existsSync(logs)
        ? readdirSync(logs)
            .map((name) => readFileSync(join(logs, name), 'utf8'))
            .join('')
        : '',
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await gone;
      }
      return child.exitCode;
    },
  };
};
