// A disk that hangs as long as a test wants it to (hung-disk.c): for a server of ours, or a
// PostgreSQL.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './host.ts';

export interface HungDisk {
  /** For the process whose disk it is to be. */
  readonly environment: { readonly LD_PRELOAD: string; readonly DKE_TEST_HUNG: string };
  /** From now on a sync does not end. */
  hang(): void;
  /** Resolves when one waits. */
  reached(): Promise<true>;
  goOn(): void;
  remove(): void;
}

export const makeHungDisk = (): HungDisk => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-hung-disk-'));
  // Another user's process writes its id here.
  chmodSync(folder, 0o777);
  const library = join(folder, 'hung-disk.so');
  execFileSync('cc', [
    '-shared',
    '-fPIC',
    '-O1',
    '-Wall',
    '-Werror',
    '-o',
    library,
    join(import.meta.dirname, 'hung-disk.c'),
  ]);
  chmodSync(library, 0o755);
  const path = join(folder, 'hung');
  return {
    environment: { LD_PRELOAD: library, DKE_TEST_HUNG: path },
    hang: () => writeFileSync(path, ''),
    reached: () => until('a sync', async () => (existsSync(`${path}.waiting`) ? true : undefined)),
    goOn: () => {
      rmSync(path, { force: true });
      rmSync(`${path}.waiting`, { force: true });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
