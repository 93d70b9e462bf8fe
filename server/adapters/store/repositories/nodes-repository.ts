// The nodes' rows, for people and for records in the audit log. What nodes say to one another goes
// by their link (node-link.ts).

import { type Kysely, type Selectable, sql } from 'kysely';
import { nodeSettings } from '../../../domain/node.ts';
import type { NodeRow } from '../../../ports/node-link.ts';
import type { Repositories } from '../../../ports/store.ts';
import type { Schema } from '../schema/schema.ts';
import { membersOf } from '../schema/tables/members.ts';
import { nodesTables } from '../schema/tables/nodes-table.ts';
import { toBuffer } from '../schema/tables/values.ts';

const members = membersOf<NodeRow>()(nodesTables.nodes, 'id', 'public_key', 'proof', 'directory');

const toNode = (row: Selectable<Schema['nodes']>): NodeRow => ({
  id: row.id,
  ...members.fromRow(row),
  publicKey: toBuffer(row.public_key),
  proof: toBuffer(row.proof),
});

/** Removes what removed nodes have told: nothing else of the database names their settings. */
export const removeLeftSettings = async (db: Kysely<Schema>): Promise<void> => {
  for (const named of Object.values(nodeSettings))
    await sql`delete from settings where name in (select ${named('')} || id from nodes where state = 'removed')`.execute(
      db,
    );
};

export const createNodes = (
  db: Kysely<Schema>,
  settings: Pick<Repositories['settings'], 'set'>,
): Repositories['nodes'] => ({
  list: async () => (await db.selectFrom('nodes').selectAll().orderBy('name').orderBy('id').execute()).map(toNode),
  get: async (id) => {
    const row = await db.selectFrom('nodes').selectAll().where('id', '=', id).executeTakeFirst();
    return row && toNode(row);
  },
  put: async (node) => {
    const row = { ...members.toRow(node), public_key: node.publicKey, proof: node.proof, directory: '' };
    await db
      .insertInto('nodes')
      .values({ id: node.id, ...row })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
      .execute();
  },
  setState: async (id, state) => {
    await db.updateTable('nodes').set({ state }).where('id', '=', id).execute();
    if (state === 'removed') await removeLeftSettings(db);
  },
  tell: async (id, what, value) => {
    const row = await db.selectFrom('nodes').select('state').where('id', '=', id).executeTakeFirst();
    if (row === undefined || row.state === 'removed') return false;
    await settings.set(nodeSettings[what](id), value);
    return true;
  },
  hasDuty: async ({ duty, nodeId, fence }) =>
    (await db
      .selectFrom('node_duties')
      .select('duty')
      .where('duty', '=', duty)
      .where('node_id', '=', nodeId)
      .where('fence', '=', fence)
      // Until the commit no other node takes it; renewing it continues.
      .forKeyShare()
      .executeTakeFirst()) !== undefined,
});
