// The keys of tenants under which their records are sealed, themselves sealed under the root key.

import type { Kysely } from 'kysely';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';
import { toBuffer } from '../schema/tables/values.ts';

export const createTenantKeks = (db: Kysely<Schema>): Repositories['keks'] => ({
  list: async () =>
    (await db.selectFrom('tenant_keks').selectAll().orderBy('tenant_id').orderBy('epoch').execute()).map((row) => ({
      tenantId: row.tenant_id,
      epoch: row.epoch,
      rootEpoch: row.root_epoch,
      record: toBuffer(row.record),
    })),
  insert: async (kek) => {
    await db
      .insertInto('tenant_keks')
      .values({ tenant_id: kek.tenantId, epoch: kek.epoch, root_epoch: kek.rootEpoch, record: kek.record })
      .execute();
  },
  remove: async (tenantId, epoch) => {
    const own = db.selectFrom('tenant_keks').select('record').where('tenant_id', '=', tenantId);
    const row = await own.where('epoch', '=', epoch).executeTakeFirst();
    if (row === undefined) return;
    // Overwritten before it is deleted, so that the page does not keep it.
    await db
      .updateTable('tenant_keks')
      .set({ record: Buffer.alloc(row.record.length) })
      .where('tenant_id', '=', tenantId)
      .where('epoch', '=', epoch)
      .execute();
    await db.deleteFrom('tenant_keks').where('tenant_id', '=', tenantId).where('epoch', '=', epoch).execute();
  },
});
