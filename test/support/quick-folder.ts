// Temporary files of a test run are in memory where there is room. Services sync every change that
// they confirm, so on a disk a run mostly waits for the disk. Tests say nothing about power
// failures: those about syncs that fail or never end make them so (struck-server.ts, hung-disk.ts).
// `TMPDIR=/tmp npm test` runs on the disk.
import { chmodSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { printStops } from './stops.ts';

const memory = '/dev/shm';
/** A run uses about a quarter of it. */
const enough = 8 * 1024 ** 3;
const hasRoom = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return Math.min(bavail * bsize, freemem(), process.availableMemory()) > enough;
  } catch {
    return false;
  }
};

/** Where files need not outlive the machine. */
export const quickFolder = (): string => (process.env.TMPDIR === undefined && hasRoom() ? memory : tmpdir());

/**
 * Containers can share this memory and have numbers of processes of their own: a run knows only
 * those of its namespace.
 */
const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
const folderName = new RegExp(`^dke-run-${namespace}-(\\d+)-`);
/** The folder that the setup below created; undefined: none. */
export const runFolder = (): string | undefined => (folderName.test(basename(tmpdir())) ? tmpdir() : undefined);

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
};

/** The setup of a run: all its programs get the folder as TMPDIR. */
export default (): (() => void) | undefined => {
  if (process.env.TMPDIR !== undefined) return undefined;
  const place = quickFolder();
  if (place !== memory) {
    console.log(`temporary files are on the disk: ${memory} or the memory has less than 8 GiB of room`);
    return undefined;
  }
  const remove = (path: string): void => {
    try {
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    } catch (error) {
      // A mount of a test that was broken off, for example: no result of the run depends on it.
      console.log(`temporary files are left: ${String(error)}`);
    }
  };
  // Folders of runs that were killed: their processes are gone.
  for (const name of readdirSync(place)) {
    const [, pid] = folderName.exec(name) ?? [];
    if (pid !== undefined && isGone(Number(pid))) remove(join(place, name));
  }
  const folder = mkdtempSync(join(place, `dke-run-${namespace}-${process.pid}-`));
  // Everyone may write to the folder, as to /tmp: database servers run as other users.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  // A run that is broken off ends without its tear-down.
  process.once('exit', () => remove(folder));
  return () => {
    printStops(folder);
    remove(folder);
  };
};
