// The files of a node's own state (ports/node-state.ts), in its data directory.

import { createHash } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../../base/command-line.ts';
import { replaceFile, syncFolder, writeWhole } from '../../base/durable-files.ts';
import { ServiceError } from '../../base/service-error.ts';
import { StartError } from '../../base/start-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { StorePosition } from '../../domain/change-protocol.ts';
import type { Log } from '../../ports/log.ts';
import type { NodeState, RecordedQuarantine } from '../../ports/node-state.ts';

/** Two places, written in turn: a write that a power failure cuts leaves the one before. */
const slotBytes = 512;

interface Slot {
  readonly turn: number;
  readonly position: StorePosition;
}
const codeOf = (text: string): string => createHash('sha256').update(`dke position ${text}`).digest('hex').slice(0, 16);
const pack = (slot: Slot): Buffer => {
  const text = JSON.stringify(slot);
  return Buffer.from(`${codeOf(text)} ${text}\n`.padEnd(slotBytes), 'latin1');
};
const unpack = (text: string): Slot | undefined => {
  const [line = ''] = text.split('\n');
  const json = line.slice(17);
  // What is torn or changed says nothing.
  return line.slice(0, 16) === codeOf(json) ? (JSON.parse(json) as Slot) : undefined;
};
const readSlots = (path: string): Slot | undefined => {
  if (!existsSync(path)) return undefined;
  const text = readFileSync(path, 'latin1');
  const slots = [text.slice(0, slotBytes), text.slice(slotBytes)].map(unpack);
  return slots.reduce((newest, slot) => ((slot?.turn ?? -1) > (newest?.turn ?? -1) ? slot : newest), undefined);
};

/** How long after a write that failed the next one is tried. */
const againAfterMs = 1_000;
/** A write that takes longer is one that the disk refuses. */
const hangsAfterMs = 5_000;

/**
 * Writes positions to the file, one after the other; those that come during a write share the next
 * one. After one that fails it is tried again until one succeeds.
 */
const createWriter = (path: string, log: Log, firstTurn: number) => {
  let file: FileHandle | undefined;
  let turn = firstTurn;
  let newest: StorePosition | undefined;
  let wanted = 0;
  let done = 0;
  let failure: unknown;
  let beganAt: number | undefined;
  let writing: Promise<void> | undefined;
  let again: NodeJS.Timeout | undefined;
  let closing = false;
  const closeFile = async (): Promise<void> => {
    const closed = file;
    file = undefined;
    await closed?.close();
  };
  const write = async (): Promise<void> => {
    clearTimeout(again);
    while (done < wanted) {
      const upTo = wanted;
      beganAt = performance.now();
      try {
        file ??= await open(path, existsSync(path) ? 'r+' : 'w+', 0o600);
        // One that fails is written again in its own slot: the other has the last whole one.
        const next = turn + 1;
        if (newest !== undefined)
          await writeWhole(file, pack({ turn: next, position: newest }), (next % 2) * slotBytes);
        await file.datasync();
        turn = next;
        if (failure !== undefined) log.info('the position of the database is written to the data directory again');
        failure = undefined;
      } catch (error) {
        if (failure === undefined)
          log.error('the position of the database could not be written to the data directory', { error });
        failure = error;
        await closeFile().catch(() => undefined);
      }
      done = upTo;
    }
    beganAt = undefined;
    writing = undefined;
    if (failure !== undefined && !closing) again = setTimeout(want, againAfterMs).unref();
  };
  const want = (): void => {
    wanted += 1;
    writing ??= write();
  };
  /** Says what the writes so far have come to. */
  const settled = async (): Promise<void> => {
    for (const upTo = wanted; done < upTo; ) await writing;
  };
  const hint = 'check the disk of the data directory; until it takes the position, use another node';
  return {
    note: (position: StorePosition): void => {
      newest = position;
      want();
    },
    kept: async (): Promise<void> => {
      await settled();
      if (failure === undefined) return;
      throw new ServiceError(
        'unavailable',
        'the change was made but not confirmed: this node cannot write to its data directory up to where it has seen the database',
        { hint, reason: 'unconfirmed', cause: failure },
      );
    },
    refusal: (): ServiceError | undefined => {
      const hangs = beganAt !== undefined && performance.now() - beganAt > hangsAfterMs;
      if (failure === undefined && !hangs) return undefined;
      return new ServiceError(
        'unavailable',
        'this node cannot write to its data directory up to where it has seen the database, and takes no changes: nothing was changed',
        { hint, cause: failure },
      );
    },
    close: async (): Promise<void> => {
      closing = true;
      await settled();
      clearTimeout(again);
      await closeFile();
    },
    /** The position that was noted last is not written again. */
    forget: (): void => {
      newest = undefined;
    },
  };
};

const positionName = 'position';
export const quarantineName = 'quarantine';
const restoredName = 'root-restored';

export const readQuarantine = (path: string): RecordedQuarantine | undefined => {
  if (!existsSync(path)) return undefined;
  try {
    const found = JSON.parse(readFileSync(path, 'utf8')) as RecordedQuarantine;
    if (typeof found.finding.state === 'string' && found.finding.differences.length > 0 && Number.isFinite(found.since))
      return found;
  } catch {
    // Answered below.
  }
  throw new StartError(
    'store',
    `${path} says that this node is in quarantine, and cannot be read: start with --accept-database, or verify the database (dke verify) and remove the file: ${command`rm ${path}`}; nothing was changed`,
  );
};

/** `dke root restore` leaves this where no checkpoint tells how new the database must be. */
export const recordRootRestored = (dataDirectory: string, at: number): void =>
  replaceFile(join(dataDirectory, restoredName), `${toRfc3339(at)}\n`);

/** Nothing of it holds in another store. Overwritten and not removed: the file may be open. */
export const forgetPosition = (dataDirectory: string): void => {
  const path = join(dataDirectory, positionName);
  if (!existsSync(path)) return;
  const fd = openSync(path, 'r+');
  try {
    writeFileSync(fd, Buffer.alloc(2 * slotBytes, ' '));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

/** `accepts`: an operator of the host takes the database as it is, whatever was recorded. */
export const openNodeState = (dataDirectory: string, log: Log, accepts: boolean): NodeState => {
  const place = (name: string): string => join(dataDirectory, name);
  const found = readSlots(place(positionName));
  const writer = createWriter(place(positionName), log, found?.turn ?? 0);
  const restored = place(restoredName);
  return {
    position: found?.position,
    positionPlace: () => {
      const writtenAt = statSync(place(positionName), { throwIfNoEntry: false })?.mtimeMs;
      return `${place(positionName)}${writtenAt === undefined ? '' : ` (written ${toRfc3339(writtenAt)})`}`;
    },
    note: writer.note,
    kept: writer.kept,
    refusal: writer.refusal,
    quarantine: accepts ? undefined : readQuarantine(place(quarantineName)),
    recordQuarantine: (quarantine) => replaceFile(place(quarantineName), `${JSON.stringify(quarantine)}\n`),
    rootRestoredAt: existsSync(restored) ? readFileSync(restored, 'utf8').trim().slice(0, 40) : undefined,
    clear: () => {
      writer.forget();
      forgetPosition(dataDirectory);
      // The quarantine last: as long as it is there, a start is in it.
      for (const name of [restoredName, quarantineName]) rmSync(place(name), { force: true });
      syncFolder(dataDirectory);
    },
    close: writer.close,
  };
};
