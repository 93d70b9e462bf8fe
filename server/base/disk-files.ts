// Files that are read and written piece by piece, on whatever disk they are
// (ports/foreign-disk.ts): here, or in the process of their disk (app/open/disk-process.ts). A file
// is a number that only this process has given: with the process, its open files end. Every step is
// short: what is written is synced as it comes, so that the last sync of a large file is not a long
// one.

import { type FileHandle, open, readdir, statfs } from 'node:fs/promises';
import type { DiskFile, ForeignDisk } from '../ports/foreign-disk.ts';
import { wholeFiles, writeWhole } from './durable-files.ts';

interface OpenFile {
  readonly handle: FileHandle;
  unsynced: number;
}

const files = new Map<number, OpenFile>();
/**
 * Begins with the microseconds of the host's own time, more than an earlier process of the disk has
 * counted: a file of that one is not taken for one of this process.
 */
let opened = Number(process.hrtime.bigint() / 1000n);
/** Written at most before they are synced: a slow disk takes them within the deadline of a step. */
const mostUnsynced = 8 * 1024 ** 2;

const found = (file: number): OpenFile => {
  const known = files.get(file);
  if (known === undefined) throw new Error('the file is not open: its disk did not answer in the meantime');
  return known;
};

export const fileTasks = {
  openFile: async (path: string, flag: 'r' | 'r+' | 'wx'): Promise<number> => {
    const handle = await open(path, flag, 0o600);
    opened += 1;
    files.set(opened, { handle, unsynced: 0 });
    return opened;
  },
  sizeOf: async (file: number): Promise<number> => (await found(file).handle.stat()).size,
  readAt: async (file: number, at: number, length: number): Promise<Buffer> => {
    const { handle } = found(file);
    const bytes = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await handle.read(bytes, done, length - done, at + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  },
  writeAt: async (file: number, bytes: Uint8Array, at: number): Promise<void> => {
    const own = found(file);
    await writeWhole(own.handle, bytes, at);
    own.unsynced += bytes.length;
    if (own.unsynced < mostUnsynced) return;
    await own.handle.datasync();
    own.unsynced = 0;
  },
  syncFile: async (file: number): Promise<void> => found(file).handle.sync(),
  closeFile: async (file: number): Promise<void> => {
    const { handle } = found(file);
    files.delete(file);
    await handle.close();
  },
  list: async (folder: string): Promise<readonly string[]> => readdir(folder),
  space: async (folder: string): Promise<{ readonly free: number; readonly size: number }> => {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free: bavail * bsize, size: blocks * bsize };
  },
};

type FileTasks = typeof fileTasks;
type Call = <N extends keyof FileTasks>(task: N, ...given: Parameters<FileTasks[N]>) => ReturnType<FileTasks[N]>;

/** A file by the calls of its disk. */
export const openBy = async (call: Call, path: string, flag: 'r' | 'r+' | 'wx'): Promise<DiskFile> => {
  const file = await call('openFile', path, flag);
  return {
    size: () => call('sizeOf', file),
    // A copy: its memory is this one's alone.
    read: async (at, length) => Buffer.from(await call('readAt', file, at, length)),
    put: (bytes, at) => call('writeAt', file, bytes, at),
    sync: () => call('syncFile', file),
    close: () => call('closeFile', file),
  };
};

const here: Call = (task, ...given) =>
  (fileTasks[task] as (...all: readonly unknown[]) => ReturnType<FileTasks[typeof task]>)(...given);

/**
 * Files without a process for their disk: those of the data directory, and those of programs that
 * have no disks to wait for.
 */
export const localDisk: ForeignDisk = {
  ...wholeFiles,
  open: (path, flag) => openBy(here, path, flag),
  list: fileTasks.list,
  space: fileTasks.space,
};
