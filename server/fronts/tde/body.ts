// Reads a request body as one buffer, counted as it comes: no Content-Length is believed. Pieces are wiped once they are
// copied, because they may hold key bytes.

import { ServiceError } from '../../base/errors.ts';

export const readBody = async (request: Request, most: number, wipe: (buffer: Uint8Array) => void): Promise<Buffer> => {
  const tooLarge = (): ServiceError => new ServiceError('payload-too-large', `a body has at most ${most} bytes`);
  const stated = request.headers.get('content-length');
  if (stated !== null && Number(stated) > most) throw tooLarge();
  if (request.body === null) return Buffer.alloc(0);
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      pieces.push(value);
      size += value.length;
      if (size > most) throw tooLarge();
    }
    const [first] = pieces;
    if (pieces.length === 1 && first !== undefined)
      return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
    const whole = Buffer.allocUnsafeSlow(size);
    let at = 0;
    for (const piece of pieces) {
      whole.set(piece, at);
      at += piece.length;
      wipe(piece);
    }
    return whole;
  } catch (error) {
    for (const piece of pieces) wipe(piece);
    // What is left of the body is not worth reading; a failure to say so adds nothing to the first error.
    await reader.cancel().catch(() => undefined);
    throw error;
  }
};
