// Servers that share one store: who they are, what has changed that another one may keep in memory, and how a new root key gets to
// all of them (ports/node-link.ts).

import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { ColumnKinds } from '../migrations.ts';

export const nodes = ({ bytes, long }: ColumnKinds): Migration => ({
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a migration's database, which has no schema yet
  up: async (db: Kysely<any>) => {
    const create = db.schema;
    await create
      .createTable('nodes')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('version', 'text', (c) => c.notNull())
      .addColumn('state', 'text', (c) => c.notNull())
      .addColumn('started_at', long, (c) => c.notNull())
      .addColumn('heartbeat_at', long, (c) => c.notNull())
      // How long it goes on without the store, in milliseconds; 0: as long as it takes.
      .addColumn('contact_ms', long, (c) => c.notNull())
      .addColumn('epoch', long, (c) => c.notNull())
      .addColumn('root_epoch', 'integer', (c) => c.notNull())
      .addColumn('oldest_root_epoch', 'integer', (c) => c.notNull())
      .addColumn('public_key', bytes, (c) => c.notNull())
      .addColumn('proof', bytes, (c) => c.notNull())
      .execute();
    await create
      .createTable('node_head')
      .addColumn('id', 'integer', (c) => c.primaryKey())
      .addColumn('epoch', long, (c) => c.notNull())
      .addColumn('keks', long, (c) => c.notNull())
      .execute();
    // Agents have seen epochs of other stores: this one's are later.
    await db.insertInto('node_head').values({ id: 1, epoch: Date.now(), keks: 0 }).execute();
    await create
      .createTable('node_changes')
      .addColumn('epoch', long, (c) => c.primaryKey())
      .addColumn('previous', long, (c) => c.notNull())
      .addColumn('at', long, (c) => c.notNull())
      .addColumn('changes', 'text', (c) => c.notNull())
      .execute();
    await create
      .createTable('root_turns')
      .addColumn('id', 'integer', (c) => c.primaryKey())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('node_id', 'text', (c) => c.notNull())
      .addColumn('phase', 'text', (c) => c.notNull())
      .execute();
    await create
      .createTable('root_parcels')
      .addColumn('node_id', 'text', (c) => c.primaryKey())
      .addColumn('epoch', 'integer', (c) => c.notNull())
      .addColumn('public_key', bytes, (c) => c.notNull())
      .addColumn('sealed', bytes, (c) => c.notNull())
      .execute();
  },
});
