// What an erasure run concludes of copies follows one walk over all keys, in rows whose codes were
// right. A row that is changed between the walk and the conclusion hides no copy, and a restore in
// between makes the walk begin again.
import { describe, expect, test } from 'vitest';
import { newOutsideCopy } from '../../../server/domain/copies.ts';
import type { Key } from '../../../server/domain/key.ts';
import type { Tenant } from '../../../server/domain/tenant.ts';
import { erasedTenants, isErased, isOutdated, walkKeys } from '../../../server/operations/root/conclude-erasure.ts';
import type { Repositories, Store } from '../../../server/ports/store.ts';

const keyOf = (id: string, more: Partial<Key> = {}): Key =>
  ({
    ...{ id, tenantId: `tenant of ${id}`, name: id, state: 'destroyed', copyOf: null, currentVersion: 1 },
    ...{ createdAt: 1, destroyedAt: 5, unrecoverableAt: null, applicationId: null, integrity: 'ok' },
    ...more,
  }) as Key;
/** A snapshot of the copy's tenant, from the time when the copy was there. */
const exported = newOutsideCopy({
  ...{ id: 'export', kind: 'exported-snapshot', at: 3, stateFrom: 3, stateUntil: 3, tenantId: 'tenant of copy' },
});

/** What a store answers that has these keys, of which some have material. */
const storeOf = (
  rows: readonly Key[],
  {
    withMaterial = [] as readonly string[],
    restores = 0,
    clearedAt = 6 as number | null,
    differences = [] as object[],
  } = {},
) => {
  const from = {
    keys: {
      list: async () => rows,
      listByIds: async (ids: readonly string[]) => rows.filter(({ id }) => ids.includes(id)),
      materialOwners: async () =>
        withMaterial.map((objectId) => {
          const key = rows.find(({ id }) => id === objectId);
          return { tenantId: key?.tenantId ?? 'none', objectId, key };
        }),
      // Finds copies by the columns `id` and `copyOf` alone, as a database does.
      otherCopies: async ({ id, copyOf }: Key) =>
        rows.filter((row) => row.id !== id && (row.id === (copyOf ?? id) || row.copyOf === (copyOf ?? id))),
    },
    audit: {
      list: async (_tenant: unknown, { kind }: { readonly kind: string }) =>
        kind === 'tenant.cleared' ? [{ sequence: 1 }] : [],
    },
    decisions: { get: async () => (restores === 0 ? undefined : String(restores)) },
    snapshots: { list: async () => [] },
    tenants: {
      stored: async () => undefined,
      list: async () => [
        { id: 'tenant of key', integrity: 'ok', purgedAt: 5, clearedAt, unrecoverableAt: null } as Tenant,
      ],
    },
    outsideCopies: { left: async () => [exported] },
  };
  const whole = { compareRowSet: async () => ({ differences, older: [] }) };
  const snapshot = <T>(work: (state: Repositories) => Promise<T>): Promise<T> =>
    work({ ...from, whole } as unknown as Repositories);
  return { ...from, snapshot } as unknown as Repositories & Pick<Store, 'snapshot'>;
};

const key = keyOf('key');
const copy = keyOf('copy', { copyOf: 'key' });

describe('a destroyed key whose destroyed copy may be in a file', () => {
  test('waits for the file', async () => {
    const store = storeOf([key, copy]);
    expect(await isErased(store, key, await walkKeys(store), [exported])).toBe(false);
    expect(await isErased(store, key, await walkKeys(store), [])).toBe(true);
  });

  test.each([
    ['says that it is a copy of nothing', [keyOf('copy', { integrity: 'tampered' })]],
    ['says that it is a copy of another key', [keyOf('copy', { copyOf: 'other', integrity: 'tampered' })]],
    ['was changed in another column', [{ ...copy, integrity: 'tampered' as const }]],
    ['was removed', []],
  ])('waits also when the row of the copy %s since the walk', async (_, changed) => {
    const walk = await walkKeys(storeOf([key, copy]));
    expect(await isErased(storeOf([key, ...changed]), key, walk, [exported])).toBe(false);
  });
});

test('a copy that is usable during the walk keeps the original, whatever becomes of its row', async () => {
  const usable = keyOf('copy', { copyOf: 'key', state: 'active', destroyedAt: null });
  const walk = await walkKeys(storeOf([key, usable], { withMaterial: ['copy'] }));
  expect(await isErased(storeOf([key]), key, walk, [])).toBe(false);
});

test('a restore since the walk makes it begin again, whatever the log says', async () => {
  const walk = await walkKeys(storeOf([key]));
  expect(await isOutdated(storeOf([key]), walk)).toBe(false);
  expect(await isOutdated(storeOf([key, copy], { restores: 7 }), walk)).toBe(true);
});

test('a purged tenant waits for its keys, also when the row of one is changed since the walk', async () => {
  const walk = await walkKeys(storeOf([key]));
  expect(await erasedTenants(storeOf([keyOf('key', { tenantId: 'other' })]), 10, walk, [])).toEqual([]);
  const marked = storeOf([keyOf('key', { unrecoverableAt: 7 })]);
  expect(await erasedTenants(marked, 10, await walkKeys(marked), [])).toMatchObject([{ id: 'tenant of key' }]);
});

test('a purged tenant of which something is left waits, whatever the log says', async () => {
  const store = storeOf([keyOf('key', { unrecoverableAt: 7 })], { clearedAt: null });
  expect(await erasedTenants(store, 10, await walkKeys(store), [])).toEqual([]);
});

test('a row that is hidden only during the walk conceals nothing: the sum over the rows is not right then', async () => {
  const usable = keyOf('copy', { copyOf: 'key', state: 'active', destroyedAt: null });
  const hidden = await walkKeys(storeOf([key], { differences: [{ what: 'code of the policy rows' }] }));
  expect(hidden.isWhole).toBe(false);
  expect(await isErased(storeOf([key, usable]), key, hidden, [])).toBe(false);
  const purged = storeOf([keyOf('key', { unrecoverableAt: 7 })], { differences: [{ what: 'code' }] });
  expect(await erasedTenants(purged, 10, await walkKeys(purged), [])).toEqual([]);
});
