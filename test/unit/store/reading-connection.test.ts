// What a thread reads for the store: answers in their order, errors as SQLite's own, and others
// continue in the meantime.
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { CompiledQuery, Kysely } from 'kysely';
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { ReadingConnection, readingDialect } from '../../../server/adapters/store/engine/sqlite/reading-connection.ts';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createRequestMinutes } from '../../../server/operations/requests/request-minutes.ts';
import { folderOfTest } from '../../support/folders.ts';
import { requestRecord } from '../../support/request-record.ts';

let folder: string;
let path: string;
let database: DatabaseSync;
let connection: ReadingConnection;
beforeEach(() => {
  folder = folderOfTest();
  path = join(folder, 'some.db');
  database = new DatabaseSync(path);
  database.exec('pragma journal_mode = wal; create table things (id integer primary key, name text, bytes blob)');
  connection = new ReadingConnection(path, 0);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await connection.close();
  database.close();
});
const ask = async (sql: string, parameters: readonly unknown[] = []) =>
  (await connection.executeQuery(CompiledQuery.raw(sql, [...parameters]))).rows;

const long =
  'with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 3000000) select max(n) as most from counted';

test('other work continues while a statement runs, and answers arrive in the order of the queries', async () => {
  const order: string[] = [];
  const first = ask(long).then(([row]) => {
    order.push('first');
    return row;
  });
  const second = ask('select 2 as two').then(() => order.push('second'));
  for (let turn = 0; turn < 20; turn += 1) await setImmediate();
  expect(order).toEqual([]);
  expect(await first).toEqual({ most: 3_000_000 });
  await second;
  expect(order).toEqual(['first', 'second']);
});

test('gives and takes what SQLite knows', async () => {
  const bytes = Buffer.from('a piece of a larger one').subarray(2, 7);
  database.prepare('insert into things values (?, ?, ?)').run(7, 'é ☃', bytes);
  database.exec('insert into things values (9007199254740993, null, null)');
  expect(await ask('select * from things where bytes = ?', [bytes])).toEqual([
    { id: 7, name: 'é ☃', bytes: new Uint8Array(bytes) },
  ]);
  // A number that JavaScript cannot hold is the largest that it can.
  expect(await ask('select id, name from things where id > ?', [7])).toEqual([
    { id: Number.MAX_SAFE_INTEGER, name: null },
  ]);
});

test('fails as SQLite does, cannot write, and continues', async () => {
  await expect(ask('select * from no_such')).rejects.toMatchObject({ message: 'no such table: no_such', errcode: 1 });
  await expect(ask("insert into things values (1, 'x', null)")).rejects.toMatchObject({ errcode: 8 });
  database.exec('begin exclusive');
  expect(await ask('select count(*) as many from things')).toEqual([{ many: 0 }]);
  database.exec('rollback');
});

test('sees one state within a transaction, and the newest one outside', async () => {
  const db = new Kysely<{ things: { id: number; name: string } }>({ dialect: readingDialect(connection) });
  const many = async (from: typeof db): Promise<number> =>
    Number((await from.selectFrom('things').select('id').execute()).length);
  const seen = await db.transaction().execute(async (own) => {
    const before = await many(own);
    database.exec("insert into things values (1, 'x', null)");
    return [before, await many(own)];
  });
  expect(seen).toEqual([0, 0]);
  expect(await many(db)).toBe(1);
  await db.destroy();
  await expect(ask('select 1')).rejects.toThrow('the connection is closed');
});

describe('a thread that ends on its own', () => {
  /** Ends the thread that got the last statement. */
  const endThread = async (post: MockInstance<Worker['postMessage']>): Promise<void> => {
    await (post.mock.contexts.at(-1) as Worker | undefined)?.terminate();
  };

  test('fails what was asked, and the next statement begins another', async () => {
    const post = vi.spyOn(Worker.prototype, 'postMessage');
    const asked = Promise.allSettled([ask(long), ask('select 2')]);
    await endThread(post);
    const ended = { status: 'rejected', reason: expect.objectContaining({ name: 'ThreadEnded' }) };
    expect(await asked).toEqual([ended, ended]);
    expect(await ask('select 3 as three')).toEqual([{ three: 3 }]);
  });

  test('fails the transaction it was in, to its end', async () => {
    const post = vi.spyOn(Worker.prototype, 'postMessage');
    const db = new Kysely<{ things: { id: number } }>({ dialect: readingDialect(connection) });
    const seen: unknown[] = [];
    const whole = db.transaction().execute(async (own) => {
      const all = () => own.selectFrom('things').selectAll().execute();
      seen.push(await all());
      await endThread(post);
      for (let again = 0; again < 2; again += 1) seen.push(await all().catch(({ name }: Error) => name));
      return seen;
    });
    await expect(whole).rejects.toMatchObject({ name: 'ThreadEnded' });
    expect(seen).toEqual([[], 'ThreadEnded', 'ThreadEnded']);
    expect(await db.transaction().execute((own) => own.selectFrom('things').selectAll().execute())).toEqual([]);
  });

  test('is a database that does not answer, for who searches the log of requests', async () => {
    const own = join(folder, 'dke.db');
    const onFatal = vi.fn();
    const store = await openStore({ path: own, clock: systemClock, authenticateRow: () => '', onFatal });
    try {
      const post = vi.spyOn(Worker.prototype, 'postMessage');
      const searched = store.read.requests.oldest().catch((error: unknown) => error);
      while (post.mock.contexts.length === 0) await setImmediate();
      await endThread(post);
      expect(await searched).toMatchObject({ code: 'unavailable' });
      expect(await store.read.requests.oldest()).toBeUndefined();
      expect(onFatal).not.toHaveBeenCalled();
    } finally {
      await store.close();
    }
  });
});

test('what is asked before the end is answered, and nothing begins behind it', async () => {
  const last = ask(long);
  await connection.close();
  expect(await last).toEqual([{ most: 3_000_000 }]);
  await expect(ask('select 1')).rejects.toThrow('the connection is closed');
});

test('an answer during the end does not let the process end before the thread has', async () => {
  const last = ask(long);
  const unref = vi.spyOn(Worker.prototype, 'unref');
  const closed = connection.close();
  await last;
  await closed;
  expect(unref).not.toHaveBeenCalled();
});

test('the request log is searched and hashed, and a snapshot read, by threads and not by the one that answers', async () => {
  const own = join(folder, 'dke.db');
  const store = await openStore({ path: own, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  try {
    await store.write((tx) => tx.requests.append([1, 2, 3].map((at) => requestRecord(at))));
    const through = await store.read.requests.newest();
    const here = vi.spyOn(StatementSync.prototype, 'all');
    const { items } = await store.read.requests.search(everyTenant, {}, { limit: 10 });
    expect(items.map(({ at }) => at)).toEqual([3, 2, 1]);
    expect(await store.read.requests.oldest()).toBe(1);
    const span = { from: 0, to: 10, through };
    const hashes = await store.read.requests.hashesInTime(span, undefined, 10);
    expect(hashes.map(({ at, hash }) => [at, hash.byteLength])).toEqual([
      [1, 32],
      [2, 32],
      [3, 32],
    ]);
    expect(new Set(hashes.map(({ hash }) => Buffer.from(hash).toString('hex'))).size).toBe(3);
    expect(await store.read.requests.hashesOfLate({ after: 1, through: 3, before: 3 })).toEqual([hashes[1]]);
    expect(await store.snapshot((from) => from.requests.newest())).toBe(3);
    expect(here).not.toHaveBeenCalled();
    await store.read.settings.get('probe');
    expect(here).toHaveBeenCalled();
  } finally {
    await store.close();
  }
});

test('a start and the minutes of an empty request log need no thread', async () => {
  const own = join(folder, 'dke.db');
  const store = await openStore({ path: own, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  try {
    const asked = vi.spyOn(Worker.prototype, 'postMessage');
    const quiet = (): void => undefined;
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    const minutes = createRequestMinutes({ store, clock: systemClock, log });
    await store.rowSet.load();
    await minutes.run();
    expect(asked).not.toHaveBeenCalled();
    await store.write((tx) => tx.requests.append([requestRecord(1)]));
    await minutes.run();
    expect(asked).toHaveBeenCalled();
  } finally {
    await store.close();
  }
});
