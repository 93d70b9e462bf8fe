// The folder of the snapshots: one file each, named by its id, mode 0600 in a folder that no other
// user can read. What is being written has `.part` until it is whole and durable.

import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { shellWord } from '../../base/command-line.ts';
import { localDisk } from '../../base/disk-files.ts';
import { isId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { StartError } from '../../base/start-error.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { SnapshotArchive } from '../../ports/snapshot-archive.ts';
import { inspectSnapshot, isSigned, openSnapshot, readItems } from './inspect-snapshot.ts';
import {
  damaged,
  erasureText,
  headLength,
  packErased,
  parsePreface,
  readErased,
  readHead,
  slotFixed,
  slotLength,
  slotsOf,
} from './snapshot-layout.ts';
import { beginSnapshot, checkOf, type SnapshotCore } from './write-snapshot.ts';

const extension = '.dkesnap';
/** Longest file that is accepted from elsewhere. */
const mostBytes = 64 * 1024 ** 3;
const pieceBytes = 256 * 1024;

/** Throws StartError where it is there and cannot be the folder of snapshots. Answers its mode. */
export const requireSnapshotFolder = (directory: string): number | undefined => {
  const state = lstatSync(directory, { throwIfNoEntry: false });
  if (state === undefined) return undefined;
  const own = process.geteuid?.() ?? 0;
  if (!state.isDirectory())
    throw new StartError('permission', `${directory} (snapshots.directory) is not a folder`, {
      fix: 'move it away, or name another folder in dke.toml',
    });
  if (state.uid !== own)
    throw new StartError(
      'permission',
      `${directory} (snapshots.directory) belongs to user ${state.uid}: it must belong to user ${own}`,
      { fix: `chown -R ${own} ${shellWord(directory)}` },
    );
  return state.mode;
};

/** A folder that only the service's user can read, without unfinished files. */
const prepareFolder = (directory: string): void => {
  try {
    if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (((requireSnapshotFolder(directory) ?? 0) & 0o077) !== 0) chmodSync(directory, 0o700);
    for (const name of readdirSync(directory)) if (name.endsWith('.part')) unlinkSync(join(directory, name));
  } catch (error) {
    if (error instanceof StartError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new StartError('permission', `${directory}, the folder of snapshots, cannot be used (${code})`, {
      cause: error,
    });
  }
};

const eraseUnits = async (
  disk: ForeignDisk,
  path: string,
  id: string,
  which: Parameters<SnapshotArchive['erase']>[1],
  at: number,
  { publicKey, sign }: Parameters<SnapshotArchive['erase']>[3],
): ReturnType<SnapshotArchive['erase']> => {
  const file = await openSnapshot(path, 'r+', disk);
  const found: string[] = [];
  let total = 0;
  try {
    for await (const { slots, slotsAt } of file.segments()) {
      let place = slotsAt;
      const all = [...slotsOf(slots)];
      const units = await which(all.map((each) => each.id));
      for (const { id: unitId, body } of all) {
        if (units.has(unitId) || readErased(body) !== null) total += 1;
        if (units.has(unitId)) {
          found.push(unitId);
          // A file that is incomplete, or not ours, is written again.
          const before = readErased(body);
          const done =
            before?.publicKey.equals(publicKey) === true &&
            isSigned(erasureText(id, unitId, before.at), before.signature, publicKey);
          if (!done) {
            const over = packErased(at, publicKey, sign(erasureText(id, unitId, at)));
            await file.handle.put(over, place + slotFixed);
          }
        }
        place += slotLength;
      }
    }
    // Synced even when nothing was found: an erasure that was cut off before is made durable here.
    await file.handle.sync();
  } finally {
    await file.handle.close();
  }
  return { found, total };
};

/** How much stays free on the disk that receives a file: `bytes`, or `part` of a small disk. */
const leastFree = { bytes: 1024 ** 3, part: 0.05 };
const betweenLooks = 16 * 1024 ** 2;

/** Throws 'unavailable' when there is no room for more. */
const requireRoom = async (disk: ForeignDisk, folder: string): Promise<void> => {
  const { free, size } = await disk.space(folder);
  if (free >= Math.min(leastFree.bytes, size * leastFree.part)) return;
  throw new ServiceError('unavailable', `the disk of ${folder}, the folder of snapshots, is almost full`, {
    hint: 'free some space, and import the snapshot again',
  });
};

/**
 * The pieces of a file that begins as a snapshot does: other files are refused before they are
 * written.
 */
async function* requireSnapshot(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const piece of body) {
    if (head === undefined) {
      yield piece;
      continue;
    }
    head = Buffer.concat([head, piece]);
    if (head.length < headLength) continue;
    const whole = headLength + readHead(head);
    if (head.length < whole) continue;
    parsePreface(head.subarray(headLength, whole));
    yield head;
    head = undefined;
  }
  if (head !== undefined)
    throw new ServiceError('validation', 'this is not a snapshot', { reason: 'snapshot-damaged' });
}

const receiveFile = async (
  disk: ForeignDisk,
  path: string,
  body: Parameters<SnapshotArchive['receive']>[1],
): Promise<void> => {
  const draft = `${path}.part`;
  const file = await disk.open(draft, 'wx');
  try {
    let size = 0;
    let lookedAt = Number.NEGATIVE_INFINITY;
    for await (const piece of requireSnapshot(body)) {
      if (size - lookedAt >= betweenLooks) {
        await requireRoom(disk, dirname(path));
        lookedAt = size;
      }
      if (size + piece.length > mostBytes) throw new ServiceError('payload-too-large', 'the snapshot is too large');
      await file.put(piece, size);
      size += piece.length;
    }
    await file.sync();
    await disk.rename(draft, path);
  } catch (error) {
    await disk.remove(draft).catch(() => undefined);
    throw error;
  } finally {
    await file.close().catch(() => undefined);
  }
};

async function* contentOf(disk: ForeignDisk, path: string): AsyncGenerator<Buffer> {
  const { handle } = await openSnapshot(path, 'r', disk);
  try {
    for (let at = 0; ; ) {
      const piece = await handle.read(at, pieceBytes);
      if (piece.length === 0) return;
      at += piece.length;
      yield piece;
    }
  } finally {
    await handle.close();
  }
}

export const openArchive = (core: SnapshotCore, directory: string, disk: ForeignDisk = localDisk): SnapshotArchive => {
  const pathOf = (id: string): string => {
    if (!isId(id)) throw new ServiceError('not-found', 'snapshot not found');
    return join(directory, `${id}${extension}`);
  };
  const markPath = join(directory, 'folder');
  return {
    directory,
    prepare: () => prepareFolder(directory),
    // Compared with what the store knows by operations/snapshots/snapshot-folder.ts.
    reached: async () => true,
    require: async () => undefined,
    mark: async () => {
      try {
        return (await disk.read(markPath)).toString('utf8').trim();
      } catch {
        return undefined;
      }
    },
    setMark: (mark) => disk.replace(markPath, `${mark}\n`),
    begin: async (preface, recipients) => {
      try {
        return await beginSnapshot(core, pathOf(preface.snapshotId), preface, recipients, disk);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === undefined || !/^E[A-Z]+$/.test(code)) throw error;
        throw new ServiceError('unavailable', `the folder of snapshots cannot be written (${code})`, {
          hint: `check ${directory}`,
          cause: error,
        });
      }
    },
    inspect: (id, trusted) => inspectSnapshot(pathOf(id), trusted, disk),
    preface: async (id) => {
      const { preface, handle } = await openSnapshot(pathOf(id), 'r', disk);
      await handle.close();
      return preface;
    },
    async *items(id, key, trusted, digest) {
      const { closing } = await inspectSnapshot(pathOf(id), trusted, disk);
      if (closing.snapshotId !== id) throw damaged('it is the file of another snapshot');
      if (digest !== undefined && closing.digest !== digest) throw damaged('it was replaced in the meantime');
      yield* readItems(core, pathOf(id), key, disk);
    },
    checkOf: (key) => checkOf(core, key),
    erase: (id, which, at, signer) => eraseUnits(disk, pathOf(id), id, which, at, signer),
    // The database may have been changed: a value that is not an id has no file.
    has: async (id) => isId(id) && (await disk.exists(pathOf(id))),
    rename: async (from, to) => disk.rename(pathOf(from), pathOf(to)),
    remove: async (id) => disk.remove(pathOf(id)),
    receive: (id, body) => receiveFile(disk, pathOf(id), body),
    content: async (id) => contentOf(disk, pathOf(id)),
  };
};
