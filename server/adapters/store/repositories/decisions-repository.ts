// Settings that decide something (domain/decisions.ts), as rows with authentication codes. All of
// them are there or none is, in a database that no start has used yet. So one that is missing was
// removed from outside: it has no value instead of another one.

import type { Kysely } from 'kysely';
import { ServiceError } from '../../../base/service-error.ts';
import { type DecisionName, decisionNames } from '../../../domain/decisions.ts';
import type { Repositories } from '../../../ports/store.ts';
import { refuseTampered } from '../rows/row-codes.ts';
import type { PolicyRows } from '../rows/row-set.ts';
import type { Schema } from '../schema/schema.ts';

export const createDecisions = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['decisions'] => {
  const names = async (): Promise<ReadonlySet<string>> =>
    new Set((await db.selectFrom('decisions').select('id').execute()).map(({ id }) => id));
  /** No start has used the database. */
  const isUnused = async (): Promise<boolean> => !policyRows.knows('decisions') && (await names()).size === 0;
  const find = async (name: DecisionName): Promise<string | null> => {
    const row = await db.selectFrom('decisions').selectAll().where('id', '=', name).executeTakeFirst();
    if (row !== undefined) {
      refuseTampered({ integrity: policyRows.integrity('decisions', row) });
      return row.value;
    }
    if (await isUnused()) return null;
    throw new ServiceError('key-tampered', `the stored decision ${name} was removed from outside`, {
      hint: 'compare the database with a backup; restart the service: it names what differs before it uses the database',
    });
  };
  /** A decision as versions before 0004-decisions stored it; null: there is none. */
  const former = async (name: DecisionName): Promise<string | null> =>
    (await db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst())?.value ?? null;
  const adopt = async (isUpgrade: boolean): Promise<void> => {
    const there = await names();
    for (const name of decisionNames)
      if (!there.has(name))
        await policyRows.insert('decisions', { id: name, value: isUpgrade ? await former(name) : null });
    await db.deleteFrom('settings').where('name', 'in', decisionNames).execute();
  };
  return {
    get: async (name) => (await find(name)) ?? undefined,
    set: async (name, value) => {
      if (await isUnused()) await adopt(false);
      await find(name);
      await policyRows.update('decisions', { id: name, value });
    },
    adopt,
    adopted: async () => {
      const there = await names();
      return there.size === 0 ? 'none' : decisionNames.every((name) => there.has(name)) ? 'all' : 'some';
    },
  };
};
