// How many rows a query has, up to its own limit: what is asked for while a list is shown, so it
// must not grow with the table.

import { type Expression, type Kysely, sql } from 'kysely';
import type { Schema } from '../schema/schema.ts';

export const countUpTo = async (db: Kysely<Schema>, query: Expression<unknown>): Promise<number> => {
  const counted = sql<{ readonly count: number | string }>`select count(*) as count from (${query}) as found`;
  return Number((await counted.execute(db)).rows[0]?.count ?? 0);
};
