// A part of the game day (npm run gameday): faults that are noticed at once, under the load of
// databases and clouds. In the long tier also those that the jobs of each minute notice, and
// MariaDB.
import { expect, test } from 'vitest';
import { playGameDay } from '../gameday/game.ts';
import { allFaults, type Fault } from '../gameday/table.ts';
import { mariadbIsThere } from '../support/mariadb.ts';
import { inLongTier } from '../support/tiers.ts';

const short: readonly Fault[] = ['lost certificate', 'older database'];
const seed = Number(process.env.DKE_SEED ?? 1);

test('every acknowledged key is there or reported, what was encrypted decrypts, and every promised alert fires', async () => {
  const { findings, order, reportedMissing } = await playGameDay({ seed, mariadb: false, faults: short });
  expect(findings, `DKE_SEED=${seed}`).toEqual([]);
  expect(order.toSorted()).toEqual(short.toSorted());
  // The keys that were created after the copy of the older database.
  expect(reportedMissing).toBe(3);
});

test.runIf(inLongTier('scenario/game-day: MariaDB and slow faults') && mariadbIsThere())(
  'the same with MariaDB, for the faults that take longer',
  async () => {
    const faults = allFaults.filter((fault) => !short.includes(fault));
    const { findings, order, skipped, mariadbRows } = await playGameDay({ seed, mariadb: true, faults });
    expect(findings, `DKE_SEED=${seed}`).toEqual([]);
    expect(order.length + skipped.length).toBe(faults.length);
    expect(mariadbRows).toBeGreaterThan(0);
  },
);
