// The last uses of keys, from the front, which sets a number, to the store: when they are written,
// and the state after a failure.
import { beforeEach, expect, test } from 'vitest';
import { createDirectory } from '../../../server/operations/data-path/create-working-memory.ts';
import { createUsageLog } from '../../../server/operations/data-path/usage-log.ts';
import { createHousekeeping } from '../../../server/operations/service/housekeeping.ts';
import { createJobBoard } from '../../../server/operations/shared/job-board.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { Directory } from '../../../server/ports/working-memory.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { oneEndpoint } from '../../support/one-endpoint.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { quietLog } from '../../support/quiet-log.ts';

let now = 1_000_000;
const clock = { now: () => now, monotonic: () => now };
const deadlines = deadlinesBy(clock);
const complaints: string[] = [];
const log = { ...quietLog, error: (message: string) => void complaints.push(message) };
const people = { secondFactor: 'required', sessionIdleMs: 1, sessionMs: 1, invitationMs: 1 } as const;

// No record is opened: neither the addon nor the key ring is called.
const rows = oneEndpoint({ usages: [], state: 'soft-deleted', deletedAt: 4 });
const { tenant, key, endpoint } = rows;

let store: Store;
let directory: Directory;
beforeEach(async () => {
  now = 1_000_000;
  complaints.length = 0;
  store = await storeOfTest(clock);
  await store.write(rows.insert);
  directory = createDirectory(
    { store, clock, log, core: undefined as never, ring: undefined as never },
    { objects: 16, requests: 16 },
  );
  await directory.renew({ tenants: [tenant.id], endpoints: [endpoint.id] });
});

const use = (at: number): void => {
  const view = directory.endpoint('/door');
  if (view === undefined) throw new Error('no endpoint');
  view.use.at = at;
};
const pending = (all: boolean): readonly number[] => directory.keyUses(all).map(({ at }) => at);
const nothing = (): Promise<void> => Promise.resolve();
/** Writes all pending uses, as a stop of the service does. */
const writeAll = (to: Store): Promise<void> =>
  createHousekeeping(
    {
      store: to,
      directory,
      usage: createUsageLog({ store, clock, log }, 1_000),
      clock,
      deadlines,
      log,
      people,
      fleet: { perform: () => Promise.resolve(undefined) },
      ring: { authenticateRow: () => '' },
    },
    { requestLogDays: 1, requestLogRows: 1 },
    ...([nothing, nothing, nothing, createJobBoard(clock)] as const),
  ).stop();
const stored = async () => {
  const { firstUsedAt, lastUsedAt } = (await store.read.keys.get(tenant.id, key.id)) ?? {};
  return [firstUsedAt, lastUsedAt, (await store.read.endpoints.listByKey(tenant.id, key.id, 2))[0]?.lastUsedAt];
};

test('the first use is written at once, later ones every ten seconds, none twice', () => {
  expect(pending(true)).toEqual([]);
  use(now);
  expect(pending(false)).toEqual([now]);
  directory.keyUsesWritten(directory.keyUses(false));
  expect(pending(true)).toEqual([]);
  use(now + 1);
  now += 9_999;
  expect([pending(false), pending(true)]).toEqual([[], [1_000_001]]);
  now += 1;
  expect(pending(false)).toEqual([1_000_001]);
});

test('a use counts through a renewal of its endpoint, and after its end', async () => {
  use(now);
  await directory.renew({ endpoints: [endpoint.id] });
  expect(pending(false)).toEqual([now]);
  await store.write(async (tx) => {
    await tx.endpoints.get(endpoint.tenantId, endpoint.id);
    await tx.endpoints.update({ ...endpoint, state: 'deleted' });
  });
  await directory.renew({ endpoints: [endpoint.id] });
  expect(directory.endpoint('/door')).toBeUndefined();
  expect(pending(false)).toEqual([now]);
  await writeAll(store);
  expect(await stored()).toEqual([now, now, now]);
  expect(pending(true)).toEqual([]);
});

test('a stop writes what waits; what another node saw later stays', async () => {
  use(now);
  await writeAll(store);
  expect(await stored()).toEqual([1_000_000, 1_000_000, 1_000_000]);
  await store.write(async (tx) => {
    await tx.keys.touch(key.id, 2_000_000, 2_000_000);
    await tx.endpoints.touch(endpoint.id, 2_000_000);
  });
  use(1_500_000);
  await writeAll(store);
  expect(await stored()).toEqual([1_000_000, 2_000_000, 2_000_000]);
});

test('a use whose commit fails is written later', async () => {
  use(now);
  await writeAll({ ...store, write: () => Promise.reject(new Error('no room')) });
  expect([complaints.length, await stored(), pending(true)]).toEqual([1, [null, null, null], [now]]);
  await writeAll(store);
  expect(await stored()).toEqual([now, now, now]);
});
