// Reads a request's body from the socket, counted as it comes: a cap that a lying or absent Content-Length cannot pass.

import type { IncomingMessage } from 'node:http';

export const maxBody = 64 * 1024;
/** What a body may take up on the socket: chunks of one byte are six there, and each may have an extension. */
const maxOnSocket = 8 * maxBody;

/** Whether the head of a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Told once: the whole body, null when it is over the cap (the rest is not kept), or an error when the peer goes away. */
export type BodyReader = (body: Buffer | null | Error) => void;

/** Callbacks, no promise: this is the path that every request of a cloud key service takes. */
export const readBody = (incoming: IncomingMessage, tell: BodyReader): void => {
  if (Number(incoming.headers['content-length'] ?? 0) > maxBody) {
    tell(null);
    return;
  }
  // Streams of HTTP/2 share a socket, and have no chunks.
  const alone = incoming.httpVersionMajor === 1;
  let first: Buffer | undefined;
  let rest: Buffer[] | undefined;
  let size = 0;
  let readBefore = 0;
  let told = false;
  const settle = (body: Buffer | null | Error): void => {
    if (told) return;
    told = true;
    tell(body);
  };
  incoming.on('data', (chunk: Buffer) => {
    if (told) return;
    size += chunk.length;
    if (size > maxBody || (alone && rest !== undefined && incoming.socket.bytesRead - readBefore > maxOnSocket)) {
      for (const kept of [first, ...(rest ?? []), chunk]) kept?.fill(0);
      settle(null);
    } else if (first === undefined) first = chunk;
    else if (rest === undefined) {
      rest = [chunk];
      readBefore = incoming.socket.bytesRead;
    } else rest.push(chunk);
  });
  incoming.on('end', () => {
    // Nearly every body comes in one piece: then nothing is copied.
    if (first === undefined || rest === undefined) {
      settle(first ?? Buffer.alloc(0));
      return;
    }
    const whole = Buffer.concat([first, ...rest], size);
    for (const chunk of [first, ...rest]) chunk.fill(0);
    settle(whole);
  });
  incoming.on('error', settle);
  incoming.on('close', () => {
    // Every request closes; an error is made only for the few that close too early.
    if (!told) settle(new Error('the peer went away'));
  });
};
