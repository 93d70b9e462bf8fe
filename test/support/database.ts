// A test's side of a database process (database-process.ts): sends it one Cryptoki call at a time
// and gives the return value and what came with it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endWithTest } from './children.ts';
import type { CommandName, Commands } from './database-process.ts';

export interface Answer {
  /** The name of the return value, CKR_OK included. */
  readonly rv: string;
  readonly handle?: number;
  readonly handles?: readonly number[];
  /** Names of return values, one for each key. */
  readonly codes?: readonly string[];
  /** Hexadecimal. */
  readonly data?: string;
  readonly value?: string;
  readonly session?: number;
  readonly state?: number;
}

export interface Database {
  readonly pid: number;
  readonly child: ChildProcess;
  call<Name extends CommandName>(name: Name, command: Commands[Name]): Promise<Answer>;
  /** Everything that it wrote on its standard error. */
  complaints(): string;
  stop(): Promise<void>;
}

export interface DatabaseOptions {
  /** Path of pkcs11.toml. */
  readonly config: string;
  readonly socket: string;
  readonly environment?: NodeJS.ProcessEnv;
  /** The user id (and group id) that the process takes on before its first call. */
  readonly user?: number;
}

export const startDatabase = ({ config, socket, environment, user }: DatabaseOptions): Database => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'database-process.ts')], {
    env: {
      ...process.env,
      DKE_PKCS11_CONF: config,
      DKE_PKCS11_SOCKET: socket,
      ...(user === undefined ? {} : { DKE_TEST_USER: String(user) }),
      ...environment,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  endWithTest(child);
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  // `call` reports its end.
  child.stdin.on('error', () => undefined);
  // Not 'exit': its last answers and its complaints are read after its end.
  const gone = once(child, 'close');
  const waiting: PromiseWithResolvers<Answer>[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.resolve(JSON.parse(line) as Answer));
  void gone.then(([code, signal]) => {
    for (const each of waiting.splice(0))
      each.reject(new Error(`the database process ended (${signal ?? code}): ${complaints}`));
  });
  return {
    pid: child.pid ?? 0,
    child,
    call: (name, input) => {
      const answer = Promise.withResolvers<Answer>();
      if (child.exitCode !== null || child.signalCode !== null) answer.reject(new Error(`it has ended: ${complaints}`));
      else {
        waiting.push(answer);
        child.stdin.write(`${JSON.stringify({ ...input, do: name })}\n`);
      }
      return answer.promise;
    },
    complaints: () => complaints,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.stdin.end();
      await gone;
    },
  };
};
