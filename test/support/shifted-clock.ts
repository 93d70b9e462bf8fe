// A clock that a test sets ahead for a process that it starts: libfaketime, read again at each
// look. Monotonic time continues as it does.
import { execFileSync } from 'node:child_process';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from './host.ts';

export interface ShiftedClock {
  /**
   * From now on the process sees the time that will be in so many milliseconds; less than 0: that
   * was.
   */
  ahead(ms: number): void;
  /** For the process that is to see it. */
  readonly environment: NodeJS.ProcessEnv;
}

const shared = '/dev/shm';
/** Each process with such a clock has two files there, which stay when it is killed. */
const removeLeft = (): void => {
  for (const name of readdirSync(shared)) {
    const [, pid] = /^(?:sem\.)?faketime_(?:sem|shm)_(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(shared, name), { force: true });
  }
};

/**
 * `folder` contains the file with the offset, which is 0 at first; `name` distinguishes several
 * clocks.
 */
export const shiftedClock = (folder: string, name = 'offset'): ShiftedClock => {
  removeLeft();
  const offset = join(folder, name);
  const ahead = (ms: number): void => {
    const seconds = Math.round(ms / 1000);
    // Renamed, so that a process that reads in the meantime finds no empty file.
    writeFileSync(`${offset}.next`, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    renameSync(`${offset}.next`, offset);
  };
  ahead(0);
  return {
    ahead,
    environment: {
      LD_PRELOAD: execFileSync('sh', ['-c', 'ls /usr/lib/*/faketime/libfaketimeMT.so.1'], { encoding: 'utf8' }).trim(),
      FAKETIME_TIMESTAMP_FILE: offset,
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  };
};
