// `dke agent` as a child process, for tests that load the library: PKCS#11 calls block their
// thread, so the agent cannot live in the test's own process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endWithTest } from './children.ts';
import { until } from './host.ts';
import { programAt } from './program.ts';

export interface AgentProcess {
  readonly socket: string;
  readonly child: ChildProcess;
  /** Every line that it logged so far. */
  log(): string;
  /** Ends it with a signal and answers its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export const main = programAt('provider/agent/threads/main.js', 'provider/agent/threads/main.ts');

/** Answers when it listens, or has ended. */
export const startAgent = async (
  folder: string,
  options: {
    readonly arguments?: readonly string[];
    readonly environment?: NodeJS.ProcessEnv;
    readonly inFolder?: boolean;
    /**
     * A command that runs the rest of its command line as another user. The socket is root's then,
     * handed over as systemd does.
     */
    readonly as?: readonly string[];
  } = {},
): Promise<AgentProcess> => {
  const socket = join(folder, 'agent.sock');
  const logs = join(folder, 'log');
  mkdirSync(folder, { recursive: true });
  const { as } = options;
  const activate = [
    ...['systemd-socket-activate', '--listen', socket, '--setenv', `DKE_AGENT_LOG_DIR=${logs}`],
    ...(as ?? []),
  ];
  const [program = '', ...words] = [
    ...(as === undefined ? [] : activate),
    process.execPath,
    main,
    ...(as === undefined ? ['--socket', socket] : []),
  ];
  const child = spawn(program, [...words, ...(options.arguments ?? [])], {
    ...(options.inFolder === true ? { cwd: folder } : {}),
    env: { ...process.env, DKE_AGENT_LOG_DIR: logs, ...options.environment },
    stdio: ['ignore', 'inherit', 'inherit', ...(as === undefined ? (['ipc'] as const) : [])],
  });
  endWithTest(child);
  const gone = once(child, 'exit');
  // A child that a test forgets keeps nothing waiting.
  child.unref();
  child.channel?.unref();
  if (as === undefined) await Promise.race([once(child, 'message'), gone]);
  else {
    await until('the socket is there', async () => (existsSync(socket) ? true : undefined));
    chmodSync(socket, 0o666);
  }
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
