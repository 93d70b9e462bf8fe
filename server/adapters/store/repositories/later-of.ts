// Times of last use.

import { type Expression, sql } from 'kysely';

/** Nodes write in any order what each of them saw: the later time stays. */
export const laterOf = (known: Expression<number | null>, at: number) =>
  sql<number>`case when ${known} > ${at} then ${known} else ${at} end`;
