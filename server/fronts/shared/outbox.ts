// How answers leave: together at the end of a turn of the event loop, and long ones in pieces.

import type { ServerResponse } from 'node:http';

/**
 * Runs what one turn of the event loop hands in when the turn is over. Answers that leave one after
 * the other cost little more than half of what answers cost between which other requests are worked
 * on; one alone waits for nothing.
 */
export const createOutbox = (): ((send: () => void) => void) => {
  let waiting: (() => void)[] = [];
  const flush = (): void => {
    const taken = waiting;
    waiting = [];
    for (const send of taken) send();
  };
  return (send) => {
    if (waiting.push(send) === 1) setImmediate(flush);
  };
};

// Ends an answer that is longer than what Node keeps unsent for a connection (64 KiB). Written at
// once, it leaves the connection marked as one whose peer does not read; when the peer has read it
// all and its next request comes before the mark is gone, Node 24 pauses the parser in the middle
// of that request's body, and fails it with HPE_PAUSED. So each piece waits until the one before it
// is written.

const piece = 32 * 1024;

/** The head has been written, with the body's length in it. */
export const endInPieces = (outgoing: ServerResponse, body: Buffer): void => {
  let at = 0;
  const next = (error?: Error | null): void => {
    // The peer has gone: the answer's own event says so.
    if (error) return;
    const from = at;
    at += piece;
    if (at >= body.length) outgoing.end(body.subarray(from));
    else outgoing.write(body.subarray(from, at), next);
  };
  next();
};

/** Whether an answer is to be written so. */
export const isLongAnswer = (length: number): boolean => length > piece;

/**
 * An answer that the adapter writes. A long one leaves in pieces, each when the peer has taken
 * those before: who does not read costs neither its length in memory nor the time to encrypt it.
 */
export const answerInPieces = (
  body: string | Uint8Array<ArrayBuffer>,
  init: { readonly status?: number; readonly headers: Readonly<Record<string, string>> },
): Response => {
  if (!isLongAnswer(body.length)) return new Response(body, init);
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  let at = 0;
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    controller.enqueue(bytes.subarray(at, at + piece));
    at += piece;
    if (at >= bytes.length) controller.close();
  };
  const headers = { ...init.headers, 'content-length': String(bytes.length) };
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { ...init, headers });
};
