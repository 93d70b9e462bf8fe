// The row of a token object says which content it has and when an older one was replaced, and the
// row of a snapshot how many keys are erased from its file. Rows from before say neither: they get
// it when they are written the next time.

import { sql } from 'kysely';
import type { SchemaMigration } from './migration.ts';

export const valuesUnderTheCode: SchemaMigration = {
  name: '0007-values-under-the-code',
  up: async (db, { long }) => {
    await db.schema.alterTable('tde_objects').addColumn('content_digest', 'text').execute();
    await db.schema.alterTable('tde_objects').addColumn('content_replaced_at', long).execute();
    const index = (name: string, column: string) =>
      db.schema
        .createIndex(name)
        .on('tde_objects')
        .columns([column, 'handle'])
        .where(sql.raw<boolean>(`"${column}" is not null`))
        .execute();
    await index('tde_objects_by_destruction', 'destroyed_at');
    await index('tde_objects_by_replacement', 'content_replaced_at');
    await db.schema.alterTable('snapshots').addColumn('erased', 'integer').execute();
  },
};
