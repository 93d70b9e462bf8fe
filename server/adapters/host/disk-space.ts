// How full the file systems are that the service writes to. A file system that does not answer (a
// network folder that is away) keeps one thread waiting and never the caller: what it says is then
// unknown until it answers.

import { statfs } from 'node:fs/promises';
import type { DiskSpace } from '../../ports/meter.ts';

const waitMs = 1_000;

export interface DiskPlace extends Pick<DiskSpace, 'place'> {
  readonly folder: string;
}

/** Places are read one after another: put those that may hang last. */
export const createDiskSpace = (
  places: readonly DiskPlace[],
  read: (folder: string) => Promise<{ bavail: number; blocks: number; bsize: number }> = statfs,
): (() => Promise<readonly DiskSpace[]>) => {
  const known = new Map<string, DiskSpace['space']>();
  let running: Promise<void> | undefined;
  const readAll = async (): Promise<void> => {
    for (const { place, folder } of places) {
      known.set(place, null);
      const { bavail, blocks, bsize } = await read(folder).catch(() => ({ bavail: -1, blocks: 0, bsize: 0 }));
      if (bavail >= 0) known.set(place, { free: bavail * bsize, size: blocks * bsize });
    }
  };
  return async () => {
    running ??= readAll().finally(() => {
      running = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, waitMs);
    });
    await Promise.race([running, late]);
    clearTimeout(timer);
    return places.map(({ place }) => ({ place, space: known.get(place) ?? null }));
  };
};
