// The files that the command reads a secret from and writes one to. A secret's file belongs to its
// user and is readable by no other user; an existing one is not overwritten unless asked.

import { once } from 'node:events';
import {
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { command } from '../../base/command-line.ts';
import { forbiddenModeOf } from '../../base/secret-mode.ts';
import { CommandError } from './exit-codes.ts';
import { withoutProgress } from './progress.ts';

/**
 * A user who may not read a file is told how to get it: commands of the service's host run as its
 * user.
 */
const unreadable = (path: string, error: unknown, hint?: string): CommandError => {
  const { code } = error as NodeJS.ErrnoException;
  const forUser = `this command runs as user ${process.geteuid?.() ?? 0}: copy the file for this user (install -o USER -m 600)`;
  return new CommandError('permission', `${path} cannot be read (${code})`, {
    hint: hint ?? (code === 'EACCES' ? forUser : 'name a file that exists and that this user can read'),
  });
};

export const readFile = (path: string, hint?: string): Buffer => {
  try {
    return readFileSync(path);
  } catch (error) {
    throw unreadable(path, error, hint);
  }
};

/**
 * A file that is too large for memory, to be read once. A failure is one of the file, whatever it
 * is read for.
 */
export const openLargeFile = async (path: string): Promise<{ readonly from: Readable; readonly size: number }> => {
  const fail = (error: unknown): never => {
    throw unreadable(path, error);
  };
  const file = await open(path).catch(fail);
  const { size } = await file.stat();
  const read = async function* (): AsyncGenerator<Buffer> {
    let left = size;
    try {
      for await (const part of file.createReadStream({ end: Math.max(0, size - 1) })) {
        left -= (part as Buffer).length;
        yield part as Buffer;
      }
    } catch (error) {
      fail(error);
    }
    if (left > 0) throw new CommandError('permission', `${path} became shorter while it was read`);
  };
  return { from: Readable.from(read(), { objectMode: false }), size };
};

export const readTextFile = (path: string): string => readFile(path).toString('utf8');

/**
 * Bytes of a secret file (base/secret-mode.ts) of this user, or of root. Root reads files of every
 * user. `-` is standard input.
 */
export const readSecretFile = (path: string): Buffer => {
  if (path === '-') return readFileSync(0);
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOCTTY);
  } catch (error) {
    throw unreadable(path, error);
  }
  try {
    const { mode, uid } = fstatSync(fd);
    const user = process.geteuid?.() ?? 0;
    if ((mode & forbiddenModeOf(uid, user)) !== 0)
      throw new CommandError('permission', `${path} can be read by others (mode ${(mode & 0o777).toString(8)})`, {
        hint: command`chmod 600 ${path}`,
      });
    if (user !== 0 && uid !== 0 && uid !== user)
      throw new CommandError('permission', `${path} belongs to another user (uid ${uid})`, {
        hint: 'run the command as that user, or as root',
      });
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
};

/** More than any secret with its configuration. */
const reservedBytes = 64 * 1024;

export interface ReservedFile {
  /** Writes it through to the disk and closes it. */
  write(content: string | Uint8Array): void;
  /** Closes it; a file that was made here goes away. */
  discard(): void;
}

/**
 * Opens a file with mode 600 before the service is asked for what will be in it: a secret is shown
 * once, and a file that cannot be written must not cost it.
 */
export const reserveSecretFile = (path: string, force: boolean): ReservedFile => {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  let fd: number;
  try {
    fd = openSync(path, O_WRONLY | O_CREAT | O_NOFOLLOW | (force ? 0 : O_EXCL), 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new CommandError('permission', `${path} exists`, {
        hint: 'name another file, or give --force to overwrite it',
      });
    throw new CommandError('permission', `${path} cannot be written (${code})`, {
      hint: 'name a file in a folder that this user can write',
    });
  }
  if ((fstatSync(fd).mode & 0o077) !== 0) {
    closeSync(fd);
    throw new CommandError('permission', `${path} can be read by others`, { hint: command`chmod 600 ${path}` });
  }
  const before = fstatSync(fd).size;
  // A full disk is noticed now, and what is reserved is there later.
  try {
    const room = Math.max(0, reservedBytes - before);
    if (room > 0 && writeSync(fd, Buffer.alloc(room), 0, room, before) !== room)
      throw Object.assign(new Error('a part'), { code: 'ENOSPC' });
    fsyncSync(fd);
  } catch (error) {
    ftruncateSync(fd, before);
    closeSync(fd);
    if (!force) unlinkSync(path);
    throw new CommandError('permission', `${path} cannot be written (${(error as NodeJS.ErrnoException).code})`, {
      hint: 'free some space, or name a file on another disk',
    });
  }
  return {
    write: (content) => {
      const bytes = Buffer.from(content as string);
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
      bytes.fill(0);
      ftruncateSync(fd, bytes.length);
      fsyncSync(fd);
      closeSync(fd);
    },
    discard: () => {
      ftruncateSync(fd, before);
      closeSync(fd);
      if (!force) unlinkSync(path);
    },
  };
};

/** Writes into a new file, or to standard output. */
export const exportTo = async (
  path: string | undefined,
  write: (into: NodeJS.WritableStream) => Promise<void>,
): Promise<void> => {
  if (path === undefined) {
    await withoutProgress(() => write(process.stdout)).catch((error: NodeJS.ErrnoException) => {
      // Who reads no further (`| head`) has what it wanted.
      if (error.code !== 'EPIPE') throw error;
    });
    return;
  }
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  try {
    await once(file, 'open');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError('permission', code === 'EEXIST' ? `${path} exists` : `${path} cannot be written (${code})`, {
      hint: 'name another file',
    });
  }
  const closed = once(file, 'close').catch(() => undefined);
  try {
    await write(file);
    await new Promise<void>((resolve, reject) => {
      file.once('error', reject);
      file.end((error?: Error | null) => (error == null ? resolve() : reject(file.errored ?? error)));
    });
  } catch (error) {
    // A part of an export looks like the whole.
    unlinkSync(path);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EIO' && code !== 'EFBIG') throw error;
    throw new CommandError('permission', `${path} cannot be written (${code})`, {
      hint: 'free some space, or name a file on another disk',
    });
  } finally {
    file.destroy();
    await closed;
  }
};

/** The lines of a text, or of standard input (-). */
export async function* readLines(path: string): AsyncGenerator<string> {
  const input = path === '-' ? process.stdin : createReadStream(path, 'utf8');
  try {
    // Line feeds only end a line: what else a text may hold is escaped in it.
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw unreadable(path, error);
  }
}
