// The write-ahead log is copied into the database file by a thread, without a commit that does it,
// and is restarted; an erasure's own checkpoint does not meet it.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createCheckpointer } from '../../../server/adapters/store/engine/sqlite/checkpointer.ts';
import { identityOf } from '../../../server/adapters/store/engine/sqlite/own-file.ts';
import { openStore } from '../../../server/adapters/store/store.ts';
import { systemClock } from '../../../server/base/time.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';
import { requestRecord } from '../../support/request-record.ts';

let folder: string;
let path: string;
let store: Store;
beforeEach(async () => {
  written = 0;
  folder = folderOfTest();
  path = join(folder, 'dke.db');
  store = await openStore({
    path,
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

const mebibyte = 1024 * 1024;
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
/**
 * How often the log has been restarted: the checkpoint sequence number of its header
 * (sqlite.org/fileformat2.html, 4.1).
 */
const generation = (log = `${path}-wal`): number => readFileSync(log).readUInt32BE(12);
let written = 0;
/** Some 2 MiB of log a thousand. */
const write = (records: number): Promise<void> => {
  written += records;
  const entries = Array.from({ length: records }, (_, at) => requestRecord(at, 'p'.repeat(1_500)));
  return store.write((tx) => tx.requests.append(entries), { durable: false });
};

test('what is committed reaches the database file, and the log is restarted', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  expect(sizeOf(path)).toBeLessThan(mebibyte);
  const log = sizeOf(`${path}-wal`);
  expect(log).toBeGreaterThan(6 * mebibyte);
  const first = generation();
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(5 * mebibyte), { timeout: 300_000 });
  // Without a commit of the store's, which would wait for the disk to take the new header.
  await vi.waitFor(() => expect(generation()).toBe(first + 1), { timeout: 300_000 });
  await write(1);
  expect(generation()).toBe(first + 1);
  expect(sizeOf(`${path}-wal`)).toBe(log);
  expect((await store.read.requests.search(everyTenant, {}, { limit: 1 })).items).toHaveLength(1);
});

test('a reader of the log prevents its restart, and nothing is lost', async () => {
  const standing = new DatabaseSync(path, { readOnly: true });
  try {
    await write(1);
    standing.exec('begin');
    standing.prepare('select count(*) from request_log').get();
    const first = generation();
    for (let round = 0; round < 8; round++) await write(500);
    const log = sizeOf(`${path}-wal`);
    await vi.waitFor(
      async () => {
        await write(1);
        expect(sizeOf(`${path}-wal`)).toBeGreaterThan(log + 20 * 4096);
      },
      { timeout: 300_000 },
    );
    expect(generation()).toBe(first);
    standing.exec('rollback');
    await vi.waitFor(
      async () => {
        await write(1);
        expect(generation()).toBeGreaterThan(first);
      },
      { timeout: 300_000 },
    );
  } finally {
    standing.close();
  }
  const read = new DatabaseSync(path, { readOnly: true });
  expect(read.prepare('select count(*) as many from request_log').get()?.many).toBe(written);
  expect(read.prepare('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  read.close();
});

test('a commit between the copy and the new log is appended to the others', async () => {
  const other = join(folder, 'other.db');
  const log = `${other}-wal`;
  const database = new DatabaseSync(other);
  database.exec('pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table things (bytes blob)');
  const insert = database.prepare('insert into things values (zeroblob(?))');
  insert.run(6 * mebibyte);
  const first = generation(log);
  const { promise: done, resolve } = Promise.withResolvers<readonly number[]>();
  const checkpointer = createCheckpointer({
    path: other,
    identity: identityOf(other),
    lockWaitMs: 0,
    pause: async (work) => {
      const seen = [sizeOf(other)];
      insert.run(1);
      seen.push(generation(log));
      await work();
      seen.push(generation(log));
      resolve(seen);
    },
    onFailure: () => resolve([]),
  });
  try {
    checkpointer.committed();
    const [copied = 0, ...generations] = await done;
    expect(copied).toBeGreaterThan(6 * mebibyte);
    expect(generations).toEqual([first, first + 1]);
    expect(database.prepare('select count(*) as many from things').get()).toMatchObject({ many: 2 });
  } finally {
    await checkpointer.close();
    database.close();
  }
});

test('a thread that ends on its own leaves an erasure to the store, once it was told', async () => {
  await write(1);
  const post = vi.spyOn(Worker.prototype, 'postMessage');
  try {
    const first = store.checkpoint().catch((error: unknown) => error);
    while (post.mock.contexts.length === 0) await setImmediate();
    await (post.mock.contexts.at(-1) as Worker | undefined)?.terminate();
    expect(await first).toMatchObject({ name: 'ThreadEnded' });
    post.mockClear();
    await write(1);
    await store.checkpoint();
    expect(sizeOf(`${path}-wal`)).toBe(0);
    expect(post).not.toHaveBeenCalled();
  } finally {
    post.mockRestore();
  }
});

test('an erasure’s checkpoint leaves no log, whatever the thread is doing', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(mebibyte), { timeout: 300_000 });
  await store.checkpoint();
  expect(sizeOf(`${path}-wal`)).toBe(0);
});

test('nothing is copied from the moment at which an erasure waits for its checkpoint', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  const first = generation();
  await vi.waitFor(() => expect(generation()).toBe(first + 1), { timeout: 300_000 });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    for (let round = 0; round < 8; round++) await write(500);
    const gate = Promise.withResolvers<void>();
    const unit = store.write(() => gate.promise);
    const emptied = store.checkpoint();
    // When the next copy would begin.
    vi.advanceTimersByTime(1_000);
    for (let turn = 0; turn < 2_000; turn += 1) await setImmediate();
    gate.resolve();
    await Promise.all([unit, emptied]);
    expect(sizeOf(`${path}-wal`)).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('a store is closed while its log is being copied', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(mebibyte), { timeout: 300_000, interval: 1 });
  await store.close();
  expect(sizeOf(`${path}-wal`)).toBe(0);
  store = await openStore({ path, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  expect((await store.read.requests.search(everyTenant, {}, { limit: 1 })).items).toHaveLength(1);
});
