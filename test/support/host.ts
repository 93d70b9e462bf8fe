// What the demonstration and the measurements look up about processes and files of this host.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { queryStored } from './test-store.ts';

/** The processes whose command line holds the text, as [pid, command line]. */
export const processesWith = (text: string): readonly (readonly [number, string])[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').join(' ').trim();
        return line.includes(text) ? [[Number(name), line] as const] : [];
      } catch {
        return []; // it ended meanwhile
      }
    });

/**
 * Repeats `ask` until it returns an answer; rejects with `what` after so many seconds without one.
 */
export const until = async <T>(what: string, ask: () => Promise<T | undefined>, seconds = 300): Promise<T> => {
  const began = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    const passedMs = performance.now() - began;
    if (passedMs > seconds * 1_000) throw new Error(`${what}: not within ${seconds} seconds`);
    // Less often after a longer time: questions use the processors that the answer needs.
    await new Promise((resolve) => setTimeout(resolve, Math.min(500, Math.max(50, passedMs / 10))));
  }
};

/** A zombie has ended: the first process of a container often collects none. */
export const isAlive = (pid: number): boolean => {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return status[status.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
};

/** Kills a process, which may have ended on its own since it was found. */
export const killProcess = (pid: number, signal: NodeJS.Signals = 'SIGKILL'): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/** Ends a process; resolves when it has exited. */
export const endProcess = async (pid: number): Promise<void> => {
  killProcess(pid, 'SIGTERM');
  await until(`the end of process ${pid}`, async () => (isAlive(pid) ? undefined : true));
};

/** The encrypted records that the service of a folder holds of one object, by kind of copy. */
export const recordsOf = async (folder: string, objectId: string): Promise<ReadonlyMap<string, Buffer>> => {
  const statement = 'select class, record from key_records where object_id = ? and record is not null';
  const rows = await queryStored(folder, statement, objectId);
  return new Map(rows.map((row) => [String(row.class), Buffer.from(row.record as Uint8Array)]));
};

/** The files of a folder (not of the folders in it) whose bytes hold the needle. */
export const filesWith = (folder: string, needle: Buffer): readonly string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(folder, entry.name)).includes(needle))
    .map((entry) => entry.name);
