// What people write on keys, and the filters of their list: by tag, by age, by the last use, and
// together.
import { beforeAll, describe, expect, test } from 'vitest';
import { firstIdAt } from '../../../server/base/ids.ts';
import type { Key } from '../../../server/domain/key.ts';
import type { KeyFilter } from '../../../server/operations/index.ts';
import { administrator, auditKindsOf, masterKey, registerCaller } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';
import { handOf } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();
let vaultId: string;
beforeAll(async () => {
  vaultId = (await opened.operations.vaults.create(administrator, { name: 'tagged' })).id;
});

const everything = [{ role: 'administrator', scope: null, tenantId: null }] as const;
const code = (value: string) => expect.objectContaining({ code: value });
const make = (name: string, tags?: readonly string[]): Promise<Key> =>
  opened.operations.keys.create(administrator, { name, vaultId, tags });
/** All pages of the list, two keys each. */
const listed = async (filter: KeyFilter): Promise<readonly string[]> => {
  const names: string[] = [];
  for (let after: string | undefined; ; ) {
    const { items, next } = await opened.operations.keys.list(administrator, { ...filter, after, limit: 2 });
    names.push(...items.map(({ name }) => name));
    if (next === null) return names;
    after = next;
  }
};

describe('the tags of a key', () => {
  test('are sorted, each once, and found by list and search; a change takes the old ones away', async () => {
    const { keys, search } = opened.operations;
    const key = await make('first', ['pci', 'env=prod', 'pci']);
    expect(key.tags).toEqual(['env=prod', 'pci']);
    const found = async (query: string) =>
      (await search.find(administrator, everything, { text: query, limit: 10, namesTenant: false })).items.map(
        ({ id, field }) => [id, field],
      );
    expect(await listed({ tag: 'env=prod' })).toEqual(['first']);
    expect(await listed({ tag: 'env' })).toEqual([]);
    expect(await found('env=prod')).toEqual([[key.id, 'tag']]);
    const changed = await keys.change(administrator, key.id, { name: 'renamed', tags: ['team/payments'] });
    expect(changed).toEqual({ ...key, name: 'renamed', tags: ['team/payments'] });
    expect(await keys.get(administrator, key.id)).toEqual(changed);
    expect(await listed({ tag: 'env=prod' })).toEqual([]);
    expect(await listed({ tag: 'team/payments' })).toEqual(['renamed']);
    expect([await found('env=prod'), await found('payments')]).toEqual([[], [[key.id, 'tag']]]);
    // What is so already is not a change.
    await keys.change(administrator, key.id, { name: 'renamed', tags: ['team/payments', 'team/payments'] });
    expect(await auditKindsOf(opened, key.id)).toEqual(['key.created', 'key.changed']);
    const { items } = await opened.operations.audit.list(administrator, {
      kind: 'key.changed',
      subjectId: key.id,
      order: 'oldest',
    });
    expect(items[0]?.details).toEqual({
      name: 'renamed',
      from: 'first',
      tags: ['team/payments'],
      tagsBefore: ['env=prod', 'pci'],
    });
  });

  test('are refused when they are none, or too many; twenty are found', async () => {
    for (const tag of ['', 'Env', 'two words', 'ä', 'x'.repeat(65)])
      await expect(make('refused', [tag])).rejects.toEqual(code('validation'));
    const many = Array.from({ length: 21 }, (_, at) => `many-${String(at).padStart(2, '0')}`);
    await expect(make('refused', many)).rejects.toEqual(code('validation'));
    const key = await make('of twenty', many.slice(0, 20));
    for (const tag of key.tags) expect(await listed({ tag })).toEqual(['of twenty']);
    expect(await listed({ tag: 'many-20' })).toEqual([]);
  });

  test('of a master key change, its name does not; of a destroyed one nothing does', async () => {
    const { keys, masterKeys, tde } = opened.operations;
    const { caller } = await registerCaller(opened, 'tags');
    const { id } = await tde.generateKey(caller, masterKey('a label'));
    const { name } = await keys.get(administrator, id);
    await expect(keys.change(administrator, id, { name: 'other', tags: [] })).rejects.toEqual(code('conflict'));
    expect((await keys.change(administrator, id, { name, tags: ['oracle'] })).tags).toEqual(['oracle']);
    expect(await listed({ tag: 'oracle', kind: 'master' })).toEqual([name]);
    expect(await listed({ tag: 'oracle', kind: 'general' })).toEqual([]);
    await masterKeys.destroy(administrator, caller.application.id, id);
    await expect(keys.change(administrator, id, { name, tags: [] })).rejects.toEqual(code('conflict'));
  });

  test('that were written past the service make the row refused', async () => {
    const key = await make('tampered', ['intact']);
    await queryStored(opened.folder, `update keys set tags = '["planted"]' where id = '${key.id}'`);
    expect(await opened.operations.keys.get(administrator, key.id)).toMatchObject({ integrity: 'tampered' });
    await expect(opened.operations.keys.change(administrator, key.id, { name: 'x', tags: [] })).rejects.toEqual(
      code('key-tampered'),
    );
  });

  test('come back with a snapshot, and the list finds them again', async () => {
    const tenant = await opened.operations.tenants.create(administrator, { name: 'restored' });
    const actor = { ...administrator, tenantId: tenant.id };
    const vault = await opened.operations.vaults.create(actor, { name: 'v' });
    const key = await opened.operations.keys.create(actor, { name: 'k', vaultId: vault.id, tags: ['before'] });
    const hand = await handOf(opened);
    const snapshot = await hand.make(tenant.id);
    await opened.operations.keys.change(actor, key.id, { name: 'k', tags: ['after'] });
    await hand.restore(snapshot, { tenantId: tenant.id });
    const of = async (tag: string) => (await opened.operations.keys.list(actor, { tag })).items.map(({ id }) => id);
    expect([await of('before'), await of('after')]).toEqual([[key.id], []]);
    expect((await opened.operations.keys.get(actor, key.id)).tags).toEqual(['before']);
  });
});

describe('the list of keys', () => {
  test('filters by age, by last use (longest unused first), and by several filters together', async () => {
    const made = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) made.push(await make(name, name === 'd' ? ['set'] : ['set', 'most']));
    const [a, b, c, d, e] = made.map(({ id }) => id);
    // Sets when each key was used last; key b was never used.
    for (const [id, at] of [
      [c, 1000],
      [a, 2000],
      [d, 3000],
      [e, 3000],
    ] as const)
      await queryStored(opened.folder, `update keys set last_used_at = ${at} where id = '${id}'`);
    const set = (filter: KeyFilter) => listed({ tag: 'set', ...filter });
    expect(await set({})).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(await set({ neverUsed: true })).toEqual(['b']);
    expect(await set({ usedAfter: 0 })).toEqual(['c', 'a', 'd', 'e']);
    expect(await set({ usedBefore: 3000 })).toEqual(['c', 'a']);
    expect(await set({ usedAfter: 2000, usedBefore: 3001 })).toEqual(['a', 'd', 'e']);
    expect(await set({ usedAfter: 0, usedBefore: 9000, neverUsed: true })).toEqual([]);
    expect(await listed({ tag: 'most', usedAfter: 0, vaultId, state: 'active', kind: 'general' })).toEqual([
      'c',
      'a',
      'e',
    ]);
    expect(await set({ usedAfter: 0, state: 'disabled' })).toEqual([]);
    await expect(opened.operations.keys.list(administrator, { usedAfter: 0, after: b })).rejects.toEqual(
      code('validation'),
    );

    // Ages are derived from ids, which contain the time: here each is created in its own
    // millisecond, or in the order of the ids. Not `createdAt`: where an earlier test of this
    // process was ahead in time, ids continue from there.
    const at = Number.parseInt((c ?? '').replace('-', '').slice(0, 12), 16);
    const [older, newer] = [await set({ createdBefore: at }), await set({ createdAfter: at })];
    expect([...newer, ...older]).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(newer).toContain('c');
    expect(await set({ createdAfter: at + 3_600_000 })).toEqual([]);
    expect(await set({ createdAfter: at, createdBefore: at })).toEqual([]);
    expect(await listed({ createdBefore: at - 86_400_000 })).toEqual([]);
  });

  test('an id that was made at a time is not below the first one of it', () => {
    expect(firstIdAt(Date.parse('2026-03-01T09:30:00Z'))).toBe('019ca8bb-b5c0-0000-0000-000000000000');
    expect([firstIdAt(-1), firstIdAt(2 ** 60)]).toEqual([
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-0000-0000-000000000000',
    ]);
  });
});

test('the first page of keys says how many match, when it does not have them all', async () => {
  const { keys, vaults } = opened.operations;
  const { id } = await vaults.create(administrator, { name: 'counted' });
  for (const at of [1, 2, 3, 4, 5])
    await keys.create(administrator, { name: `counted ${at}`, vaultId: id, tags: at < 4 ? ['counted'] : [] });
  const first = (filter: KeyFilter) => keys.list(administrator, { vaultId: id, limit: 2, ...filter });
  const page = await first({});
  expect(page.total).toBe(5);
  expect((await first({ tag: 'counted' })).total).toBe(3);
  expect((await first({ neverUsed: true, state: 'active' })).total).toBe(5);
  expect((await first({ after: page.next ?? '' })).total).toBeUndefined();
  expect((await first({ limit: 5 })).total).toBeUndefined();
  expect((await first({ usedAfter: 0 })).total).toBeUndefined();
});
