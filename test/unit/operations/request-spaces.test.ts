// What a flood of requests does to the request log: unsigned ones never remove signed ones, an
// endpoint never removes the newest of another, and what could not be recorded is counted, durably.
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { createDirectory } from '../../../server/operations/data-path/create-working-memory.ts';
import { createUsageLog } from '../../../server/operations/data-path/usage-log.ts';
import { createRequestMinutes, verifyRequests } from '../../../server/operations/requests/request-minutes.ts';
import { createRequestQueue } from '../../../server/operations/requests/request-queue.ts';
import { createHousekeeping, type Housekeeping } from '../../../server/operations/service/housekeeping.ts';
import { createJobBoard } from '../../../server/operations/shared/job-board.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { Directory } from '../../../server/ports/working-memory.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog as log } from '../../support/quiet-log.ts';
import { requestRecord } from '../../support/request-record.ts';

const minute = 60_000;
const start = Date.UTC(2026, 2, 1, 9, 30);
let now = start;
let monotonic = 0;
const clock = { now: () => now, monotonic: () => monotonic };
const nothing = (): Promise<void> => Promise.resolve();

let store: Store;
let directory: Directory;
let housekeeping: Housekeeping;
beforeEach(async () => {
  now = start;
  monotonic = 0;
  store = await storeOfTest(clock);
  directory = createDirectory(
    { store, clock, log, core: undefined as never, ring: undefined as never },
    { objects: 16, requests: 20_000 },
  );
  housekeeping = createHousekeeping(
    {
      ...{ store, directory, usage: createUsageLog({ store, clock, log }, 1_000), clock, log },
      deadlines: deadlinesBy(clock),
      people: { secondFactor: 'required', sessionIdleMs: 1, sessionMs: 1, invitationMs: 1 },
      fleet: { perform: <T>(_: unknown, work: () => Promise<T>): Promise<T> => work() },
      ring: { authenticateRow: (text) => createHash('sha256').update(text).digest('hex') },
    },
    { requestLogDays: 30, requestLogRows: 5000 },
    nothing,
    nothing,
    nothing,
    createJobBoard(clock),
  );
});
afterEach(async () => {
  await housekeeping.stop();
});

const signed = (endpointId: string, at = now): XksRequestRecord => ({
  ...requestRecord(at),
  endpointId,
  credentialId: 'c',
});
const unsigned = (endpointId: string | null, at = now): XksRequestRecord => ({
  ...requestRecord(at),
  endpointId,
  credentialId: null,
  status: 401,
  errorName: 'AuthenticationFailedException',
});
const give = async (count: number, record: () => XksRequestRecord): Promise<void> => {
  for (let given = 0; given < count; given += 1) directory.record(record());
  await vi.waitFor(() => expect(directory.requestLog().queued).toBe(0), { timeout: 300_000 });
};
const count = async (of: (record: XksRequestRecord) => boolean): Promise<number> => {
  let found = 0;
  for (let after: string | undefined; ; ) {
    const { items, next } = await store.read.requests.search(everyTenant, {}, { after, limit: 1000 });
    found += items.filter(of).length;
    if (next === null) return found;
    after = next;
  }
};
const isSigned = ({ credentialId }: XksRequestRecord): boolean => credentialId !== null;
const isUnsigned = (record: XksRequestRecord): boolean => !isSigned(record);
const isOf = (id: string) => (record: XksRequestRecord) => isSigned(record) && record.endpointId === id;
const prune = async (): Promise<void> => {
  monotonic += minute + 1;
  await vi.waitFor(async () => expect(await count(() => true)).toBe(520), {
    timeout: 300_000,
    interval: 200,
  });
};
const hash = (): Promise<void> => createRequestMinutes({ store, clock, log }).run();
const verify = () => verifyRequests(store.read, { from: start, to: start + 100 * minute });

/** The removals are reported at the end. */
const sound = () =>
  vi.waitFor(async () => expect((await verify()).findings).toEqual([]), { timeout: 300_000, interval: 200 });

test('in the queue, unsigned requests take no place of signed ones, and a tenth as many wait', () => {
  const queue = createRequestQueue(10);
  for (let count = 0; count < 30; count += 1) queue.push(unsigned('e'));
  for (let count = 0; count < 11; count += 1) queue.push(signed('e'));
  expect(queue.state()).toEqual({ queued: 11, dropped: 1, droppedUnsigned: 29 });
  expect(queue.take(20).filter(isSigned)).toHaveLength(10);
});

test('unsigned requests never remove signed ones, whatever they call', async () => {
  housekeeping.start();
  await give(20, () => signed('e'));
  for (let round = 0; round < 4; round += 1) await give(1500, () => unsigned(round % 2 === 0 ? 'e' : null));
  now += 5 * minute;
  await hash();
  await prune();
  expect(await count(isSigned)).toBe(20);
  expect(await count(isUnsigned)).toBe(500);
  await sound();
});

test('a busy endpoint leaves every other one its newest records', async () => {
  housekeeping.start();
  await give(1200, () => signed('quiet'));
  for (let round = 0; round < 5; round += 1) await give(2000, () => signed('busy'));
  now += 5 * minute;
  await hash();
  monotonic += minute + 1;
  await vi.waitFor(async () => expect(await count(isSigned)).toBe(5000), { timeout: 300_000, interval: 200 });
  expect(await count(isOf('quiet'))).toBe(1200);
  await sound();
});

test('requests that could not be recorded are counted in the record of their minute, and the log is not sound', async () => {
  for (let at = 0; at < 20_300; at += 1) directory.record(signed('e'));
  for (let at = 0; at < 7000; at += 1) directory.record(unsigned('e'));
  expect(await count(() => true)).toBe(0);
  housekeeping.start();
  await vi.waitFor(() => expect(directory.requestLog().queued).toBe(0), { timeout: 300_000 });
  await housekeeping.stop();
  now += 5 * minute;
  await hash();
  const verdict = await verify();
  expect(verdict).toMatchObject({ dropped: 300 });
  expect(verdict.findings).toEqual([expect.stringMatching(/09:30Z: 300 signed requests were not recorded/)]);
});
