// Java programs of tests: Debian's paths of the jars, our built JCA provider, and a JVM whose
// progress can be watched.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { installed } from './tools.ts';

export const jars = {
  derby: '/usr/share/java/derby.jar',
  derbyTools: '/usr/share/java/derbytools.jar',
  hsqldb: '/usr/share/java/hsqldb.jar',
  jce: resolve(import.meta.dirname, '../../build/provider/java/dke-jce.jar'),
} as const;

export const javaPresent = (): boolean =>
  installed('openjdk-17-jdk-headless', 'java', 'javac') &&
  installed('openjdk-17-jdk-headless, then npm run build:native', jars.jce);
export const derbyPresent = (): boolean => javaPresent() && installed('derby-tools', jars.derby, jars.derbyTools);
export const hsqldbPresent = (): boolean => javaPresent() && installed('libhsqldb-java', jars.hsqldb);

/** These programs are over before an optimizing compiler has been worth it. */
export const shortLived = '-XX:TieredStopAtLevel=1';

export interface JavaProcess {
  readonly child: ChildProcess;
  /** Resolves when it has printed the text so many times; rejects when it ends before that. */
  printed(text: string, times: number): Promise<void>;
  /** What it printed on both outputs, when it has ended. */
  ended(): Promise<{ readonly code: number | null; readonly out: string }>;
}

export const startJava = (
  args: readonly string[],
  options: { readonly environment: NodeJS.ProcessEnv; readonly folder: string; readonly input?: string },
): JavaProcess => {
  const child = spawn('java', [shortLived, ...args], {
    env: options.environment,
    cwd: options.folder,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let out = '';
  const watchers = new Set<() => void>();
  const take = (part: Buffer): void => {
    out += part.toString();
    for (const look of watchers) look();
  };
  child.stdout?.on('data', take);
  child.stderr?.on('data', take);
  // The program may exit before it has read all of its input: that is not an error.
  child.stdin?.on('error', () => undefined).end(options.input);
  const gone = once(child, 'close');
  return {
    child,
    printed: (text, times) =>
      new Promise((resolve_, reject) => {
        const look = (): void => {
          if (out.split(text).length <= times) return;
          watchers.delete(look);
          resolve_();
        };
        watchers.add(look);
        void gone.then(() => reject(new Error(`it ended before it had printed "${text}" ${times} times:\n${out}`)));
        look();
      }),
    async ended() {
      await gone;
      return { code: child.exitCode, out };
    },
  };
};
