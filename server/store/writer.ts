// One writer at a time, several units of work in one commit. Units that wait while a commit is under way share the next
// one, each inside its own savepoint: a unit that throws is rolled back alone. A unit resolves after the commit it was
// part of; when that commit fails, every unit of it fails.

export interface WriterConnection {
  /** `durable`: the commit returns when a power failure can no longer undo it. */
  begin(durable: boolean): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  savepoint(): Promise<void>;
  releaseSavepoint(): Promise<void>;
  rollbackToSavepoint(): Promise<void>;
}

interface Unit {
  readonly run: () => Promise<unknown>;
  readonly durable: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface Writer {
  /** Queues a unit of work. */
  submit<T>(work: () => Promise<T>, durable?: boolean): Promise<T>;
  /** Runs `work` between two batches: while it runs, nothing is written. */
  pause(work: () => Promise<void>): Promise<void>;
  /** Units that are not begun. */
  waiting(): number;
  /** Resolves when nothing is queued or running; later units are refused with `closed`. */
  close(closed: Error): Promise<void>;
}

/** Keeps one commit short enough that a single unit never waits long behind a batch. */
const largestBatch = 64;

/**
 * `onFailure` hears of every error that hit the connection itself (begin, savepoint, commit, and statement errors that units
 * throw) and answers with the error that the waiting units get.
 */
export const createWriter = (connection: WriterConnection, onFailure: (error: unknown) => unknown): Writer => {
  const queue: Unit[] = [];
  const pauses: (() => Promise<void>)[] = [];
  let running: Promise<void> | undefined;
  let closedWith: Error | undefined;

  const runBatch = async (batch: readonly Unit[]): Promise<void> => {
    const done: { readonly unit: Unit; readonly value: unknown }[] = [];
    const settled = new Set<Unit>();
    try {
      await connection.begin(batch.some(({ durable }) => durable));
      for (const unit of batch) {
        await connection.savepoint();
        try {
          const value = await unit.run();
          await connection.releaseSavepoint();
          done.push({ unit, value });
        } catch (error) {
          try {
            await connection.rollbackToSavepoint();
            await connection.releaseSavepoint();
          } catch {
            // The database has ended the whole transaction by itself (disk full, I/O): the first error says why.
            throw error;
          }
          settled.add(unit);
          unit.reject(onFailure(error));
        }
      }
      await connection.commit();
    } catch (error) {
      const answer = onFailure(error);
      try {
        await connection.rollback();
      } catch {
        // SQLite has already rolled back by itself after a full disk or an I/O error; there is no transaction left to end.
      }
      for (const unit of batch) if (!settled.has(unit)) unit.reject(answer);
      return;
    }
    for (const { unit, value } of done) unit.resolve(value);
  };

  const drain = async (): Promise<void> => {
    for (;;) {
      const pause = pauses.shift();
      if (pause !== undefined) await pause();
      else if (queue.length > 0) await runBatch(queue.splice(0, largestBatch));
      else break;
    }
    running = undefined;
  };

  return {
    submit: <T>(work: () => Promise<T>, durable = true) =>
      new Promise<T>((resolve, reject) => {
        if (closedWith !== undefined) {
          reject(closedWith);
          return;
        }
        queue.push({ run: work, durable, resolve: resolve as (value: unknown) => void, reject });
        running ??= drain();
      }),
    pause: (work) =>
      new Promise((resolve, reject) => {
        pauses.push(() => work().then(resolve, reject));
        running ??= drain();
      }),
    waiting: () => queue.length,
    close: async (closed) => {
      closedWith = closed;
      await running;
    },
  };
};
