// The nodes' rows, for people and for records in the audit log. What nodes say to one another goes by their link (node-link.ts).

import type { Kysely, Selectable } from 'kysely';
import type { NodeState } from '../domain/node.ts';
import type { NodeRow } from '../ports/node-link.ts';
import type { Repositories } from '../ports/store.ts';
import type { Schema } from './schema.ts';

const toNode = (row: Selectable<Schema['nodes']>): NodeRow => ({
  id: row.id,
  name: row.name,
  version: row.version,
  state: row.state as NodeState,
  startedAt: row.started_at,
  heartbeatAt: row.heartbeat_at,
  contactMs: row.contact_ms,
  epoch: row.epoch,
  clockAheadMs: row.clock_ahead_ms,
  rootEpoch: row.root_epoch,
  oldestRootEpoch: row.oldest_root_epoch,
  publicKey: Buffer.from(row.public_key),
  proof: Buffer.from(row.proof),
});

export const createNodes = (db: Kysely<Schema>): Repositories['nodes'] => ({
  list: async () => (await db.selectFrom('nodes').selectAll().orderBy('name').orderBy('id').execute()).map(toNode),
  get: async (id) => {
    const row = await db.selectFrom('nodes').selectAll().where('id', '=', id).executeTakeFirst();
    return row && toNode(row);
  },
  put: async (node) => {
    const row = {
      name: node.name,
      version: node.version,
      state: node.state,
      started_at: node.startedAt,
      heartbeat_at: node.heartbeatAt,
      contact_ms: node.contactMs,
      epoch: node.epoch,
      clock_ahead_ms: node.clockAheadMs,
      root_epoch: node.rootEpoch,
      oldest_root_epoch: node.oldestRootEpoch,
      public_key: node.publicKey,
      proof: node.proof,
    };
    await db
      .insertInto('nodes')
      .values({ id: node.id, directory: '', ...row })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
      .execute();
  },
  setState: async (id, state) => {
    await db.updateTable('nodes').set({ state }).where('id', '=', id).execute();
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
