// The answers that the listener keeps: the newest ones of each connection, and, emptied, the first
// ones of the process.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isOverdue } from '../../base/upload.ts';

/** The answers to a connection's newest request and to the one before it. */
interface NewestAnswers {
  last: ServerResponse | undefined;
  before: ServerResponse | undefined;
  /** When the newest request began. */
  since: number;
}

const isOver = (answer: ServerResponse | undefined): boolean =>
  answer === undefined || answer.closed || answer.req.socket.destroyed;

/**
 * Remembers the newest answers of each connection, and notices requests that take longer to come
 * than they may. An idle connection should hold nothing: finished answers are released once a
 * second. Weak references would do that on their own, but making two for each request costs 2 µs.
 */
export const createNewestAnswers = (requestMs: number, overdue: (request: IncomingMessage) => void) => {
  const byConnection = new WeakMap<object, NewestAnswers>();
  const holding = new Set<NewestAnswers>();
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    for (const answers of holding) {
      const request = answers.last?.req;
      if (request?.complete === false && isOverdue(request, request.socket.bytesRead, answers.since, requestMs))
        overdue(request);
      if (isOver(answers.last) && isOver(answers.before)) {
        answers.last = undefined;
        answers.before = undefined;
        holding.delete(answers);
      }
    }
    if (holding.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return {
    of: (connection: object): Readonly<NewestAnswers> | undefined => byConnection.get(connection),
    add: (connection: object, answer: ServerResponse): void => {
      let answers = byConnection.get(connection);
      if (answers === undefined) {
        answers = { last: undefined, before: undefined, since: 0 };
        byConnection.set(connection, answers);
      }
      if (answers.last === undefined) {
        holding.add(answers);
        timer ??= setInterval(look, 1_000).unref();
      }
      answers.before = answers.last;
      answers.last = answer;
      answers.since = performance.now();
    },
  };
};

export type NewestAnswersByConnection = ReturnType<typeof createNewestAnswers>;

// Keeps the first answers of the process, emptied, for the sake of their hidden classes and those
// of their requests and sockets.
//
// V8 discards a hidden class that no object has had for some collections of the old heap: a service
// that rests between requests goes through many. Node's requests, answers and TLS sockets have so
// many properties behind symbols that V8 does not learn such a class again: from then on each of
// them is a hash table, and every request costs about a third more for as long as the process lives
// (test/scenario/rest.test.ts). A class with one live object stays, and so do all that lead to it.

/**
 * Enough for the ways that requests take: with a body and without, kept alive and not, answered by
 * Hono and by a data path.
 */
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
