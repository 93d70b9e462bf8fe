// The write-ahead log is copied into the database file by a thread, without a commit that does it, and is begun anew; an erasure's
// own checkpoint does not meet it.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../server/base/clock.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { openStore } from '../../../server/store/store.ts';

let folder: string;
let path: string;
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-checkpointer-'));
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
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const mebibyte = 1024 * 1024;
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
/** Some 2 MiB of log a thousand. */
const record = (at: number): XksRequestRecord => ({
  at,
  requestId: `r-${at}`,
  endpointId: 'e',
  operation: 'encrypt',
  kmsOperation: null,
  kmsRequestId: null,
  principal: 'p'.repeat(1_500),
  kmsKeyArn: null,
  externalKeyId: null,
  credentialId: null,
  status: 200,
  errorName: null,
  durationMs: 1,
  phases: { readMs: 0, authMs: 0, cryptoMs: 0 },
  reason: null,
  peer: null,
});
const write = (records: number): Promise<void> => {
  const entries = Array.from({ length: records }, (_, at) => record(at));
  return store.write((tx) => tx.requests.append(entries), { durable: false });
};

test('what is committed reaches the database file, and the log is begun anew', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  expect(sizeOf(path)).toBeLessThan(mebibyte);
  const log = sizeOf(`${path}-wal`);
  expect(log).toBeGreaterThan(6 * mebibyte);
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(5 * mebibyte), { timeout: 60_000 });
  // Until the thread has said that all was copied, a commit goes behind the others.
  await vi.waitFor(
    async () => {
      await write(1);
      const before = sizeOf(`${path}-wal`);
      await write(1);
      expect(sizeOf(`${path}-wal`)).toBe(before);
    },
    { timeout: 60_000 },
  );
  expect((await store.read.requests.search(everyTenant, {}, { limit: 1 })).items).toHaveLength(1);
});

test('an erasure’s checkpoint leaves no log, whatever the thread is doing', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(mebibyte), { timeout: 60_000 });
  await store.checkpoint();
  expect(sizeOf(`${path}-wal`)).toBe(0);
});

test('a store is closed while its log is being copied', async () => {
  for (let round = 0; round < 8; round++) await write(500);
  await vi.waitFor(() => expect(sizeOf(path)).toBeGreaterThan(mebibyte), { timeout: 60_000, interval: 1 });
  await store.close();
  expect(sizeOf(`${path}-wal`)).toBe(0);
  store = await openStore({ path, clock: systemClock, authenticateRow: () => '', onFatal: () => undefined });
  expect((await store.read.requests.search(everyTenant, {}, { limit: 1 })).items).toHaveLength(1);
});
