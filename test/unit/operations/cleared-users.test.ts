// Users that an earlier version deleted lose what belongs to the person; those of this version have
// lost it already.
import { beforeEach, expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { clearDeletedUsers } from '../../../server/operations/people/clear-deleted.ts';
import type { StoredUser } from '../../../server/ports/people.ts';
import type { Store } from '../../../server/ports/store.ts';
import { storeOfTest } from '../../support/open-store.ts';
import { storedUser } from '../../support/stored.ts';

const clock = { now: () => 9, monotonic: () => 9 };
let store: Store;
beforeEach(async () => {
  store = await storeOfTest(clock);
});

/** A deleted user as earlier versions stored it: name, display name and address are still there. */
const deletedBefore = (name: string): StoredUser =>
  storedUser({ id: newId(7), name, displayName: `${name} ${name}`, email: `${name}@db.example`, state: 'deleted' });
const add = (user: StoredUser): Promise<unknown> => store.write((tx) => tx.users.insert(user));
const cleared = async () =>
  (await store.read.audit.list(everyTenant, { kind: 'user.cleared', order: 'oldest' }, { limit: 10 })).map(
    ({ subjectId }) => subjectId,
  );
const now = async ({ id }: StoredUser) => store.read.users.get(everyTenant, id);

test('name, display name, address, factors and sessions are removed once, and recorded without them', async () => {
  const [gone, live] = [deletedBefore('nina'), storedUser({ name: 'live', email: 'live@db.example' })];
  await add(gone);
  await add(live);
  const factor = { id: newId(8), userId: gone.id, kind: 'recovery-code', name: 'code', data: '', counter: 0 } as const;
  await store.write((tx) =>
    tx.factors.insert({ ...factor, confirmedAt: 1, createdAt: 1, lastUsedAt: null, integrity: 'ok' }),
  );
  const clear = clearDeletedUsers({ store, clock });
  await clear();
  await clear();
  const text = JSON.stringify([
    await now(gone),
    await store.read.audit.list(everyTenant, { order: 'oldest' }, { limit: 10 }),
  ]);
  expect(text).not.toContain('nina');
  expect(await now(gone)).toMatchObject({ name: `deleted-${gone.id}`, email: null, state: 'deleted' });
  expect(await store.read.factors.list(gone.id)).toEqual([]);
  expect(await now(live)).toMatchObject({ name: 'live', email: 'live@db.example' });
  expect(await cleared()).toEqual([gone.id]);
});

test('two that do it at once, as two nodes do, record each user once', async () => {
  const users = ['ada', 'bob', 'cyd'].map(deletedBefore);
  for (const user of users) await add(user);
  const clear = clearDeletedUsers({ store, clock });
  await Promise.all([clear(), clear()]);
  expect((await cleared()).toSorted()).toEqual(users.map(({ id }) => id).toSorted());
});

test('what was cut off continues', async () => {
  const users = ['ada', 'bob', 'cyd'].map(deletedBefore);
  for (const user of users) await add(user);
  let writes = 0;
  const failing: Pick<Store, 'write' | 'read'> = {
    read: store.read,
    write: (work, options) => {
      writes += 1;
      if (writes === 2) throw new Error('cut off');
      return store.write(work, options);
    },
  };
  await expect(clearDeletedUsers({ store: failing as Store, clock })()).rejects.toThrow('cut off');
  expect(await cleared()).toHaveLength(1);
  await clearDeletedUsers({ store, clock })();
  expect((await cleared()).toSorted()).toEqual(users.map(({ id }) => id).toSorted());
  for (const user of users) expect((await now(user))?.email).toBeNull();
});
