// The newest answers of each connection: what cannot be read of a connection is refused behind them.

import type { ServerResponse } from 'node:http';

/** The answers to a connection's newest request and to the one before it. */
interface NewestAnswers {
  last: ServerResponse | undefined;
  before: ServerResponse | undefined;
}

const isOver = (answer: ServerResponse | undefined): boolean =>
  answer === undefined || answer.closed || answer.req.socket.destroyed;

/**
 * Remembers the newest answers of each connection. An idle connection should hold nothing: finished answers are released
 * once a second. Weak references would do that on their own, but making two for each request costs 2 µs.
 */
export const createNewestAnswers = () => {
  const byConnection = new WeakMap<object, NewestAnswers>();
  const holding = new Set<NewestAnswers>();
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    for (const answers of holding)
      if (isOver(answers.last) && isOver(answers.before)) {
        answers.last = undefined;
        answers.before = undefined;
        holding.delete(answers);
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
        answers = { last: undefined, before: undefined };
        byConnection.set(connection, answers);
      }
      if (answers.last === undefined) {
        holding.add(answers);
        timer ??= setInterval(look, 1_000).unref();
      }
      answers.before = answers.last;
      answers.last = answer;
    },
  };
};

export type NewestAnswersByConnection = ReturnType<typeof createNewestAnswers>;
