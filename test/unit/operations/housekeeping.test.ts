// What happens to request records by the clock: written, removed when they are too old or too many,
// and counted when they are lost.
import { beforeEach, expect, test, vi } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import type { Approval } from '../../../server/domain/approval.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createDirectory } from '../../../server/operations/data-path/create-working-memory.ts';
import { createUsageLog } from '../../../server/operations/data-path/usage-log.ts';
import { createHousekeeping } from '../../../server/operations/service/housekeeping.ts';
import { createJobBoard } from '../../../server/operations/shared/job-board.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { Directory } from '../../../server/ports/working-memory.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';
import { requestRecord } from '../../support/request-record.ts';
import { onSqlite } from '../../support/test-store.ts';

const day = 86_400_000;
const now = 1_000 * day;
let monotonic = 0;
const clock = { now: () => now, monotonic: () => monotonic };
const deadlines = deadlinesBy(clock);
const complaints: string[] = [];
const log = {
  ...quietLog,
  error: (message: string) => void complaints.push(message),
};

const people = {
  secondFactor: 'required',
  sessionIdleMs: 3_600_000,
  sessionMs: 43_200_000,
  invitationMs: 3_600_000,
} as const;

let store: Store;
let directory: Directory;
beforeEach(async () => {
  monotonic = 0;
  complaints.length = 0;
  store = await storeOfTest(clock);
  // No endpoint, no object: neither the addon nor the key ring is called.
  directory = createDirectory(
    { store, clock, log, core: undefined as never, ring: undefined as never },
    { objects: 16, requests: 10_000 },
  );
});

const ring = { authenticateRow: (text: string) => String(text.length) };
const fleet = { perform: <T>(_: unknown, work: () => Promise<T>): Promise<T> => work() };
const nothing = (): Promise<void> => Promise.resolve();
const open = (limits: { requestLogDays: number; requestLogRows: number }, into = store, checkHealth = nothing) =>
  createHousekeeping(
    {
      store: into,
      directory,
      usage: createUsageLog({ store, clock, log }, 1_000),
      clock,
      deadlines,
      log,
      people,
      fleet,
      ring,
    },
    limits,
    checkHealth,
    nothing,
    nothing,
    createJobBoard(clock),
  );
const all = async (): Promise<number> =>
  (await store.read.requests.search(everyTenant, {}, { limit: 10_000 })).items.length;

test('records that are too old go, all of them in one run, and what comes in meanwhile is written', async () => {
  for (let at = 0; at < 3000; at++) directory.record(requestRecord(now - 31 * day + at));
  for (let at = 0; at < 200; at++) directory.record(requestRecord(now - at));
  const housekeeping = open({ requestLogDays: 30, requestLogRows: 1_000_000 });
  housekeeping.start();
  await vi.waitFor(async () => expect(await all()).toBe(3200), { timeout: 300_000 });
  directory.record(requestRecord(now));
  monotonic = 61_000;
  await vi.waitFor(async () => expect(await all()).toBe(201), { timeout: 300_000 });
  await housekeeping.stop();
  expect(complaints).toEqual([]);
});

test('the newest stay when there are too many', async () => {
  for (let at = 0; at < 2600; at++) directory.record(requestRecord(now + at));
  const housekeeping = open({ requestLogDays: 30, requestLogRows: 1000 });
  housekeeping.start();
  await vi.waitFor(async () => expect(await all()).toBe(2600), { timeout: 300_000 });
  monotonic = 61_000;
  await vi.waitFor(async () => expect(await all()).toBe(1000), { timeout: 300_000 });
  expect(await store.read.requests.oldest()).toBe(now + 1600);
  await housekeeping.stop();
});

test('a queue of records that fills is written, although writing is slow and pauses are longer then', async () => {
  let written = 0;
  const slow: Store = {
    ...store,
    write: (work, options) => {
      written += 1;
      monotonic += 500;
      return store.write(work, options);
    },
  };
  let ran = Promise.withResolvers<void>();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const housekeeping = open({ requestLogDays: 30, requestLogRows: 1_000_000 }, slow, async () => ran.resolve());
    const turn = async (): Promise<void> => {
      ran = Promise.withResolvers();
      vi.advanceTimersByTime(200);
      await ran.promise;
      // The next turn is set behind the end of this one.
      await new Promise((resolve) => setImmediate(resolve));
    };
    housekeeping.start();
    directory.record(requestRecord(now));
    await turn();
    const before = written;
    directory.record(requestRecord(now));
    vi.advanceTimersByTime(200);
    expect(written).toBe(before);
    for (let at = 0; at < 1_000; at++) directory.record(requestRecord(now));
    await turn();
    expect(written).toBeGreaterThan(before);
    await housekeeping.stop();
  } finally {
    vi.useRealTimers();
  }
  expect(await all()).toBe(1_002);
});

test.runIf(onSqlite('there a batch is written while the loop turns, and not in one of its turns'))(
  'none is lost while each turn of the event loop brings more than one batch holds',
  async () => {
    let given = 0;
    const give = (): void => {
      for (let at = 0; at < 150; at += 1, given += 1) directory.record(requestRecord(now));
    };
    let came = false;
    const busy: Store = {
      ...store,
      write: (work, options) =>
        store.write(
          (tx) =>
            work({
              ...tx,
              requests: {
                ...tx.requests,
                append: async (entries) => {
                  await tx.requests.append(entries);
                  if (came || given >= 60_000) return;
                  came = true;
                  setImmediate(() => {
                    came = false;
                    give();
                  });
                },
              },
            }),
          options,
        ),
    };
    const housekeeping = open({ requestLogDays: 30, requestLogRows: 1_000_000 }, busy);
    give();
    housekeeping.start();
    await vi.waitFor(() => expect({ given, ...directory.requestLog() }).toMatchObject({ given: 60_000, queued: 0 }), {
      timeout: 300_000,
    });
    await housekeeping.stop();
    expect(directory.requestLog().dropped).toBe(0);
  },
);

test('a stop writes what waits, and prunes nothing', async () => {
  for (let at = 0; at < 10; at++) directory.record(requestRecord(at));
  const housekeeping = open({ requestLogDays: 30, requestLogRows: 1000 });
  monotonic = 61_000;
  await housekeeping.stop();
  expect(await all()).toBe(10);
});

test('records wait when nothing can be written', async () => {
  for (let at = 0; at < 300; at++) directory.record(requestRecord(at));
  const housekeeping = open({ requestLogDays: 30, requestLogRows: 1000 });
  await store.close();
  await housekeeping.stop();
  expect(complaints).toEqual(['housekeeping failed; request records may be missing']);
  expect(directory.requestLog()).toEqual({ queued: 300, dropped: 0, droppedUnsigned: 0 });
});

const full = new ServiceError('unavailable', 'the disk is full: nothing was changed');
const unknown = new ServiceError('unavailable', 'the change may be made yet', { reason: 'unconfirmed' });

test.each([
  ['are counted as dropped when it fails', new Error('no such table'), { queued: 0, dropped: 300 }],
  ['are counted as dropped when its outcome is unknown', unknown, { queued: 0, dropped: 300 }],
  ['wait for the next attempt when the disk is full', full, { queued: 300, dropped: 0 }],
])('records of a commit %s', async (_, failure, outcome) => {
  for (let at = 0; at < 300; at++) directory.record(requestRecord(at));
  const failing: Store = {
    ...store,
    write: (work, options) =>
      store.write(async (tx) => {
        await work(tx);
        throw failure;
      }, options),
  };
  const usage = createUsageLog({ store, clock, log }, 1_000);
  const limits = { requestLogDays: 30, requestLogRows: 1000 };
  const housekeeping = createHousekeeping(
    { store: failing, directory, usage, clock, deadlines, log, people, fleet, ring },
    limits,
    nothing,
    nothing,
    nothing,
    createJobBoard(clock),
  );
  await housekeeping.stop();
  expect(complaints).toEqual(['housekeeping failed; request records may be missing']);
  expect(directory.requestLog()).toEqual({ ...outcome, droppedUnsigned: 0 });
  expect(await all()).toBe(0);
  await open(limits).stop();
  expect(await all()).toBe(outcome.queued);
  expect(directory.requestLog().queued).toBe(0);
});

test('approval requests that ended long ago are removed in steps; open ones and recent ends stay', async () => {
  const days = (count: number): number => now - count * day;
  const request = (at: number, endedAt: number | null): Approval => ({
    id: newId(at),
    tenantId: newId(0),
    kind: 'key.delete',
    subject: { kind: 'key', id: newId(0), name: 'key' },
    parameters: {},
    impact: {},
    rules: [],
    fingerprint: '',
    state: endedAt === null ? 'pending' : 'completed',
    requestedBy: { id: newId(0), name: 'requester' },
    requestedAt: at,
    expiresAt: at,
    endedAt,
    decisions: [],
    missing: 0,
    integrity: 'ok',
  });
  const kept = [request(days(402), days(1)), request(days(402), null), request(days(1), days(1))];
  await store.write(async (tx) => {
    for (let count = 0; count < 250; count += 1) await tx.approvals.insert(request(days(403), days(402)));
    for (const each of kept) await tx.approvals.insert(each);
  });
  const stored = () => store.read.approvals.list(everyTenant, {}, { limit: 1_000 });
  expect(await stored()).toHaveLength(253);
  const housekeeping = open({ requestLogDays: 30, requestLogRows: 1_000 });
  housekeeping.start();
  for (const left of [153, 53, 3]) {
    monotonic += 61_000;
    await vi.waitFor(async () => expect(await stored()).toHaveLength(left), { timeout: 300_000 });
  }
  await housekeeping.stop();
  const left = await stored();
  expect(new Set(left.map(({ id }) => id))).toEqual(new Set(kept.map(({ id }) => id)));
  expect(left.every(({ integrity }) => integrity === 'ok')).toBe(true);
  expect(complaints).toEqual([]);
});
