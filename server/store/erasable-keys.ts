// Destroyed keys that are not unrecoverable yet, and the copies of a key that restores have made in other tenants.

import { type Kysely, type Selectable, sql } from 'kysely';
import type { Key } from '../domain/key.ts';
import type { Repositories } from '../ports/store.ts';
import type { Schema } from './schema.ts';

/** A key and its copies have this in common. */
const original = sql`coalesce(keys.copy_of, keys.id)`;
/** Two queries, because each has an index of its own. */
const hasUsableCopy = sql<boolean>`(
  exists (select 1 from keys as one where one.id = ${original} and one.id != keys.id and one.state != 'destroyed')
  or exists (select 1 from keys as one where one.copy_of = ${original} and one.id != keys.id and one.state != 'destroyed'))`;

export const createErasableKeys = (
  db: Kysely<Schema>,
  toKey: (row: Selectable<Schema['keys']>) => Key,
): Pick<Repositories['keys'], 'erasable' | 'erasableIds' | 'listErasable' | 'hasRecoverable' | 'usableCopies'> => {
  const destroyed = (before: number) =>
    db.selectFrom('keys').where('destroyed_at', '<', before).where('unrecoverable_at', 'is', null);
  return {
    erasable: async (before, copiesSince = Number.MAX_SAFE_INTEGER) => {
      const found = await destroyed(before)
        .where((e) => e.or([e('destroyed_at', '>=', copiesSince), sql<boolean>`not ${hasUsableCopy}`]))
        .select((e) => [e.fn.countAll<number>().as('count'), e.fn.max('destroyed_at').as('newest')])
        .executeTakeFirst();
      return { count: Number(found?.count ?? 0), newest: found?.newest == null ? null : Number(found.newest) };
    },
    erasableIds: async (before) => (await destroyed(before).select('id').execute()).map(({ id }) => id),
    listErasable: async (before, limit) =>
      (
        await destroyed(before)
          .where(sql<boolean>`not ${hasUsableCopy}`)
          .selectAll()
          .orderBy('destroyed_at')
          .limit(limit)
          .execute()
      ).map(toKey),
    hasRecoverable: async (tenantId) => {
      const found = await db
        .selectFrom('keys')
        .select('id')
        .where('tenant_id', '=', tenantId)
        .where('unrecoverable_at', 'is', null)
        .limit(1)
        .executeTakeFirst();
      return found !== undefined;
    },
    usableCopies: async ({ id, copyOf }) => {
      const first = copyOf ?? id;
      const found = await db
        .selectFrom('keys')
        .selectAll()
        .where((e) => e.or([e('id', '=', first), e('copy_of', '=', first)]))
        .where('id', '!=', id)
        .where('state', '!=', 'destroyed')
        .orderBy('id')
        .execute();
      return found.map(toKey);
    },
  };
};
