// Settings of the service in the database that decide nothing, by name. Others:
// decisions-repository.ts.

import type { Kysely } from 'kysely';
import { ServiceError } from '../../../base/service-error.ts';
import { isDecision } from '../../../domain/decisions.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';

/** Set by the first start, before it seals anything. */
export const begunSetting = 'begun';

export const createSettings = (db: Kysely<Schema>): Repositories['settings'] => ({
  get: async (name) =>
    (await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst())?.value,
  set: async (name, value) => {
    if (isDecision(name)) throw new ServiceError('internal', `${name} is a decision`);
    if (value === null) await db.deleteFrom('settings').where('name', '=', name).execute();
    else
      await db
        .insertInto('settings')
        .values({ name, value })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
        .execute();
  },
});
