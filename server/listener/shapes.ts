// Keeps the first answers of the process, emptied, for the sake of their hidden classes and those of their requests and sockets.
//
// V8 discards a hidden class that no object has had for some collections of the old heap: a service that rests between requests goes
// through many. Node's requests, answers and TLS sockets have so many properties behind symbols that V8 does not learn such a class again:
// from then on each of them is a hash table, and every request costs about a third more for as long as the process lives
// (test/scenario/rest.test.ts). A class with one live object stays, and so do all that lead to it.

import type { ServerResponse } from 'node:http';

/** Enough for the ways that requests take: with a body and without, kept alive and not, answered by Hono and by a data path. */
const mostKept = 32;

/** A request and its answer as Node has them: texts that may be secret. */
interface Texts {
  url: string;
  rawHeaders: string[];
  rawTrailers: string[];
  headers: object;
}

const empty = (answer: ServerResponse): void => {
  const texts: Texts = answer.req as unknown as Texts;
  texts.url = '';
  texts.rawHeaders = [];
  texts.rawTrailers = [];
  texts.headers = {};
  // What was sent, cookies included.
  (answer as unknown as { _header: string })._header = '';
};

export const createShapes = (): ((answer: ServerResponse) => void) => {
  const kept: ServerResponse[] = [];
  return (answer) => {
    if (kept.length >= mostKept) return;
    kept.push(answer);
    // Other listeners for the same event may still read them.
    answer.once('close', () => setImmediate(empty, answer));
  };
};
