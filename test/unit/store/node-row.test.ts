// The row of a service with a store of its own: the whole of it is of its last start.
import { Kysely, sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { sqliteColumns, temporaryDatabase } from '../../../server/adapters/store/engine/sqlite/dialect.ts';
import { createNodes } from '../../../server/adapters/store/repositories/nodes-repository.ts';
import { createSettings } from '../../../server/adapters/store/repositories/settings-repository.ts';
import { createTables } from '../../../server/adapters/store/schema/create-tables.ts';
import type { Schema } from '../../../server/adapters/store/schema/schema.ts';
import { nodeRow } from '../../support/node-row.ts';

test('a store that was moved from PostgreSQL keeps no data directory of an earlier start', async () => {
  const db = new Kysely<Schema>({ dialect: temporaryDatabase() });
  onTestFinished(() => db.destroy());
  await createTables(db, sqliteColumns);
  const nodes = createNodes(db, createSettings(db));
  await nodes.put(nodeRow('n1'));
  await sql`update nodes set directory = 'the one on PostgreSQL', name = 'another', version = '0'`.execute(db);
  const directories = async () =>
    (await db.selectFrom('nodes').select('directory').execute()).map((row) => row.directory);
  expect(await directories()).toEqual(['the one on PostgreSQL']);
  await nodes.put(nodeRow('n1'));
  expect(await directories()).toEqual(['']);
  expect(await nodes.get('n1')).toEqual(nodeRow('n1'));
});
