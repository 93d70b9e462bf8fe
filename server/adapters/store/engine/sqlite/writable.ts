// Why SQLite cannot open a file: it says "unable to open database file" of a read-only disk as of a
// missing folder.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';

/** Undefined: the file, or the folder that it is to be made in, can be written. */
export const whyNotWritable = (path: string): string | undefined => {
  for (const place of existsSync(path) ? [path, dirname(path)] : [dirname(path)])
    try {
      accessSync(place, constants.W_OK);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EROFS')
        return `${place} is on a disk that is mounted read-only: look in the kernel's log (dmesg) for the reason, then mount it read-write`;
      if (code === 'ENOENT') return `the folder ${place} is missing: make it, or mount the disk that it is on`;
      return `${place} cannot be written by this user (${code ?? 'unknown'}): correct its owner and mode`;
    }
  return undefined;
};
