// A disk that can be filled: a small tmpfs of the test's own. Mounting needs a permission that not
// every host gives; then this returns the reason, which tests print.
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly folder: string;
  /** Uses all free bytes except so many (ENOSPC after them). */
  fill(leave?: number): void;
  /** Frees what `fill` took. */
  free(): void;
  end(): void;
}

/** The disk, or why there is none. `size` as mount takes it, for example '8m'. */
export const mountSmallDisk = (size: string): SmallDisk | string => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-small-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', folder]);
  if (mounted.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    return `a tmpfs cannot be mounted: ${mounted.error?.message ?? mounted.stderr.toString().trim()}`;
  }
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill: (leave = 0) => {
      const file = openSync(ballast, 'a');
      try {
        for (let size = 1 << 16; size >= 1; size = size > 1 ? size >> 1 : 0) {
          const block = Buffer.alloc(size);
          try {
            for (;;) writeSync(file, block);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          }
        }
        if (leave > 0) ftruncateSync(file, Math.max(0, fstatSync(file).size - leave));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    end: () => {
      spawnSync('umount', ['-l', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

export interface MountedFolder {
  /** Where it is seen. */
  readonly point: string;
  mount(): void;
  /** Leaves the bare mount point. */
  unmount(): void;
  end(): void;
}

/**
 * A folder on a mount point of its own, as a disk that can be unmounted and mounted again; or why
 * there is none.
 */
export const mountFolder = (): MountedFolder | string => {
  const base = mkdtempSync(join(tmpdir(), 'dke-mounted-'));
  const [disk, point] = [join(base, 'disk'), join(base, 'point')];
  for (const each of [disk, point]) mkdirSync(each, { mode: 0o700 });
  const run = (command: string, ...args: readonly string[]): string | undefined => {
    const { status, error, stderr } = spawnSync(command, args);
    return status === 0 ? undefined : (error?.message ?? stderr.toString().trim());
  };
  const must = (failure: string | undefined): void => {
    if (failure !== undefined) throw new Error(failure);
  };
  const failure = run('mount', '--bind', disk, point);
  if (failure !== undefined) {
    rmSync(base, { recursive: true, force: true });
    return `a folder cannot be mounted: ${failure}`;
  }
  return {
    point,
    mount: () => must(run('mount', '--bind', disk, point)),
    unmount: () => must(run('umount', '-l', point)),
    end: () => {
      run('umount', '-l', point);
      rmSync(base, { recursive: true, force: true });
    },
  };
};
