// What this process remembers of the database outlasts a crash of the database: else what it finds
// afterwards is older than what it knows, and every change is refused. On PostgreSQL, whose process
// ends without this one.
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPostgresStore } from '../../../server/adapters/store/store.ts';
import { newId } from '../../../server/base/ids.ts';
import { systemClock } from '../../../server/base/time.ts';
import type { Repositories } from '../../../server/ports/store.ts';
import { type PostgresServer, startPostgres } from '../../support/postgresql.ts';

let postgres: PostgresServer;
beforeAll(async () => {
  // What is not waited for is written ten seconds later.
  postgres = await startPostgres({ settings: ['wal_writer_delay=10s'] });
});
afterAll(() => postgres?.remove());

const authenticateRow = (text: string): string =>
  createHmac('sha256', 'row key of the test').update(text).digest('hex');

/** What each of these changes is remembered by is alone in its commit. */
test.each<[string, (tx: Repositories) => Promise<unknown>]>([
  ['a policy row', (tx) => tx.decisions.set('deadline-clock', 'one')],
  ['a change that other nodes hear of', (tx) => tx.keks.remove(newId(1), 1)],
])('%s is there after a crash of the database, also where no caller waits for it', async (name, change) => {
  const store = await openPostgresStore({
    postgres: { ...postgres.createDatabase(`crash_${name.length}`), password: undefined, ca: undefined, readers: 1 },
    clock: systemClock,
    authenticateRow,
    onFatal: (error) => {
      throw error;
    },
  });
  try {
    await store.started();
    await store.rowSet.load();
    await store.write(change, { durable: false });
    const known = store.mark();
    await postgres.stop('SIGQUIT');
    await postgres.start();
    const again = (): Promise<string> =>
      store
        .write((tx) => tx.decisions.set('deadline-clock', 'two'))
        .then(
          () => 'done',
          (error: unknown) => String((error as { code?: unknown }).code),
        );
    await expect.poll(again).not.toBe('unavailable');
    expect(await again()).toBe('done');
    expect(await store.link?.changesSince(known, Number.MAX_SAFE_INTEGER)).not.toHaveProperty('lost');
  } finally {
    await store.close();
  }
});
