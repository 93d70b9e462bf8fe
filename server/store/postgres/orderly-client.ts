// A connection that is asked one thing at a time: who asks while an answer is awaited waits for a turn. pg keeps such a queue itself, warns of it,
// and gives it up with its next major version. What waits when the connection is lost fails with it.

import pg from 'pg';

type Query = (...given: unknown[]) => Promise<unknown>;

export class OrderlyClient extends pg.Client {
  #last: Promise<unknown> = Promise.resolve();

  constructor(config?: pg.ClientConfig) {
    super(config);
    // A loss is told to what was asked. A pool listens to the connections that it has not given out; for the others an event that nobody hears would be
    // the end of the process.
    this.on('error', () => undefined);
    this.query = ((...given) => {
      const answer = this.#last.then(() => (pg.Client.prototype.query as Query).apply(this, given));
      this.#last = answer.catch(() => undefined);
      return answer;
    }) as Query as pg.Client['query'];
  }
}
