// Unsigned requests have a space of their own in the request log, and requests without a record are counted.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const requestSpaces = ({ long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema
      .createIndex('request_log_unsigned')
      .on('request_log')
      .column('sequence')
      .where(sql.ref('credential_id'), 'is', null)
      .execute();
    await db.schema
      .createTable('request_log_dropped')
      .addColumn('minute', long, (c) => c.primaryKey())
      .addColumn('signed', long, (c) => c.notNull())
      .addColumn('unsigned', long, (c) => c.notNull())
      .execute();
  },
});
