// The graph of dependencies: what it shows, what it counts instead, and which lines it has.
import { expect, test } from 'vitest';
import type { Key, KeyUse, Snapshot } from '../../../server/clients/web/src/api/types.ts';
import { few, graphOfKey, type Thing } from '../../../server/clients/web/src/map/graph.ts';

const key = {
  ...{ id: 'k', name: 'orders', tenantId: 't', vaultId: 'v' },
  ...{ effectiveState: 'active', createdAt: '2026-02-01T00:00:00.000Z' },
} as Key;
const use = {
  copies: { count: 2, items: [{ place: 'service-backup', id: 'b', waits: true, at: '2026-03-01T00:00:00.000Z' }] },
  endpoints: [
    { id: 'e', name: 'eu', state: 'enabled' },
    { id: 'd', name: 'old', state: 'deleted' },
  ],
  application: null,
} as unknown as KeyUse;
const snapshot = (id: string, at: string, state = 'available', tenantId = 't'): Snapshot =>
  ({ id, at, state, tenantId }) as Snapshot;

test('a key is between its vault and what uses it, and in the snapshots since it exists', () => {
  const snapshots = [
    snapshot('s1', '2026-01-01T00:00:00.000Z'),
    snapshot('s2', '2026-03-01T00:00:00.000Z'),
    snapshot('s3', '2026-03-02T00:00:00.000Z', 'purged'),
    snapshot('s4', '2026-03-03T00:00:00.000Z', 'available', 'other'),
  ];
  const { columns, edges } = graphOfKey(key, { vaultName: 'Payments', use, snapshots });
  expect(columns.map(({ title }) => title)).toEqual(['Vault', 'Key', 'Used by', 'Also contained in']);
  const [, , users, kept] = columns;
  expect(users?.things.map(({ name, note, page }) => [name, note, page !== undefined])).toEqual([
    ['eu', undefined, true],
    ['old', 'deleted', false],
  ]);
  // A copy that the person may not see is counted.
  expect(kept?.things.map(({ id }) => id)).toEqual(['snapshot s2', 'copy service-backup b', 'more copies']);
  expect(edges).toContainEqual(['vault v', 'key k']);
  expect(edges).toContainEqual(['key k', 'snapshot s2']);
});

test('what is not drawn is counted', () => {
  const things = Array.from({ length: 30 }, (_, at): Thing => ({ id: `k${at}`, kind: 'key', name: `key ${at}` }));
  expect(few(things, 'keys')).toHaveLength(13);
  expect(few(things, 'keys').at(-1)?.name).toBe('18 more keys');
  expect(few(things, 'keys', 1).at(-1)?.name).toBe('At least 19 more keys');
});
