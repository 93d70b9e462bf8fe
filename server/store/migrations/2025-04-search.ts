// What search finds things by (search.ts). `scope`: the tenant, or * for users and tokens of every tenant and of the platform.

import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const search = ({ bytewise }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .createTable('search_terms')
      .addColumn('scope', 'text', (c) => c.notNull())
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('term', bytewise, (c) => c.notNull())
      .addColumn('subject_id', 'text', (c) => c.notNull())
      .addColumn('field', 'text', (c) => c.notNull())
      .addPrimaryKeyConstraint('search_terms_pk', ['scope', 'kind', 'term', 'subject_id'])
      .execute();
    await db.schema.createIndex('search_terms_by_subject').on('search_terms').columns(['subject_id', 'term']).execute();
    // As by the id that the cloud gives a request: see request-log.ts.
    await db.schema
      .createIndex('request_log_by_request')
      .on('request_log')
      .expression(sql`(sequence / 2000), request_id`)
      .execute();
  },
});
