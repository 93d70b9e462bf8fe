// SQLite answers within the call: a walk over many rows, however many awaits it has, would never
// return to the event loop, and every caller who asks for something in the meantime would wait
// until its end. So a statement that comes when statements have filled a turn of the loop waits for
// one of the next. Waiting walks run in the order in which they came: a walk that uses all of its
// slice does not shut the others out.

import { type Driver, SqliteAdapter, SqliteDialect } from 'kysely';

/**
 * How long statements may take in one turn of the event loop: little enough that a request that
 * comes in in the meantime does not notice.
 */
const turnMs = 2;

/** When the first statement of this turn began. All connections of the process share the loop. */
let turnBegan: number | undefined;
const waiting: (() => void)[] = [];

const beginTurn = (): void => {
  turnBegan = performance.now();
  setImmediate(nextTurn);
};
const nextTurn = (): void => {
  turnBegan = undefined;
  const first = waiting.shift();
  if (first === undefined) return;
  beginTurn();
  first();
};

/**
 * Resolves in this iteration of the event loop as long as it has time left and no other walk waits.
 */
const roomInTurn = async (): Promise<void> => {
  if (turnBegan === undefined) beginTurn();
  else if (waiting.length > 0 || performance.now() - turnBegan > turnMs)
    await new Promise<void>((resolve) => waiting.push(resolve));
};

/**
 * SQLite undoes changes of tables with their transaction: a migration is made as a whole, or not at
 * all.
 */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Kysely's dialect, whose statements give way. */
export class GivingWayDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter();
  }

  override createDriver(): Driver {
    const driver = super.createDriver();
    const acquire = driver.acquireConnection.bind(driver);
    // Once before each statement.
    driver.acquireConnection = async (options) => {
      await roomInTurn();
      return acquire(options);
    };
    return driver;
  }
}
