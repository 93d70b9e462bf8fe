// Injects faults into the persistent system calls of a server: test/native/strikes intercepts the
// calls, and this file controls it through a few numbers in shared memory. Calls are counted over
// all threads, in their order.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const library = resolve(import.meta.dirname, '../../build/strikes/libdke_strikes.so');

/** Bits of the kinds; on regular files alone. */
export const callKinds = { write: 1, sync: 2, rename: 4, truncate: 8, remove: 16, create: 32 } as const;
export type CallKind = keyof typeof callKinds;
export const everyKind = Object.keys(callKinds) as readonly CallKind[];

/**
 * Tear: half of a write, or all of another call, is done; then the process is killed. Fail-from:
 * all later calls fail, as on a full disk.
 */
const modes = { count: 0, kill: 1, tear: 2, fail: 3, 'fail-from': 4 } as const;
export type StrikeMode = keyof typeof modes;
export const errorNumbers = { ENOSPC: 28, EIO: 5 } as const;

export interface Blow {
  readonly mode: StrikeMode;
  readonly kinds: readonly CallKind[];
  /** From 1 on, among the calls of these kinds. */
  readonly number: number;
  readonly error?: keyof typeof errorNumbers;
}

export interface Strikes {
  /** For the process that gets the faults. */
  readonly environment: NodeJS.ProcessEnv;
  /** Starts counting calls. */
  arm(blow: Blow): void;
  /**
   * Ends the strikes. Returns the number of calls and of failures, and the kind of the first
   * failure.
   */
  disarm(): { readonly counted: number; readonly struck: number; readonly kind: CallKind | undefined };
}

/** Why faults cannot be injected here; undefined: they can. */
export const whyNoStrikes = (): string | undefined =>
  existsSync(library) ? undefined : `${library} is not built: npm run build:native`;

export const openStrikes = (folder: string): Strikes => {
  const path = join(folder, 'strikes');
  const numbers = new Uint32Array(9);
  // The file is written completely and in place, because it is mapped.
  const put = (): void => writeFileSync(path, Buffer.from(numbers.buffer), { flag: existsSync(path) ? 'r+' : 'w' });
  put();
  return {
    environment: { LD_PRELOAD: library, DKE_STRIKES: path },
    arm: ({ mode, kinds, number, error }) => {
      const mask = kinds.reduce((sum, kind) => sum + callKinds[kind], 0);
      numbers.set([0, modes[mode], mask, number, error === undefined ? 0 : errorNumbers[error], 0, 0, 0, 0]);
      put();
      numbers[0] = 1;
      put();
    },
    disarm: () => {
      const now = readFileSync(path);
      const seen = new Uint32Array(now.buffer.slice(now.byteOffset, now.byteOffset + 36));
      numbers.fill(0);
      put();
      const [, , , , , counted = 0, struck = 0, kind = 0] = seen;
      return { counted, struck, kind: everyKind.find((name) => callKinds[name] === kind) };
    },
  };
};
