// One writer at a time, several units of work in one commit. Units that wait while a commit is
// under way share the next one, each inside its own savepoint: a unit that throws is rolled back
// alone. A unit that has the commit for itself needs no savepoint: when it throws, the transaction
// is rolled back. A unit resolves after the commit it was part of; when that commit fails, every
// unit of it fails.
//
// Background units are for long work that is cut into short units, an erasure run for example. Each
// is committed alone, when no other unit waits. Under a constant load of callers one follows every
// few batches, so that the long work ends all the same.
//
// A disk, or a database, that does not answer for some seconds delays no caller: units that are not
// being committed are refused, and will not be; those that are get an answer that says so, and
// `onLate` hears when their commit ends well after all. Until something moves again, new units are
// refused at once.

export interface WriterConnection {
  /** `durable`: the commit returns when a power failure can no longer undo it. */
  begin(durable: boolean): Promise<void>;
  /**
   * Whether `begin` has waited for a lock in vain. Units that wait in the meantime would wait
   * again, one batch after another: they are refused too.
   */
  isLocked?(error: unknown): boolean;
  /** The last thing before the commit. */
  prepare(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Before a unit of work. */
  savepoint(): Promise<void>;
  /** After a unit that has ended well. */
  releaseSavepoint(): Promise<void>;
  rollbackToSavepoint(): Promise<void>;
  /** The only unit of its transaction, which has no savepoint, has ended well. */
  endOnlyUnit(): void;
}

interface Unit {
  readonly run: () => Promise<unknown>;
  readonly durable: boolean;
  readonly isBackground: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Its caller was told that it failed, or that the outcome is unknown. */
  answered: 'no' | 'undone' | 'unknown';
}

/** What becomes of units while nothing moves. */
export interface Stalls {
  /** Milliseconds without a sign of the database while it is waited for. */
  readonly afterMs: number;
  /** In milliseconds; does not jump. */
  readonly now: () => number;
  /**
   * The answer to units that were not committed, and never will be; `forMs`: how long nothing has
   * moved.
   */
  readonly undone: (forMs: number) => Error;
  /** The answer to units whose commit is under way. */
  readonly unknown: (forMs: number) => Error;
  /** A commit has ended well after its units were answered. */
  readonly onLate: () => void;
}

export interface Writer {
  /** Queues a unit of work. `durable` is true when absent, `background` false. */
  submit<T>(
    work: () => Promise<T>,
    options?: { readonly durable?: boolean; readonly background?: boolean },
  ): Promise<T>;
  /** Runs `work` between two batches: while it runs, nothing is written. */
  pause(work: () => Promise<void>): Promise<void>;
  /** Units that are not begun. */
  waiting(): number;
  /** A caller waits for a durable unit: uses of keys give way. */
  isWriting(): boolean;
  /** The database has given a sign: a statement has ended, well or not. */
  moved(): void;
  /** Resolves when nothing is queued or running; later units are refused with `closed`. */
  close(closed: Error): Promise<void>;
}

/** A unit that would be committed after its caller was told that it is not. */
class Unwanted extends Error {
  override readonly name = 'Unwanted';
}

/** Keeps one commit short enough that a single unit never waits long behind a batch. */
const largestBatch = 64;
/**
 * No unit of a batch begins later than this after the batch has the database, in milliseconds: of
 * several nodes each waits for the batches of the others, and refuses what waits for too long.
 */
const longestBatchMs = 500;
/** Batches of callers that go before a background unit that waits. */
const batchesBeforeBackground = 4;

/** Units that wait for a transaction. */
interface Queues {
  readonly callers: Unit[];
  readonly background: Unit[];
}

const takeWaiting = ({ callers, background }: Queues): readonly Unit[] => [
  ...callers.splice(0),
  ...background.splice(0),
];

/** The transaction under way. */
interface UnderWay {
  units: readonly Unit[];
  isCommitting: boolean;
}

/** Answers every unit while nothing moves. */
const refuseAll = (stalls: Stalls, forMs: number, underWay: UnderWay, queues: Queues): void => {
  for (const unit of underWay.units) {
    if (unit.answered !== 'no') continue;
    unit.answered = underWay.isCommitting ? 'unknown' : 'undone';
    unit.reject(underWay.isCommitting ? stalls.unknown(forMs) : stalls.undone(forMs));
  }
  for (const unit of takeWaiting(queues)) unit.reject(stalls.undone(forMs));
};

/** Notices that the database gives no sign while the writer waits for it. */
interface StallWatch {
  /** The writer waits from now on. */
  start(): void;
  stop(): void;
  moved(): void;
  forMs(): number;
  isStalled(): boolean;
}

const createStallWatch = (stalls: Stalls | undefined, onStall: (stalls: Stalls, forMs: number) => void): StallWatch => {
  let isWaiting = false;
  let movedAt = 0;
  let stalled = false;
  let timer: NodeJS.Timeout | undefined;
  const forMs = (): number => (stalls === undefined ? 0 : stalls.now() - movedAt);
  const watch = (): void => {
    if (stalls === undefined) return;
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        if (!isWaiting) return;
        if (forMs() >= stalls.afterMs) {
          stalled = true;
          onStall(stalls, forMs());
        } else watch();
      },
      Math.max(1, stalls.afterMs - forMs()),
    );
    timer.unref();
  };
  return {
    start: () => {
      isWaiting = true;
      movedAt = stalls?.now() ?? 0;
      watch();
    },
    stop: () => {
      isWaiting = false;
      clearTimeout(timer);
    },
    moved: () => {
      movedAt = stalls?.now() ?? 0;
      if (!stalled) return;
      stalled = false;
      watch();
    },
    forMs,
    isStalled: () => stalled,
  };
};

const requireWanted = ({ answered }: Unit): void => {
  if (answered !== 'no') throw new Unwanted('its caller was told that nothing was changed');
};

/** What runs the units of one transaction, and commits it. */
const createBatchRunner = (
  connection: WriterConnection,
  onFailure: (error: unknown) => unknown,
  stalls: Stalls | undefined,
  watch: StallWatch,
  underWay: UnderWay,
  queues: Queues,
) => {
  /** A step of the connection: that it ends is a sign, however it ends. */
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } finally {
      watch.moved();
    }
  };
  const now = stalls?.now ?? (() => performance.now());
  /** Puts unanswered units at the front of the queue: they go first in the next batch. */
  const postpone = (units: readonly Unit[], settled: Set<Unit>): void => {
    for (const unit of units) settled.add(unit);
    underWay.units = underWay.units.filter((unit) => !settled.has(unit));
    queues.callers.unshift(...units.filter(({ answered }) => answered === 'no'));
  };
  const runBatch = async (units: readonly Unit[]): Promise<void> => {
    underWay.units = units;
    const done: { readonly unit: Unit; readonly value: unknown }[] = [];
    const settled = new Set<Unit>();
    try {
      await step(() => connection.begin(units.some(({ durable }) => durable)));
      const isOnly = units.length === 1;
      const begunAt = now();
      for (const [at, unit] of units.entries()) {
        if (unit.answered !== 'no') continue;
        if (done.length > 0 && now() - begunAt > longestBatchMs) {
          postpone(units.slice(at), settled);
          break;
        }
        if (isOnly) {
          const value = await unit.run();
          connection.endOnlyUnit();
          done.push({ unit, value });
          break;
        }
        await step(() => connection.savepoint());
        try {
          const value = await unit.run();
          requireWanted(unit);
          await step(() => connection.releaseSavepoint());
          done.push({ unit, value });
        } catch (error) {
          try {
            await step(() => connection.rollbackToSavepoint());
            await step(() => connection.releaseSavepoint());
          } catch {
            // The database has ended the whole transaction on its own (disk full, I/O): the first
            // error says why.
            throw error;
          }
          settled.add(unit);
          unit.reject(error instanceof Unwanted ? error : onFailure(error));
        }
      }
      await step(() => connection.prepare());
      for (const { unit } of done) requireWanted(unit);
      underWay.isCommitting = true;
      await step(() => connection.commit());
    } catch (error) {
      const answer = error instanceof Unwanted ? stalls?.undone(watch.forMs()) : onFailure(error);
      if (connection.isLocked?.(error) === true) for (const unit of takeWaiting(queues)) unit.reject(answer);
      try {
        await step(() => connection.rollback());
      } catch {
        // SQLite has already rolled back on its own after a full disk or an I/O error; there is no
        // transaction left to end.
      }
      for (const unit of units) if (!settled.has(unit)) unit.reject(answer);
      return;
    } finally {
      underWay.isCommitting = false;
      underWay.units = [];
    }
    // Nothing is waited for.
    for (const { unit, value } of done) unit.resolve(value);
    if (done.some(({ unit }) => unit.answered === 'unknown')) stalls?.onLate();
  };
  return { step, runBatch };
};

/**
 * `onFailure` hears of every error that hit the connection itself (begin, savepoint, commit, and
 * statement errors that units throw) and answers with the error that the waiting units get.
 */
export const createWriter = (
  connection: WriterConnection,
  onFailure: (error: unknown) => unknown,
  stalls?: Stalls,
): Writer => {
  const queues: Queues = { callers: [], background: [] };
  /** Batches since a background unit began to wait. */
  let passedOver = 0;
  const pauses: (() => Promise<void>)[] = [];
  let running: Promise<void> | undefined;
  let closedWith: Error | undefined;
  const underWay: UnderWay = { units: [], isCommitting: false };
  const isCallers = ({ durable, isBackground }: Unit): boolean => durable && !isBackground;
  const watch = createStallWatch(stalls, (known, forMs) => refuseAll(known, forMs, underWay, queues));
  const { step, runBatch } = createBatchRunner(connection, onFailure, stalls, watch, underWay, queues);

  const drain = async (): Promise<void> => {
    for (;;) {
      const pause = pauses.shift();
      if (pause !== undefined) await step(pause);
      else if (queues.background.length > 0 && (queues.callers.length === 0 || passedOver >= batchesBeforeBackground)) {
        passedOver = 0;
        await runBatch(queues.background.splice(0, 1));
      } else if (queues.callers.length > 0) {
        if (queues.background.length > 0) passedOver += 1;
        await runBatch(queues.callers.splice(0, largestBatch));
      } else break;
    }
    running = undefined;
    watch.stop();
  };
  const run = (): void => {
    if (running !== undefined) return;
    watch.start();
    running = drain();
  };

  return {
    submit: <T>(work: () => Promise<T>, { durable = true, background: isBackground = false } = {}) =>
      new Promise<T>((resolve, reject) => {
        if (closedWith !== undefined) {
          reject(closedWith);
          return;
        }
        if (stalls !== undefined && watch.isStalled()) {
          reject(stalls.undone(watch.forMs()));
          return;
        }
        const to = isBackground ? queues.background : queues.callers;
        to.push({
          run: work,
          durable,
          isBackground,
          resolve: resolve as (value: unknown) => void,
          reject,
          answered: 'no',
        });
        run();
      }),
    pause: (work) =>
      new Promise((resolve, reject) => {
        pauses.push(() => work().then(resolve, reject));
        run();
      }),
    waiting: () => queues.callers.length,
    isWriting: () => queues.callers.some(isCallers) || underWay.units.some(isCallers),
    moved: watch.moved,
    close: async (closed) => {
      closedWith = closed;
      await running;
    },
  };
};
