// The tags of keys as a table of their own, by which the list of keys goes. It is made of what is
// in the keys' rows, which are authenticated.

import type { Kysely } from 'kysely';
import type { Schema } from '../schema/schema.ts';
import { parseTags } from '../schema/tables/values.ts';

export const createKeyTags = (db: Kysely<Schema>) => ({
  /** Replaces the tags of these keys with those in their rows; a few hundred keys at most. */
  renew: async (
    keys: readonly { readonly id: string; readonly tenant_id: string; readonly tags: string | null }[],
  ): Promise<void> => {
    if (keys.length === 0) return;
    await db
      .deleteFrom('key_tags')
      .where(
        'key_id',
        'in',
        keys.map(({ id }) => id),
      )
      .execute();
    const rows = keys.flatMap(({ id, tenant_id, tags }) =>
      parseTags(tags).map((tag) => ({ tenant_id, tag, key_id: id })),
    );
    if (rows.length > 0) await db.insertInto('key_tags').values(rows).execute();
  },
});
export type KeyTags = ReturnType<typeof createKeyTags>;
