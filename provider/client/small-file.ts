// Reads files whose paths come from users. What is there may be anything: a FIFO or a device must not stop the agent, and a large file must not
// fill its memory.
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';

/** Thrown for anything that is not a small regular file. The message has the reason. */
export class UnsuitableFile extends Error {
  override readonly name = 'UnsuitableFile';
}

/** `check` checks the opened file, and may throw any error. The receiver wipes the bytes where they are secret. */
export const readSmallFile = (path: string, most: number, check: (stats: Stats) => void = () => undefined): Buffer => {
  // Not blocking: to open a FIFO would wait for a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new UnsuitableFile('not a regular file');
    check(stats);
    if (stats.size > most) throw new UnsuitableFile(`longer than ${most} bytes`);
    // It may grow in the meantime.
    const bytes = Buffer.alloc(most + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= most; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null);
    if (length > most) {
      bytes.fill(0);
      throw new UnsuitableFile(`longer than ${most} bytes`);
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
};
