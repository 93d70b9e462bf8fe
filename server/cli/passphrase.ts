// A passphrase as bytes: from a file, or typed at a terminal that does not show it. It never becomes a string.

import { ReadStream } from 'node:tty';
import { CommandError } from './exit-codes.ts';
import { readSecretFile } from './files.ts';

const most = 1024;

const withoutLineEnd = (bytes: Buffer): Buffer => {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end -= 1;
  const own = Buffer.allocUnsafeSlow(end);
  bytes.copy(own, 0, 0, end);
  bytes.fill(0);
  return own;
};

const type = async (question: string): Promise<Buffer> => {
  const { stdin } = process;
  if (!(stdin instanceof ReadStream) || !stdin.isTTY)
    throw new CommandError('config', 'a passphrase is wanted, and there is no terminal to ask at', {
      hint: 'give --passphrase-file with a file of mode 600; - reads standard input',
    });
  const typed = Buffer.allocUnsafeSlow(most);
  let length = 0;
  // Before the question: who answers at once is not shown either.
  stdin.setRawMode(true);
  try {
    process.stderr.write(question);
    for await (const piece of stdin as AsyncIterable<Buffer>) {
      for (const byte of piece) {
        if (byte === 0x0d || byte === 0x0a) {
          const own = Buffer.allocUnsafeSlow(length);
          typed.copy(own, 0, 0, length);
          piece.fill(0);
          return own;
        }
        if (byte === 0x03 || byte === 0x04) throw new CommandError('config', 'no passphrase was given');
        if (byte === 0x7f || byte === 0x08) length = Math.max(0, length - 1);
        else if (length < most) typed[length++] = byte;
      }
      piece.fill(0);
    }
    throw new CommandError('config', 'no passphrase was given');
  } finally {
    typed.fill(0);
    stdin.setRawMode(false);
    process.stderr.write('\n');
  }
};

/** From the file when one is named, else from the terminal. The caller wipes it. */
export const readPassphrase = async (file: string | undefined): Promise<Buffer> =>
  file === undefined ? type('Passphrase: ') : withoutLineEnd(readSecretFile(file));

/** Typed twice, so that a slip does not cost the key. */
export const choosePassphrase = async (file: string | undefined): Promise<Buffer> => {
  const chosen = await readPassphrase(file);
  if (chosen.length < 8) {
    chosen.fill(0);
    throw new CommandError('config', 'the passphrase is shorter than 8 bytes');
  }
  if (file !== undefined) return chosen;
  const again = await type('Once more: ');
  const same = chosen.equals(again);
  again.fill(0);
  if (same) return chosen;
  chosen.fill(0);
  throw new CommandError('config', 'the two are not the same: nothing was made');
};
