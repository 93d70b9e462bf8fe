// Tags of keys, by which they are listed, and the indexes of the other filters of that list.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const keyTags = ({ bytewise }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    // Canonical JSON; null: none.
    await db.schema.alterTable('keys').addColumn('tags', 'text').execute();
    await db.schema
      .createTable('key_tags')
      .addColumn('tenant_id', 'text', (c) => c.notNull())
      .addColumn('tag', bytewise, (c) => c.notNull())
      .addColumn('key_id', 'text', (c) => c.notNull())
      .addPrimaryKeyConstraint('key_tags_pk', ['tenant_id', 'tag', 'key_id'])
      .execute();
    await db.schema.createIndex('key_tags_by_key').on('key_tags').column('key_id').execute();
    await db.schema.createIndex('keys_by_use').on('keys').columns(['tenant_id', 'last_used_at', 'id']).execute();
    await db.schema
      .createIndex('keys_never_used')
      .on('keys')
      .columns(['tenant_id', 'id'])
      .where(sql.ref('last_used_at'), 'is', null)
      .execute();
  },
});
