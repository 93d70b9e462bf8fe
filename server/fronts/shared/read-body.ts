// Reads a request's body up to a limit, in bytes, counted as it comes: no Content-Length is
// believed, but a longer one is refused before the first byte. From Node's request, not from a Web
// stream over it: such a stream that is left in the middle throws where no caller can catch it when
// what is buffered still comes (Node 24), and that ends the process.

import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../base/service-error.ts';
import { markUpload } from '../../base/upload.ts';
import type { Admission } from './admission.ts';

const clear = (bytes: Uint8Array): void => {
  bytes.fill(0);
};

/**
 * The body, empty when there is none. Pieces are wiped once they are copied: they may hold a
 * password or key bytes. Throws 'payload-too-large'.
 */
export const readBody = (
  incoming: IncomingMessage,
  most: number,
  _admission: Admission,
  wipe: (bytes: Uint8Array) => void = clear,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = (): ServiceError =>
      new ServiceError('payload-too-large', `the body is longer than ${most} bytes`, { hint: 'send less at a time' });
    if (Number(incoming.headers['content-length'] ?? 0) > most) {
      reject(tooLarge());
      return;
    }
    const early = (): ServiceError => new ServiceError('validation', 'the body ended early');
    // The caller left before this: there is no further event or, over HTTP/2, only the end of an
    // incomplete body.
    if (incoming.destroyed || incoming.aborted) {
      reject(early());
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
    incoming.on('error', () => fail(early()));
    incoming.on('close', () => {
      // Every request closes; an error is made only for the few that close before they were read.
      if (!incoming.readableEnded) fail(early());
    });
  });

/** The body piece by piece. Who leaves it in the middle leaves the rest unread. */
export const piecesOf = (incoming: IncomingMessage, _admission: Admission): AsyncIterable<Uint8Array> => {
  markUpload(incoming);
  return { [Symbol.asyncIterator]: () => incoming.iterator({ destroyOnReturn: false }) };
};

/**
 * Before an answer to a body that was not read to its end: what still comes is dropped, and the
 * connection is closed.
 */
export const leaveUnread = (incoming: IncomingMessage, headers: Headers): void => {
  // Streams of HTTP/2 end on their own.
  if (incoming.complete || incoming.httpVersionMajor !== 1) return;
  incoming.resume();
  headers.set('connection', 'close');
};
