// Settings that decide something (domain/decisions.ts), as rows with authentication codes. A row is never removed: one that is missing was removed from
// outside, which the set of policy rows shows.

import type { Kysely } from 'kysely';
import { type DecisionName, decisionNames } from '../domain/decisions.ts';
import type { Repositories } from '../ports/store.ts';
import { refuseTampered } from './row-codes.ts';
import type { PolicyRows } from './row-set.ts';
import type { Schema } from './schema.ts';

export const createDecisions = (db: Kysely<Schema>, policyRows: PolicyRows): Repositories['decisions'] => {
  const find = async (name: DecisionName) => {
    const row = await db.selectFrom('decisions').selectAll().where('id', '=', name).executeTakeFirst();
    if (row !== undefined) refuseTampered({ integrity: policyRows.integrity('decisions', row) });
    return row;
  };
  /** As earlier versions kept it. */
  const former = (name: DecisionName) =>
    db.selectFrom('settings').select('value').where('name', '=', name).executeTakeFirst();
  const set = async (name: DecisionName, value: string | null): Promise<void> => {
    const row = { id: name, value };
    if ((await find(name)) === undefined) await policyRows.insert('decisions', row);
    else await policyRows.update('decisions', row);
  };
  return {
    get: async (name) => {
      const row = (await find(name)) ?? (await former(name));
      return row?.value ?? undefined;
    },
    set,
    adopt: async () => {
      const there = new Set((await db.selectFrom('decisions').select('id').execute()).map(({ id }) => id));
      for (const name of decisionNames)
        if (!there.has(name)) {
          await set(name, (await former(name))?.value ?? null);
          await db.deleteFrom('settings').where('name', '=', name).execute();
        }
    },
    areAdopted: async () => (await db.selectFrom('decisions').select('id').execute()).length >= decisionNames.length,
  };
};
