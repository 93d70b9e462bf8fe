// Destroyed keys that are not unrecoverable yet, the copies of a key that restores have made in
// other tenants, and whose key material there is. SQL narrows: each row tells by its integrity
// whether it counts.

import type { Kysely, Selectable } from 'kysely';
import type { Key } from '../../../domain/key.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';
import { keysTables } from '../schema/tables/keys-table.ts';

const atOnce = 200;

export const createErasableKeys = (
  db: Kysely<Schema>,
  toKey: (row: Selectable<Schema['keys']>) => Key,
): Pick<Repositories['keys'], 'erasable' | 'listErasable' | 'otherCopies' | 'materialOwners' | 'listByIds'> => {
  const destroyed = (since: number, before: number) =>
    db
      .selectFrom('keys')
      .where('destroyed_at', '>=', since)
      .where('destroyed_at', '<', before)
      .where('unrecoverable_at', 'is', null);
  const listByIds = async (ids: readonly string[]): Promise<readonly Key[]> => {
    const all: Key[] = [];
    for (let at = 0; at < ids.length; at += atOnce) {
      const part = ids.slice(at, at + atOnce);
      all.push(...(await db.selectFrom('keys').selectAll().where('id', 'in', part).execute()).map(toKey));
    }
    return all;
  };
  return {
    erasable: async (covered) => {
      const found = await destroyed(0, Number.MAX_SAFE_INTEGER)
        .select((e) => [
          e.fn.countAll<number>().as('all'),
          e.fn.count<number>(e.case().when('destroyed_at', '>=', covered).then(1).end()).as('pending'),
        ])
        .executeTakeFirst();
      const pending = Number(found?.pending ?? 0);
      return { pending, waiting: Number(found?.all ?? 0) - pending };
    },
    listErasable: async ({ since, before }, limit, after) => {
      let query = destroyed(since, before).selectAll().orderBy('destroyed_at').orderBy('id').limit(limit);
      if (after !== undefined)
        query = query.where((e) => e(e.refTuple('destroyed_at', 'id'), '>', e.tuple(after.destroyedAt ?? 0, after.id)));
      return (await query.execute()).map(toKey);
    },
    otherCopies: async ({ id, copyOf }) => {
      const first = copyOf ?? id;
      const found = await db
        .selectFrom('keys')
        .selectAll()
        .where((e) => e.or([e('id', '=', first), e('copy_of', '=', first)]))
        .where('id', '!=', id)
        .orderBy('id')
        .execute();
      return found.map(toKey);
    },
    listByIds,
    materialOwners: async (after, limit) => {
      let query = db
        .selectFrom('key_records')
        .select(['tenant_id as tenantId', 'object_id as objectId'])
        .where('class', 'in', keysTables.keys.records.classes)
        .where('record', 'is not', null)
        .groupBy(['tenant_id', 'object_id'])
        .orderBy('tenant_id')
        .orderBy('object_id')
        .limit(limit);
      if (after !== undefined)
        query = query.where((e) =>
          e(e.refTuple('tenant_id', 'object_id'), '>', e.tuple(after.tenantId, after.objectId)),
        );
      const found = await query.execute();
      const keys = new Map((await listByIds(found.map(({ objectId }) => objectId))).map((key) => [key.id, key]));
      return found.map((owner) => ({ ...owner, key: keys.get(owner.objectId) }));
    },
  };
};
