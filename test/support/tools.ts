// Programs of others that tests run: whether they are there, and one run of one of them.
import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { isAbsolute, join } from 'node:path';

/** What is run for tests may live where an ordinary user does not look. */
const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'];

const allows = (path: string, mode: number): boolean => {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
};

/** The path of a program, or undefined. */
export const findProgram = (name: string): string | undefined =>
  folders.map((folder) => join(folder, name)).find((path) => allows(path, constants.X_OK));

const isThere = (name: string): boolean =>
  isAbsolute(name) ? allows(name, constants.R_OK) : findProgram(name) !== undefined;

/**
 * True when everything named is there, files by their path. Otherwise one line says which package
 * brings it; where a missing program means a test that silently does not run, in continuous
 * integration, that is an error.
 */
export const installed = (debianPackage: string, ...needed: readonly string[]): boolean => {
  const missing = needed.filter((name) => !isThere(name));
  if (missing.length === 0) return true;
  const reason = `${missing.join(' and ')} not installed (package ${debianPackage})`;
  if (process.env.CI !== undefined) throw new Error(reason);
  console.log(`skipped: ${reason}`);
  return false;
};

/** Why strace cannot trace a process here; undefined: it can. */
export const whyNoTrace = (): string | undefined => {
  const { error, status } = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']);
  if (error !== undefined) return 'strace is not installed';
  return status === 0 ? undefined : 'this host does not allow tracing of processes';
};

export interface Outcome {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly out: string;
  readonly complaints: string;
}

export interface RunOptions {
  readonly environment?: NodeJS.ProcessEnv;
  readonly input?: string | Uint8Array;
  readonly folder?: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** Runs a program to its end. Any exit code is an answer. */
export const run = (program: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = execFile(
      findProgram(program) ?? program,
      [...args],
      {
        env: { ...process.env, LC_ALL: 'C', ...options.environment },
        ...(options.folder === undefined ? {} : { cwd: options.folder }),
        ...(options.uid === undefined ? {} : { uid: options.uid }),
        ...(options.gid === undefined ? {} : { gid: options.gid }),
        maxBuffer: 16 * 1024 * 1024,
      },
      (error, out, complaints) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
        resolve({
          code,
          out,
          complaints: error === null || code !== null ? complaints : `${complaints}${error.message}`,
        });
      },
    );
    // A program that does not read its input may exit before it gets it.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(options.input);
  });
