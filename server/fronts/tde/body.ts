// Reads a request body as one buffer, counted as it comes: no Content-Length is believed. Pieces are wiped once they are
// copied, because they may hold key bytes.

import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/errors.ts';

export const readBody = (
  incoming: IncomingMessage,
  most: number,
  wipe: (buffer: Uint8Array) => void,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = (): ServiceError => new ServiceError('payload-too-large', `a body has at most ${most} bytes`);
    if (Number(incoming.headers['content-length'] ?? 0) > most) {
      reject(tooLarge());
      return;
    }
    const pieces: Buffer[] = [];
    let size = 0;
    const fail = (error: Error): void => {
      for (const piece of pieces) wipe(piece);
      pieces.length = 0;
      reject(error);
    };
    incoming.on('data', (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size <= most) return;
      incoming.pause();
      incoming.removeAllListeners('data');
      fail(tooLarge());
    });
    incoming.on('end', () => {
      const [first] = pieces;
      // Nearly every body comes in one piece: then nothing is copied.
      if (first === undefined || pieces.length === 1) {
        resolve(first ?? Buffer.alloc(0));
        return;
      }
      const whole = Buffer.concat(pieces, size);
      for (const piece of pieces) wipe(piece);
      resolve(whole);
    });
    incoming.on('error', fail);
    incoming.on('close', () => {
      // Every request closes; an error is made only for the few that close too early.
      if (!incoming.complete) fail(new ServiceError('validation', 'the body ended early'));
    });
  });
