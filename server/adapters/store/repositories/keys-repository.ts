// The queries of keys and their versions. Lists: key-list-repository.ts; destroyed keys:
// erasable-keys-repository.ts.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered, soundOnly } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';
import { keyRow, toKey } from '../schema/tables/keys-table.ts';
import { createErasableKeys } from './erasable-keys-repository.ts';
import { countKeys, listKeys } from './key-list-repository.ts';
import type { KeyTags } from './key-tags-repository.ts';
import { laterOf } from './later-of.ts';
import type { Terms } from './search-index-repository.ts';
import { inScope } from './tenants-repository.ts';

export const createKeys = (
  db: Kysely<Schema>,
  policyRows: PolicyRows,
  terms: Pick<Terms, 'add' | 'renew'>,
  keyTags: KeyTags,
): Repositories['keys'] => {
  const check = policyRows.integrity;
  const stored: Repositories['keys']['stored'] = async (tenant, id) => {
    const query = inScope(db.selectFrom('keys').selectAll(), tenant);
    const row = await query.where('id', '=', id).executeTakeFirst();
    return row && toKey(row, check('keys', row));
  };
  return {
    get: soundOnly(stored, 'key', ({ name }) => name),
    stored,
    list: async (tenant, filter, window) =>
      (await listKeys(db, tenant, filter, window)).map((row) => toKey(row, check('keys', row))),
    count: (tenant, filter, most) => countKeys(db, tenant, filter, most),
    insert: async (key) => {
      await policyRows.insert('keys', {
        ...keyRow(key),
        first_used_at: key.firstUsedAt,
        last_used_at: key.lastUsedAt,
      });
      await terms.add('keys', keyRow(key));
      if (key.tags.length > 0) await keyTags.renew([keyRow(key)]);
    },
    update: async (key) => {
      refuseTampered(key);
      await policyRows.update('keys', keyRow(key));
      await terms.renew('keys', keyRow(key));
      await keyTags.renew([keyRow(key)]);
    },
    touch: async (id, first, last) => {
      await db
        .updateTable('keys')
        .set((e) => ({
          first_used_at: e.fn.coalesce('first_used_at', e.val(first)),
          last_used_at: laterOf(e.ref('last_used_at'), last),
        }))
        .where('id', '=', id)
        .execute();
    },
    countLive: async (vaultId) => {
      const row = await db
        .selectFrom('keys')
        .select((e) => e.fn.countAll<number | string>().as('count'))
        .where('vault_id', '=', vaultId)
        .where('state', '!=', 'destroyed')
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
    lastUsedIn: async (vaultId) => {
      const row = await db
        .selectFrom('keys')
        .selectAll()
        .where('vault_id', '=', vaultId)
        .where('last_used_at', 'is not', null)
        .orderBy('last_used_at', 'desc')
        .limit(1)
        .executeTakeFirst();
      return row && toKey(row, check('keys', row));
    },
    ...createErasableKeys(db, (row) => toKey(row, check('keys', row))),
    versions: async (id) =>
      (
        await db
          .selectFrom('key_versions')
          .innerJoin('keys', 'keys.id', 'key_versions.key_id')
          .leftJoin('key_records', (join) =>
            join
              .onRef('key_records.tenant_id', '=', 'keys.tenant_id')
              .onRef('key_records.object_id', '=', 'key_versions.key_id')
              .onRef('key_records.version', '=', 'key_versions.version')
              .on('key_records.class', '=', 'vault-copy'),
          )
          .select(['key_versions.key_id', 'key_versions.version', 'key_versions.created_at'])
          .select((e) => e('key_records.record', 'is not', null).as('present'))
          .where('key_versions.key_id', '=', id)
          .orderBy('key_versions.version')
          .execute()
      ).map((row) => ({
        keyId: row.key_id,
        version: row.version,
        createdAt: row.created_at,
        vaultCopy: Boolean(row.present),
      })),
    insertVersion: async ({ keyId, version, createdAt }) => {
      await db.insertInto('key_versions').values({ key_id: keyId, version, created_at: createdAt }).execute();
    },
  };
};
