// Files that are there, whole, after a power failure: what is written reaches the disk before its
// name does, and the name before anything relies on it. A rename without a sync of its folder may
// be undone; so may a removal: then a file that was destroyed is back. The only place that renames
// files of the service (test/house/durable-files.test.ts).

import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

export const syncFolder = (folder: string): void => {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};
const foldersOf = (from: string, to: string): readonly string[] => [...new Set([dirname(to), dirname(from)])];

/**
 * Writes a file through to the disk; its name is durable once its folder is synced. Mode 600, if
 * none is given. `flag`: 'w', or 'wx' for a new one.
 */
export const writeDurably = (
  path: string,
  content: string | Uint8Array,
  { mode, flag = 'w' }: { readonly mode?: number; readonly flag?: 'w' | 'wx' } = {},
): void => {
  const fd = openSync(path, flag, 0o600);
  try {
    if (mode !== undefined) fchmodSync(fd, mode);
    writeFileSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

/**
 * Gives a file that was written through its name. After a crash, the name is of the former file or
 * of this one.
 */
export const putInPlace = (draft: string, path: string): void => {
  renameSync(draft, path);
  for (const folder of foldersOf(draft, path)) syncFolder(folder);
};

/** `putInPlace` off the main thread. */
export const putInPlaceSoon = async (draft: string, path: string): Promise<void> => {
  await rename(draft, path);
  for (const folder of foldersOf(draft, path)) {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  }
};

/** Disks that have no second name for a file. */
const withoutLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Where a file has no second name: an empty file takes this one first, which fails with EEXIST
 * where there is one, and the draft takes the place of that file. A program that replaces files
 * without asking can still come between the last look and the rename. After a crash there may be an
 * empty file beside the draft.
 */
const publishWithoutLinks = async (draft: string, path: string): Promise<void> => {
  const own = await open(path, 'wx', 0o600);
  try {
    const [held, found] = [await own.stat(), await lstat(path)];
    if (held.ino !== found.ino || held.dev !== found.dev || found.size > 0)
      throw Object.assign(new Error(`${path} was made by another program`), { code: 'EEXIST', path, syscall: 'link' });
    await putInPlaceSoon(draft, path);
  } finally {
    await own.close();
  }
};

/**
 * Gives a new file its name off the main thread: a file that has come to this name in the meantime
 * stays, and the call fails with EEXIST. After a crash the file has the draft's name, both names,
 * or this one. `makeLink`: the system's `link`.
 */
export const publishSoon = async (draft: string, path: string, makeLink = link): Promise<void> => {
  try {
    await makeLink(draft, path);
  } catch (error) {
    if (!withoutLinks.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await publishWithoutLinks(draft, path);
    return;
  }
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
    await rm(draft);
    await folder.sync();
  } finally {
    await folder.close();
  }
};

/** Replaces a file as a whole: after a crash it is the old one or the new one. */
export const replaceFile = (path: string, content: string | Uint8Array, mode?: number): void => {
  const draft = `${path}.new`;
  // A new one: on a disk of others, a link could be in its place.
  rmSync(draft, { force: true });
  writeDurably(draft, content, mode === undefined ? { flag: 'wx' } : { mode, flag: 'wx' });
  putInPlace(draft, path);
};

/** Removes a file that may be there; it does not come back. */
export const removeDurably = (path: string): void => {
  if (!existsSync(path)) return;
  rmSync(path);
  syncFolder(dirname(path));
};

/** Writes all of the bytes at a position: one write may take a part of them. */
export const writeWhole = async (
  handle: Pick<FileHandle, 'write'>,
  bytes: Uint8Array,
  position: number,
): Promise<void> => {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at);
    if (bytesWritten === 0) throw new Error('the disk takes no bytes');
    at += bytesWritten;
  }
};

/**
 * What is done with whole files while the service runs, on whatever disk they are
 * (ports/foreign-disk.ts). Here it is done at once.
 */
export const wholeFiles = {
  read: async (path: string): Promise<Buffer> => readFileSync(path),
  replace: async (path: string, content: string): Promise<void> => replaceFile(path, content),
  exists: async (path: string): Promise<boolean> => existsSync(path),
  rename: async (from: string, to: string): Promise<void> => putInPlace(from, to),
  remove: async (path: string): Promise<void> => removeDurably(path),
};

/**
 * Throws unless the folder takes a new file that reaches the disk. Off the main thread; nothing of
 * it stays.
 */
export const probeDirectory = async (folder: string): Promise<void> => {
  const path = `${folder}/probe`;
  const handle = await open(path, 'w', 0o600);
  try {
    await writeWhole(handle, Buffer.alloc(4_096), 0);
    await handle.datasync();
  } finally {
    await handle.close();
    await rm(path, { force: true });
  }
};
