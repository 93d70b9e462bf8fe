// SQLite answers within the call: a walk over many rows, however many awaits it has, would never return to the event loop, and whoever asks
// for something meanwhile would wait until its end. So a statement that comes when statements have filled a turn of the loop waits for the
// next one.

import { type Driver, SqliteDialect } from 'kysely';

/** Of one turn of the event loop: little enough that a request that comes in meanwhile does not notice. */
const turnMs = 2;

/** When the first statement of this turn began. All connections of the process share the loop. */
let turnBegan: number | undefined;
const endTurn = (): void => {
  turnBegan = undefined;
};

/** Resolves in this turn of the event loop as long as there is room in it. */
const roomInTurn = async (): Promise<void> => {
  while (turnBegan !== undefined && performance.now() - turnBegan > turnMs)
    await new Promise<void>((resolve) => setImmediate(resolve));
  if (turnBegan !== undefined) return;
  turnBegan = performance.now();
  setImmediate(endTurn);
};

/** Kysely's dialect, whose statements give way. */
export class GivingWayDialect extends SqliteDialect {
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
