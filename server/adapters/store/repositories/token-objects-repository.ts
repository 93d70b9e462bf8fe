// The queries of PKCS#11 objects.

import type { Kysely } from 'kysely';
import { ServiceError } from '../../../base/service-error.ts';
import type { ObjectClass } from '../../../domain/key.ts';
import type { KeyState } from '../../../domain/lifecycle.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { StoredObject } from '../../../ports/tde-repositories.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { objectRow, tokenObjectsTables, toObject } from '../schema/tables/token-objects-table.ts';

/** Columns for pages of objects: contents would be megabytes. */
const columnsWithoutContent = Object.keys(tokenObjectsTables.tde_objects.columns)
  .filter((column) => column !== 'content')
  .map((column) => `tde_objects.${column}` as `tde_objects.${Exclude<keyof Schema['tde_objects'], 'content'>}`);

/** With the state of its key. */
const objectQuery = (db: Kysely<Schema>) =>
  db
    .selectFrom('tde_objects')
    .leftJoin('keys', 'keys.id', 'tde_objects.id')
    .selectAll('tde_objects')
    .select('keys.state as key_state');
type WholeRow = NonNullable<Awaited<ReturnType<ReturnType<typeof objectQuery>['executeTakeFirst']>>>;
/** A content that was not read is left out: the row's code is checked without it. */
type ObjectRow = Omit<WholeRow, 'content'> & Partial<Pick<WholeRow, 'content'>>;
/** `check`: of the row's authentication code. */
const loadObject = (row: ObjectRow, check: PolicyRows['integrity']): StoredObject => {
  const { key_state, ...own } = row;
  const state = own.destroyed_at !== null ? 'destroyed' : ((key_state as KeyState | null) ?? 'active');
  return toObject(own, state, check('tde_objects', own));
};

const readObjects = (
  db: Kysely<Schema>,
  check: PolicyRows['integrity'],
): Pick<Repositories['objects'], 'listByIds' | 'newestMasterKey' | 'get' | 'getById'> => {
  const query = () => objectQuery(db);
  const load = (row: ObjectRow): StoredObject => loadObject(row, check);
  return {
    listByIds: async (ids) =>
      ids.length === 0
        ? []
        : (
            await db
              .selectFrom('tde_objects')
              .leftJoin('keys', 'keys.id', 'tde_objects.id')
              .select(columnsWithoutContent)
              .select('keys.state as key_state')
              .where('tde_objects.id', 'in', ids)
              .execute()
          ).map(load),
    newestMasterKey: async (applicationId) =>
      (
        await db
          .selectFrom('keys')
          .innerJoin('tde_objects', 'tde_objects.id', 'keys.id')
          .select('keys.id')
          .where('keys.application_id', '=', applicationId)
          .where('keys.kind', '=', 'master')
          .where('keys.state', '!=', 'destroyed')
          .where('tde_objects.class', '=', 'secret-key')
          .orderBy('keys.id', 'desc')
          .limit(1)
          .executeTakeFirst()
      )?.id,
    get: async (handle) => {
      const row = await query().where('tde_objects.handle', '=', handle).executeTakeFirst();
      return row && load(row);
    },
    getById: async (id) => {
      const row = await query().where('tde_objects.id', '=', id).executeTakeFirst();
      return row && load(row);
    },
  };
};

const searchObjects = (
  db: Kysely<Schema>,
  check: PolicyRows['integrity'],
): Pick<
  Repositories['objects'],
  | 'find'
  | 'listWithoutDecryption'
  | 'countKeys'
  | 'findElsewhere'
  | 'listByApplication'
  | 'keyWithLabel'
  | 'labelledAsIn'
> => {
  const query = () => objectQuery(db);
  const load = (row: ObjectRow): StoredObject => loadObject(row, check);
  return {
    find: async ({ groupId, label, class: objectClass, publicKey, after }, limit) => {
      let query = db
        .selectFrom('tde_objects')
        .leftJoin('keys', 'keys.id', 'tde_objects.id')
        .select(columnsWithoutContent)
        .select('keys.state as key_state')
        .where('tde_objects.group_id', '=', groupId)
        .where('tde_objects.destroyed_at', 'is', null)
        .where('tde_objects.handle', '>', after)
        .orderBy('tde_objects.handle')
        .limit(limit);
      if (label !== undefined) query = query.where('tde_objects.label', '=', label);
      if (objectClass !== undefined) query = query.where('tde_objects.class', '=', objectClass);
      if (publicKey !== undefined) query = query.where('tde_objects.public_key', '=', publicKey);
      return (await query.execute()).map(load);
    },
    listWithoutDecryption: async (after, limit) =>
      (
        await db
          .selectFrom('tde_objects')
          .leftJoin('keys', 'keys.id', 'tde_objects.id')
          .select(columnsWithoutContent)
          .select('keys.state as key_state')
          .where('tde_objects.class', '=', 'secret-key')
          .where('tde_objects.destroyed_at', 'is', null)
          .where((e) => e.or([e('tde_objects.usages', 'not like', '%"decrypt"%'), e('wrapped_sensitive', '=', 1)]))
          .where('tde_objects.handle', '>', after)
          .orderBy('tde_objects.handle')
          .limit(limit)
          .execute()
      ).map(load),
    countKeys: async (applicationId) => {
      const row = await db
        .selectFrom('tde_objects')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('application_id', '=', applicationId)
        .where('destroyed_at', 'is', null)
        .where('class', 'in', ['secret-key', 'private-key'])
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
    findElsewhere: async (tenantId, groupId, label) => {
      const row = await query()
        .where('tde_objects.tenant_id', '=', tenantId)
        .where('tde_objects.label', '=', label)
        .where('tde_objects.group_id', '!=', groupId)
        .where('tde_objects.destroyed_at', 'is', null)
        .where('tde_objects.class', 'in', ['secret-key', 'private-key'])
        .orderBy('tde_objects.handle')
        .limit(1)
        .executeTakeFirst();
      return row && load(row);
    },
    listByApplication: async (applicationId, after, limit) =>
      (
        await query()
          .where('tde_objects.application_id', '=', applicationId)
          .where('tde_objects.handle', '>', after)
          .orderBy('tde_objects.handle')
          .limit(limit)
          .execute()
      ).map(load),
    keyWithLabel: async (groupId, label, { classes, fixed }, exceptHandle) => {
      const labelled = db
        .selectFrom('tde_objects')
        .select('handle')
        .where('group_id', '=', groupId)
        .where('label', '=', label)
        .where('destroyed_at', 'is', null)
        .where('class', 'in', classes)
        .where('handle', '!=', exceptHandle ?? 0);
      const which = fixed ? labelled.where('modifiable', '=', 0) : labelled;
      return (await which.orderBy('handle').limit(1).executeTakeFirst())?.handle;
    },
    labelledAsIn: async (applicationId, groupId) =>
      (
        await db
          .selectFrom('tde_objects as own')
          .select('own.handle')
          .where('own.application_id', '=', applicationId)
          .where('own.destroyed_at', 'is', null)
          .where('own.label', '!=', '')
          .where((e) =>
            e.exists(
              e
                .selectFrom('tde_objects as other')
                .select('other.handle')
                .where('other.group_id', '=', groupId)
                .whereRef('other.label', '=', 'own.label')
                .where('other.destroyed_at', 'is', null),
            ),
          )
          .orderBy('own.handle')
          .execute()
      ).map(({ handle }) => handle),
  };
};

/** Classes of objects that have a value beside their row. */
const valueClasses: readonly ObjectClass[] = ['data', 'certificate', 'public-key'];

const endedObjects = (
  db: Kysely<Schema>,
  check: PolicyRows['integrity'],
): Pick<Repositories['objects'], 'listEnded' | 'countEnded'> => ({
  listEnded: async (how, since, limit, after) => {
    const column = how === 'replaced' ? 'tde_objects.content_replaced_at' : 'tde_objects.destroyed_at';
    const reached = how === 'replaced' ? after?.contentReplacedAt : after?.destroyedAt;
    let query = db
      .selectFrom('tde_objects')
      .select(columnsWithoutContent)
      .select((e) => e.val(null).as('key_state'))
      .where('class', 'in', valueClasses)
      .where(column, '>=', since);
    if (after !== undefined)
      query = query.where((e) => e(e.refTuple(column, 'tde_objects.handle'), '>', e.tuple(reached ?? 0, after.handle)));
    const found = await query.orderBy(column).orderBy('tde_objects.handle').limit(limit).execute();
    return found.map((row) => loadObject(row, check));
  },
  countEnded: async (since) => {
    const found = await db
      .selectFrom('tde_objects')
      .select((e) => e.fn.countAll<number | string>().as('count'))
      .where('class', 'in', valueClasses)
      .where((e) => e.or([e('content_replaced_at', '>=', since), e('destroyed_at', '>=', since)]))
      .executeTakeFirstOrThrow();
    return Number(found.count);
  },
});

const changeObjects = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
): Pick<Repositories['objects'], 'nextHandle' | 'insert' | 'update' | 'destroy'> => ({
  nextHandle: async () => {
    const name = 'next-object-handle';
    const row = await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst();
    const handle = row === undefined ? 1 : Number(row.value);
    if (!Number.isSafeInteger(handle) || handle < 1 || handle > 0x7fffffff)
      throw new ServiceError('unavailable', 'no object handles are left in this store');
    const value = String(handle + 1);
    await db
      .insertInto('settings')
      .values({ name, value })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
      .execute();
    return handle;
  },
  insert: async (object) => {
    await policyRows.insert('tde_objects', objectRow(object));
  },
  update: async (object) => {
    refuseTampered(object);
    await policyRows.update('tde_objects', objectRow(object));
  },
  destroy: async (handle, at) => {
    const row = await objectQuery(db).where('tde_objects.handle', '=', handle).executeTakeFirst();
    if (row === undefined) return;
    const { key_state: _state, ...own } = row;
    if (own.content !== null)
      await db
        .updateTable('tde_objects')
        .set({ content: Buffer.alloc(own.content.length) })
        .where('handle', '=', handle)
        .execute();
    // Destruction takes a tampered row too; it stays recognisable, because only a sound row gets a
    // fresh code.
    if (policyRows.integrity('tde_objects', own) === 'ok')
      await policyRows.update('tde_objects', { ...own, content: null, content_digest: null, destroyed_at: at });
    else
      await db
        .updateTable('tde_objects')
        .set({ content: null, destroyed_at: at })
        .where('handle', '=', handle)
        .execute();
  },
});

export const createTokenObjects = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['objects'] => ({
  ...readObjects(db, policyRows.integrity),
  ...searchObjects(db, policyRows.integrity),
  ...endedObjects(db, policyRows.integrity),
  ...changeObjects(db, policyRows),
});
