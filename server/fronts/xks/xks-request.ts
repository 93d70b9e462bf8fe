// What comes with a request to the XKS proxy: its address and its body.
//
// Addresses are matched byte for byte: no normalising of slashes, dots, percent-encoding or case,
// and no query. What does not match here does not exist. A body is counted as it comes: a cap that
// a lying or absent Content-Length cannot pass.

import type { IncomingMessage } from 'node:http';
import type { Admission } from '../shared/admission.ts';

export type XksPathOperation = 'health' | 'metadata' | 'encrypt' | 'decrypt';

export type XksPath =
  | { readonly prefix: string; readonly operation: 'health'; readonly externalKeyId: null }
  | { readonly prefix: string; readonly operation: 'metadata' | 'encrypt' | 'decrypt'; readonly externalKeyId: string };

// The whole path has at most 128 characters before `/health` or `/keys`; an external key id has 1
// to 128.
const allowed =
  /^\/xks\/([A-Za-z0-9_-]{1,64})\/kms\/xks\/v1\/(?:(health)|keys\/([A-Za-z0-9._-]{1,128})\/(metadata|encrypt|decrypt))$/;

/** True for what the XKS front answers, well-formed or not. */
export const isXksPath = (target: string | undefined): boolean => target?.startsWith('/xks/') === true;

const parse = (target: string): XksPath | null => {
  const match = allowed.exec(target);
  if (match === null) return null;
  const [, prefix = '', health, externalKeyId = '', operation] = match;
  if (health !== undefined) return { prefix, operation: 'health', externalKeyId: null };
  // `keys/..` and `keys/.` are dot segments, not key ids.
  if (externalKeyId === '.' || externalKeyId === '..') return null;
  return { prefix, operation: operation as 'metadata' | 'encrypt' | 'decrypt', externalKeyId };
};

const mostKept = 1024;
const kept = new Map<string, XksPath>();

/**
 * Null when there is no such path. Remembers its answers: few targets are asked for again and
 * again.
 */
export const parseXksPath = (target: string): XksPath | null => {
  const known = kept.get(target);
  if (known !== undefined) return known;
  const path = parse(target);
  if (path === null) return null;
  // Invented targets only make all others be parsed again.
  if (kept.size >= mostKept) kept.clear();
  kept.set(target, path);
  return path;
};

export const maxBody = 64 * 1024;
/**
 * What a body may take up on the socket: chunks of one byte are six there, and each may have an
 * extension.
 */
const maxOnSocket = 8 * maxBody;

/** Whether the head of a request announces a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * Told once: the whole body, null when it is over the cap (the rest is not kept), or an error when
 * the peer goes away.
 */
export type BodyReader = (body: Buffer | null | Error) => void;

/** Callbacks, no promise: this is the path that every request of a cloud key service takes. */
export const readBody = (incoming: IncomingMessage, _admission: Admission, tell: BodyReader): void => {
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
  const wipeKept = (): void => {
    for (const kept of [first, ...(rest ?? [])]) kept?.fill(0);
  };
  const settle = (body: Buffer | null | Error): void => {
    if (told) return;
    told = true;
    tell(body);
  };
  incoming.on('data', (chunk: Buffer) => {
    if (told) return;
    size += chunk.length;
    if (size > maxBody || (alone && rest !== undefined && incoming.socket.bytesRead - readBefore > maxOnSocket)) {
      wipeKept();
      chunk.fill(0);
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
    wipeKept();
    settle(whole);
  });
  // What came of a body that never ends may hold a plaintext.
  const leave = (error: Error): void => {
    if (!told) wipeKept();
    settle(error);
  };
  incoming.on('error', leave);
  incoming.on('close', () => {
    // Every request closes; an error is made only for the few that close too early.
    if (!told) leave(new Error('the peer went away'));
  });
};
