// Reads a request's body from the socket, counted as it comes: a cap that a lying or absent Content-Length cannot pass.

import type { IncomingMessage } from 'node:http';

export const maxBody = 64 * 1024;

/** The whole body, or null when it is over the cap (the rest is not read). Rejects when the peer goes away. */
export const readBody = (incoming: IncomingMessage): Promise<Buffer | null> => {
  const stated = Number(incoming.headers['content-length'] ?? 0);
  if (stated > maxBody) return Promise.resolve(null);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (body: Buffer | null): void => {
      incoming.off('data', take).off('end', end).off('error', fail).off('close', gone);
      resolve(body);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBody) {
        incoming.pause();
        settle(null);
        return;
      }
      chunks.push(chunk);
    };
    const end = (): void => {
      // Nearly every body comes in one piece: then nothing is copied.
      const [first] = chunks;
      if (chunks.length === 1 && first !== undefined) {
        settle(first);
        return;
      }
      const whole = Buffer.concat(chunks, size);
      for (const chunk of chunks) chunk.fill(0);
      settle(whole);
    };
    const fail = (error: Error): void => reject(error);
    const gone = (): void => reject(new Error('the peer went away'));
    incoming.on('data', take).on('end', end).on('error', fail).on('close', gone);
  });
};
