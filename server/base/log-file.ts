// A log in a file, for the service and the agent. Lines are written in the background, so that a
// disk that hangs delays the log and nothing else. What a write could not store is tried again
// every second. What waits is limited: lines beyond that are lost and counted. A log never ends the
// process that writes it.
//
// The file is rotated by size and by age. Its name is looked up before each write, so that another
// program may move it away.

import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface LogFileOptions {
  readonly path: string;
  readonly rotateBytes: number;
  /** Infinity: by size only. */
  readonly rotateMs: number;
  /** Files next to the current one; the oldest are removed. 0: all stay. */
  readonly keep: number;
  /**
   * False: the last name of the path must be a regular file, not a link, and what it is is not
   * waited for. Default true.
   */
  readonly followsLinks?: boolean;
  /** Called when lines reach the file again. */
  readonly recovered: (failure: LogFailure) => void;
  readonly now?: () => number;
}

export interface LogFailure {
  readonly since: number;
  readonly message: string;
  /** Lines that were lost in the meantime. */
  readonly lost: number;
}

export interface LogFileState {
  /** Lines, since the process started. */
  readonly lost: number;
  /** Null: the last write succeeded. */
  readonly failure: LogFailure | null;
}

export interface LogFile {
  /** One line with its end. */
  write(line: string): void;
  /** Opens the file again by its name, and creates it. */
  reopen(): void;
  state(): LogFileState;
  /** Writes what waits, at once: the process is about to exit. */
  flushSync(): void;
  /** Writes what waits, and closes the file. */
  close(): Promise<void>;
}

const mostWaiting = 8 << 20;
const retryMs = 1_000;
const mode = 0o640;

interface OpenFile {
  readonly handle: FileHandle;
  readonly begunAt: number;
}

/**
 * When its first line was written, as the line says: not every file system knows when a file was
 * created.
 */
const beginOf = async (handle: FileHandle): Promise<number | undefined> => {
  const head = Buffer.alloc(512);
  const { bytesRead } = await handle.read(head, 0, head.length, 0);
  const [, time = ''] = /"time":"([^"]{20,40})"/.exec(head.toString('latin1', 0, bytesRead)) ?? [];
  const at = Date.parse(time);
  return Number.isNaN(at) ? undefined : at;
};

const flagsOf = (followsLinks: boolean): number => {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  return O_RDWR | O_APPEND | O_CREAT | (followsLinks ? 0 : O_NOFOLLOW | O_NONBLOCK);
};

const openFile = async (path: string, followsLinks: boolean, now: () => number): Promise<OpenFile> => {
  const handle = await open(path, flagsOf(followsLinks), mode);
  try {
    const regular = (await handle.stat()).isFile();
    if (!regular && !followsLinks) throw new Error(`${path} is not a regular file`);
    return { handle, begunAt: (regular ? await beginOf(handle) : undefined) ?? now() };
  } catch (error) {
    await handle.close();
    throw error;
  }
};

/** Moves the file to a name of its time, and removes the oldest beyond `keep`. */
const moveAway = async (path: string, keep: number, at: number): Promise<void> => {
  const folder = dirname(path);
  const stamp = new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const rotated = (await readdir(folder))
    .filter((name) => name.startsWith(`${basename(path)}.`))
    .filter((name) => /^\d{8}T\d{6}Z(-\d{4})?$/.test(name.slice(basename(path).length + 1)))
    .sort();
  const begin = `${basename(path)}.${stamp}`;
  // Behind the last of this second: an earlier one may be removed already, and the order of names
  // is that of time.
  const same = rotated.findLast((name) => name.startsWith(begin));
  const name =
    same === undefined ? begin : `${begin}-${String(Number(same.slice(begin.length + 1)) + 1).padStart(4, '0')}`;
  await rename(path, join(folder, name));
  rotated.push(name);
  if (keep > 0) for (const old of rotated.slice(0, -keep)) await unlink(join(folder, old));
};

/** The file that has the name now, rotated before it becomes too large or too old. */
const createRotatedFile = ({
  path,
  rotateBytes,
  rotateMs,
  keep,
  followsLinks,
  now,
}: Required<Omit<LogFileOptions, 'recovered'>>) => {
  let file: OpenFile | undefined;
  const close = async (): Promise<void> => {
    const own = file;
    file = undefined;
    await own?.handle.close();
  };
  const open = async (): Promise<OpenFile> => {
    if (file !== undefined) {
      const own = await file.handle.stat();
      const found = await stat(path).catch(() => undefined);
      if (own.ino !== found?.ino || own.dev !== found.dev) await close();
    }
    file ??= await openFile(path, followsLinks, now);
    return file;
  };
  return {
    open,
    close,
    /** The file that the next bytes belong to. */
    forBytes: async (bytes: number): Promise<FileHandle> => {
      const { handle, begunAt } = await open();
      const found = await handle.stat();
      const full = found.size > 0 && (found.size + bytes > rotateBytes || now() - begunAt >= rotateMs);
      // Only a file is moved away: no link, no pipe, no device.
      if (!full || !(await lstat(path)).isFile()) return handle;
      await close();
      await moveAway(path, keep, now());
      return (await open()).handle;
    },
  };
};

/** Lines that wait, and what became of earlier ones. */
const createQueue = ({ recovered, now }: Pick<Required<LogFileOptions>, 'recovered' | 'now'>) => {
  let lines: string[] = [];
  let waiting = 0;
  /** What is being written; the rest of what was written in part comes first. */
  let current: { bytes: Buffer; readonly lines: number } | undefined;
  let lost = 0;
  let failure: { readonly since: number; message: string; lost: number } | null = null;
  const lose = (count: number): void => {
    lost += count;
    if (failure !== null) failure.lost += count;
  };
  return {
    add: (line: string): void => {
      lines.push(line);
      waiting += line.length;
      while (waiting > mostWaiting && lines.length > 1) {
        waiting -= lines.shift()?.length ?? 0;
        lose(1);
      }
    },
    lose,
    hasLines: (): boolean => lines.length > 0,
    /** The bytes to write next; undefined when nothing waits. */
    take: (): Buffer | undefined => {
      if (current === undefined && lines.length > 0) {
        current = { bytes: Buffer.from(lines.join(''), 'utf8'), lines: lines.length };
        lines = [];
        waiting = 0;
      }
      return current?.bytes;
    },
    /** Reports that `count` more bytes of what was taken are in the file. */
    wrote: (count: number): void => {
      if (current === undefined) return;
      current.bytes = current.bytes.subarray(count);
      if (current.bytes.length > 0) return;
      current = undefined;
      const over = failure;
      failure = null;
      if (over !== null) recovered(over);
    },
    /** What was taken is being written by another call. */
    leaveTaken: (): void => {
      current = undefined;
    },
    loseAll: (): void => lose(lines.length + (current?.lines ?? 0)),
    failed: (error: unknown): void => {
      const message = error instanceof Error ? error.message : 'failed';
      failure ??= { since: now(), message, lost: 0 };
      failure.message = message;
    },
    isFailing: (): boolean => failure !== null,
    state: (): LogFileState => ({ lost, failure: failure === null ? null : { ...failure } }),
  };
};

export const openLogFile = (options: LogFileOptions): LogFile => {
  const { path, recovered, followsLinks = true, now = Date.now } = options;
  const file = createRotatedFile({ ...options, followsLinks, now });
  const queue = createQueue({ recovered, now });
  let inFlight = false;
  let running: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let reopening = false;
  let closed = false;

  const drain = async (): Promise<void> => {
    try {
      if (reopening) await file.open();
      reopening = false;
      for (let bytes = queue.take(); bytes !== undefined; bytes = queue.take()) {
        const handle = await file.forBytes(bytes.length);
        inFlight = true;
        const { bytesWritten } = await handle.write(bytes).finally(() => {
          inFlight = false;
        });
        queue.wrote(bytesWritten);
      }
    } catch (error) {
      queue.failed(error);
      // The file is closed, so that the next write opens it again by its name.
      await file.close().catch(() => undefined);
    }
  };
  const start = (): void => {
    running ??= drain().finally(() => {
      running = undefined;
      if (closed) return;
      if (!queue.isFailing()) {
        if (queue.hasLines()) start();
        return;
      }
      clearTimeout(retry);
      retry = setTimeout(start, retryMs);
      retry.unref();
    });
  };

  const flushSync = (): void => {
    // A write that is in progress ends on its own.
    if (inFlight) queue.leaveTaken();
    let fd: number | undefined;
    try {
      for (let bytes = queue.take(); bytes !== undefined; bytes = queue.take()) {
        fd ??= openSync(path, flagsOf(followsLinks), mode);
        queue.wrote(writeSync(fd, bytes));
      }
    } catch (error) {
      queue.failed(error);
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  };
  process.on('exit', flushSync);

  return {
    write: (line) => {
      if (closed) return queue.lose(1);
      queue.add(line);
      // While it fails it is tried again by the clock: a full disk is not asked with every line.
      if (!queue.isFailing()) start();
    },
    reopen: () => {
      reopening = true;
      start();
    },
    state: queue.state,
    flushSync,
    close: async () => {
      closed = true;
      clearTimeout(retry);
      await running;
      flushSync();
      queue.loseAll();
      await file.close().catch(() => undefined);
      process.off('exit', flushSync);
    },
  };
};
