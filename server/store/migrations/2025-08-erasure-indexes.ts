// What an erasure run asks for, however many records and tombstones there are: records under older keys in the order in which they are
// resealed, and destroyed keys that are not yet unrecoverable.

import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

export const erasureIndexes = (): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    await db.schema.dropIndex('key_records_by_epoch').execute();
    await db.schema
      .createIndex('key_records_by_epoch')
      .on('key_records')
      .columns(['tenant_id', 'epoch', 'object_id', 'version', 'class'])
      .where(sql.ref('record'), 'is not', null)
      .execute();
    await db.schema
      .createIndex('keys_to_erase')
      .on('keys')
      .columns(['destroyed_at'])
      .where(sql.ref('destroyed_at'), 'is not', null)
      .where(sql.ref('unrecoverable_at'), 'is', null)
      .execute();
  },
});
