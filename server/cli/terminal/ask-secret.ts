// Asks for a secret on the terminal, without echo, as bytes that never were text.

import { closeSync, openSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { shortestPassphrase, shortPassphrase } from '../../base/passphrase.ts';
import { CommandError } from './exit-codes.ts';
import { withoutProgress } from './progress.ts';
import { readSecretFile } from './secret-files.ts';

const enter = [0x0a, 0x0d];
const cancel = [0x03, 0x04];
const erase = [0x08, 0x7f];
const longest = 1024;

const typeHidden = (question: string): Promise<Buffer | undefined> => {
  let descriptor: number;
  try {
    descriptor = openSync('/dev/tty', 'r+');
  } catch {
    return Promise.resolve(undefined);
  }
  const terminal = new ReadStream(descriptor);
  // Before the question: who answers at once is not shown either.
  terminal.setRawMode(true);
  writeSync(descriptor, question);
  const typed = Buffer.alloc(longest);
  let length = 0;
  return new Promise((resolve, reject) => {
    const end = (work: () => void): void => {
      terminal.setRawMode(false);
      writeSync(descriptor, '\n');
      terminal.destroy();
      work();
    };
    terminal.on('data', (chunk: Buffer) => {
      for (const byte of chunk) {
        if (enter.includes(byte)) {
          chunk.fill(0);
          // A copy as long as what was typed; the space for it is wiped.
          const answer = Buffer.from(typed.subarray(0, length));
          typed.fill(0);
          return end(() => resolve(answer));
        }
        if (cancel.includes(byte)) {
          typed.fill(0);
          return end(() => reject(new CommandError('refused', 'stopped at the question: nothing was changed')));
        }
        if (erase.includes(byte)) length = Math.max(0, length - 1);
        else if (length < longest) {
          typed[length] = byte;
          length += 1;
        }
      }
      chunk.fill(0);
    });
  });
};

/** Undefined: there is no terminal. */
export const askHidden = (question: string): Promise<Buffer | undefined> => withoutProgress(() => typeHidden(question));

/** Undefined: there is no terminal. `fresh`: asks twice, until both are the same. */
export const askSecret = async (what: string, fresh: boolean): Promise<Buffer | undefined> => {
  for (;;) {
    const first = await askHidden(`${fresh ? 'New passphrase' : 'Passphrase'} of ${what}: `);
    if (first === undefined || !fresh) return first;
    const second = await askHidden('Repeat it: ');
    const same = second !== undefined && first.equals(second);
    second?.fill(0);
    if (same) return first;
    first.fill(0);
    const descriptor = openSync('/dev/tty', 'w');
    writeSync(descriptor, 'The two entries differ.\n');
    closeSync(descriptor);
  }
};

/**
 * For work on the root key: what is in these files, else what the configuration declares, else what
 * the terminal says.
 */
export const askFor =
  (current: string | undefined, fresh: string | undefined) =>
  (question: {
    readonly name: string;
    readonly fresh: boolean;
    readonly declared: boolean;
  }): Promise<Buffer | undefined> => {
    const file = question.fresh ? fresh : current;
    if (file !== undefined) return Promise.resolve(readSecretFile(file));
    return question.declared ? Promise.resolve(undefined) : askSecret(`root provider ${question.name}`, question.fresh);
  };

const withoutLineEnd = (bytes: Buffer): Buffer => {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d)) end -= 1;
  const own = Buffer.from(bytes.subarray(0, end));
  bytes.fill(0);
  return own;
};

/**
 * The passphrase of a recovery key: from the file when one is named, else from the terminal. The
 * caller wipes it.
 */
export const readPassphrase = async (file: string | undefined, fresh = false): Promise<Buffer> => {
  const given = file === undefined ? await askSecret('the recovery key', fresh) : withoutLineEnd(readSecretFile(file));
  if (given === undefined)
    throw new CommandError('config', 'a passphrase is required, and there is no terminal', {
      hint: 'pass --passphrase-file with a file of mode 600; - reads standard input',
    });
  if (!fresh || given.length >= shortestPassphrase) return given;
  given.fill(0);
  throw new CommandError('config', shortPassphrase('the recovery key'));
};
