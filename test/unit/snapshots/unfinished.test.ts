// Snapshots that were left in the middle: they end with the run of the node that made them, and
// block no erasure run after that.
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../../server/adapters/store/store.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { systemClock } from '../../../server/base/time.ts';
import { type FleetNode, runOf } from '../../../server/domain/node.ts';
import type { Snapshot } from '../../../server/domain/snapshot.ts';
import { setMaker, settleUnfinished } from '../../../server/operations/snapshots/erase-destroyed.ts';
import type { Ports } from '../../../server/ports/ports.ts';
import type { Store } from '../../../server/ports/store.ts';
import { folderOfTest } from '../../support/folders.ts';

let store: Store;
beforeEach(async () => {
  store = await openStore({
    path: join(folderOfTest(), 'dke.db'),
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error) => {
      throw error;
    },
  });
});
afterEach(() => store.close());

const begin = async (run: string | undefined): Promise<string> => {
  const createdAt = Date.now();
  const id = newId(createdAt);
  const begun: Snapshot = {
    ...{ id, tenantId: serviceTenantId, origin: 'requested', state: 'creating', createdAt, auditSize: 0, size: null },
    ...{ counts: null, recoveryKeyIds: [], signer: null, verification: null, verifiedAt: null, deletedAt: null },
    ...{ purgedAt: null, failure: null, integrity: 'ok' },
  };
  await store.write(async (tx) => {
    await tx.snapshots.insert(begun);
    if (run !== undefined) await setMaker(tx, id, run);
  });
  return id;
};
const self = { id: 'node-1', startedAt: 2, self: true, state: 'active' } as FleetNode;
const other = { id: 'node-2', startedAt: 7, self: false, state: 'active' } as FleetNode;
const settle = async (isReached: boolean, ...nodes: readonly FleetNode[]): Promise<readonly string[]> => {
  const removed: string[] = [];
  const archive = { reached: () => isReached, remove: (id: string) => void removed.push(id) };
  const fleet = { nodes: () => Promise.resolve(nodes) };
  await settleUnfinished({ store, archive, fleet } as unknown as Pick<Ports, 'store' | 'archive' | 'fleet'>);
  return removed;
};
const stateOf = async (id: string): Promise<string | undefined> => (await store.read.snapshots.get(id))?.state;

test('one of an earlier run of this node ends at once', async () => {
  const id = await begin(runOf({ ...self, startedAt: 1 }));
  expect(await settle(true, self, other)).toEqual([id]);
  expect(await stateOf(id)).toBe('failed');
});

test('one of this run ends at once when none is made here, as after a failure that could not be recorded', async () => {
  const id = await begin(runOf(self));
  expect(await settle(true, self, other)).toEqual([id]);
  expect(await stateOf(id)).toBe('failed');
});

test('one of another node ends when that run is over, by its heartbeat or by a newer run, and not before', async () => {
  const id = await begin(runOf(other));
  expect(await settle(true, self, other)).toEqual([]);
  expect(await stateOf(id)).toBe('creating');
  expect(await settle(true, self, { ...other, state: 'draining' })).toEqual([]);
  await settle(true, self, { ...other, state: 'offline' });
  expect(await stateOf(id)).toBe('failed');
  const next = await begin(runOf(other));
  await settle(true, self, { ...other, startedAt: 8 });
  expect(await stateOf(next)).toBe('failed');
});

test('one whose maker is not known ends, also while the folder of snapshots is away', async () => {
  const id = await begin(undefined);
  expect(await settle(false, self)).toEqual([]);
  expect(await stateOf(id)).toBe('failed');
});
