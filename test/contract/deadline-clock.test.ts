// The deadline clock as the store keeps it: over a restart of the process and of the host, and next
// to the clock of a database server.
import { beforeEach, expect, test } from 'vitest';
import { everyTenant } from '../../server/domain/tenant.ts';
import { createDeadlines } from '../../server/operations/service/deadline-clock.ts';
import type { Store } from '../../server/ports/store.ts';
import { administrator } from '../support/open-service.ts';
import { storeOfTest } from '../support/open-store.ts';
import { quietLog as log } from '../support/quiet-log.ts';
import { onPostgresql } from '../support/test-store.ts';

const day = 86_400_000;
let store: Store;
/** How far the host's clock is ahead, in milliseconds, and how long the host has been up. */
let ahead = 0;
let uptime = { bootId: 'first', ms: 1_000_000 };
const clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() };
const start = () => createDeadlines({ store, clock, log }, () => uptime);

beforeEach(async () => {
  ahead = 0;
  uptime = { bootId: 'first', ms: 1_000_000 };
  store = await storeOfTest(clock);
  await start().advance();
});
/** Within a minute: a machine may be slow, no deadline is that short. */
const about = (at: number) => ({ asymmetricMatch: (seen: number) => Math.abs(seen - at) < 60_000 });

test('a clock of the host that is ahead decides no deadline; where a database server has the right time, no one needs to be told', async () => {
  const began = Date.now();
  ahead = 60 * day;
  const deadlines = start();
  await deadlines.advance();
  expect(await deadlines.now()).toEqual(about(began));
  expect(await deadlines.latest()).toEqual(about(began + ahead));
  expect((await deadlines.state()).doubt === null).toBe(onPostgresql);
});

test.skipIf(onPostgresql)(
  'a host that was switched off for a week is doubted until an operator confirms the time',
  async () => {
    const began = Date.now();
    ahead = 7 * day;
    uptime = { bootId: 'second', ms: 10_000 };
    const deadlines = start();
    await deadlines.advance();
    expect((await deadlines.state()).doubt).toMatchObject({ ahead: about(7 * day) });
    await expect(deadlines.confirm(administrator, began)).rejects.toMatchObject({ code: 'conflict' });
    expect(await deadlines.confirm(administrator, began + 7 * day)).toMatchObject({ doubt: null });
    expect(await start().now()).toEqual(about(began + 7 * day));
    const kinds = (await store.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 10 })).map(
      ({ kind }) => kind,
    );
    expect(kinds).toEqual(['clock.jumped', 'clock.confirmed']);
  },
);

test('a service that was stopped for a week on a host that ran is not doubted', async () => {
  const began = Date.now();
  if (!onPostgresql) ahead = 7 * day;
  uptime = { bootId: 'first', ms: uptime.ms + (onPostgresql ? 0 : 7 * day) };
  const deadlines = start();
  await deadlines.advance();
  expect(await deadlines.state()).toMatchObject({ now: about(began + ahead), doubt: null });
});

test('a clock that is behind ends no deadline early when it is put right', async () => {
  const began = Date.now();
  ahead = -60 * day;
  const deadlines = start();
  await deadlines.advance();
  expect(await deadlines.now()).toEqual(about(began - 60 * day));
  expect(await deadlines.latest()).toEqual(about(began));
});
