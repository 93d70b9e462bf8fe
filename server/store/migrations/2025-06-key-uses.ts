// When keys were used: of every key beside its row, whoever uses it, and of each endpoint of a key store, by which it was.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const keyUses = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema.alterTable('keys').addColumn('first_used_at', long).execute();
    await db.schema.alterTable('keys').addColumn('last_used_at', long).execute();
    await db.schema.alterTable('endpoints').addColumn('last_used_at', long).execute();
    // Master keys had theirs beside the token object, which has the id of its key.
    for (const column of ['first_used_at', 'last_used_at']) {
      await db
        .updateTable('keys')
        .set({ [column]: sql`(select ${sql.ref(column)} from tde_objects where tde_objects.id = keys.id)` })
        .where('kind', '=', 'master')
        .execute();
      await db.schema.alterTable('tde_objects').dropColumn(column).execute();
    }
  },
});
