// Reads a request's body up to a limit, in bytes. A longer one is refused as soon as that is known: by Content-Length before
// the first byte, otherwise at the first byte too many.

import { ServiceError } from '../../base/errors.ts';

/** The body, empty when there is none. Throws 'payload-too-large'. */
export const readBody = async (request: Request, limit: number): Promise<Buffer> => {
  const tooLarge = (): ServiceError =>
    new ServiceError('payload-too-large', `the body is longer than ${limit} bytes`, { hint: 'send less at a time' });
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge();
  if (request.body === null) return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop by the throw cancels the stream: the rest is not read.
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > limit) throw tooLarge();
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks, length);
  // It may hold a password: one copy is enough, and its reader wipes that one.
  for (const chunk of chunks) chunk.fill(0);
  return body;
};
