// Upgrades on both databases: from each released schema, by a migration like those of later
// versions, and the refusals.
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Engine } from '../../server/adapters/store/engine/engine.ts';
import { openPostgres } from '../../server/adapters/store/engine/postgres/postgres-engine.ts';
import { openSqliteEngine } from '../../server/adapters/store/engine/sqlite/sqlite-engine.ts';
import { baseline } from '../../server/adapters/store/migrations/index.ts';
import { migrate, newestSchema } from '../../server/adapters/store/migrations/migrate.ts';
import type { SchemaMigration } from '../../server/adapters/store/migrations/migration.ts';
import { newId } from '../../server/base/ids.ts';
import { everyTenant } from '../../server/domain/tenant.ts';
import { sharedFolder } from '../support/folders.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';
import {
  postgresqlDatabase,
  releasedSchemas,
  restoreSchema,
  sqliteDatabase,
  type TestDatabase,
  vaultName,
} from '../support/released-schemas.ts';

interface Place {
  readonly database: TestDatabase;
  engine(): Promise<Engine>;
}

const folder = sharedFolder();
let postgres: PostgresServer;
let number = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres?.remove();
});

const places = {
  sqlite: (): Place => {
    const path = join(mkdtempSync(join(folder, 'place-')), 'dke.db');
    return { database: sqliteDatabase(path), engine: async () => openSqliteEngine(path) };
  },
  postgresql: (): Place => {
    number += 1;
    const place = postgres.createDatabase(`schemas_${number}`);
    return {
      database: postgresqlDatabase(place),
      engine: () => openPostgres({ ...place, password: undefined, ca: undefined, readers: 1 }),
    };
  },
};

/** A vault gets an owner, which is its name until it is set; owners have a table. */
const owners: SchemaMigration = {
  name: '0002-owners',
  up: async (db, { long }) => {
    await db.schema
      .createTable('owners')
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('since', long, (c) => c.notNull())
      .execute();
    await db.schema.alterTable('vaults').addColumn('owner', 'text').execute();
    await db
      .updateTable('vaults')
      .set({ owner: sql.ref('name') })
      .execute();
    await db.schema.createIndex('vaults_by_owner').on('vaults').columns(['owner', 'id']).execute();
  },
};
/** Its second statement fails. */
const broken: SchemaMigration = {
  name: '0003-broken',
  up: async (db) => {
    await db.schema.alterTable('vaults').addColumn('colour', 'text').execute();
    await db.schema.alterTable('vaults').addColumn('name', 'text').execute();
  },
};

const upgrade = async (
  { engine: open }: Place,
  steps: readonly SchemaMigration[],
  change = (engine: Engine): Pick<Engine, 'columns' | 'kindOf' | 'shared'> => engine,
): Promise<void> => {
  const engine = await open();
  const db = new Kysely<never>({ dialect: engine.writer });
  try {
    await migrate(db, change(engine), steps);
  } finally {
    await engine.close();
    await db.destroy();
    await new Kysely<never>({ dialect: engine.reader }).destroy();
    if (engine.requests) await new Kysely<never>({ dialect: engine.requests.reader }).destroy();
  }
};
const applied = async ({ database }: Place): Promise<readonly unknown[]> =>
  (await database.query('select name from kysely_migration order by name')).map(({ name }) => name);

test('the schema of this version is recorded', () => {
  // Otherwise: node test/support/released-schemas.ts
  expect(releasedSchemas().at(-1)).toBe(newestSchema);
  expect(releasedSchemas()).toContain(baseline);
});

describe.each(['sqlite', 'postgresql'] as const)('on %s', (dialect) => {
  const place = places[dialect];

  test.each(releasedSchemas())('a database of %s becomes one of this version, with its rows', async (name) => {
    const fresh = place().database;
    await (await fresh.open()).close();
    const { database } = place();
    await restoreSchema(name, dialect, database);
    const store = await database.open();
    try {
      // A declaration that changed without a migration, or a migration that does something else
      // than the declaration, shows here.
      expect(await database.schema()).toEqual(await fresh.schema());
      expect(await store.rowSet.load()).toMatchObject({ differences: [], rows: 2 });
      const [vault, ...others] = await store.read.vaults.list(everyTenant, { after: undefined, limit: 9 });
      expect(others).toEqual([]);
      expect(vault).toMatchObject({ name: vaultName, integrity: 'ok' });
      expect(await store.read.audit.size()).toBe(1);
      if (vault === undefined) throw new Error('no vault');
      await store.write((tx) => tx.vaults.insert({ ...vault, id: newId(3), name: 'another' }));
    } finally {
      await store.close();
    }
  });

  test('a migration changes the tables and the rows once', async () => {
    const at = place();
    await restoreSchema(baseline, dialect, at.database);
    await upgrade(at, [owners]);
    expect(await applied(at)).toEqual([baseline, owners.name]);
    await at.database.run("update vaults set owner = 'alice'");
    await upgrade(at, [owners]);
    expect(await at.database.query('select name, owner from vaults')).toEqual([{ name: vaultName, owner: 'alice' }]);
    expect(await at.database.query('select * from owners')).toEqual([]);
    await expect(at.database.open()).rejects.toMatchObject({
      code: 'newer',
      message: expect.stringMatching(/0002-owners.*install that version/),
    });
  });

  test('a migration that fails undoes the whole upgrade, and is named with its cause', async () => {
    const at = place();
    await restoreSchema(baseline, dialect, at.database);
    const before = await at.database.schema();
    const failed = upgrade(at, [owners, broken]);
    await expect(failed).rejects.toThrow(/0003-broken.*(duplicate column name: name|"name".*already exists)/);
    await expect(failed).rejects.toThrow(/docs\/upgrade\.md/);
    expect(await at.database.schema()).toEqual(before);
    // The version before still opens it.
    const store = await at.database.open();
    expect((await store.rowSet.load()).differences).toEqual([]);
    await store.close();
  });

  test('an empty database has the declared tables at once, and takes no step', async () => {
    const at = place();
    await upgrade(at, [broken]);
    expect(await applied(at)).toEqual([baseline, broken.name]);
    const fresh = place().database;
    await (await fresh.open()).close();
    expect(await at.database.schema()).toEqual(await fresh.schema());
  });

  test('a database of a development version is refused, and the message says what to do', async () => {
    const at = place();
    await restoreSchema(baseline, dialect, at.database);
    await at.database.run("update kysely_migration set name = '2025-12-node-directory'");
    const before = await at.database.schema();
    await expect(at.database.open()).rejects.toMatchObject({
      code: 'unreleased',
      message: expect.stringMatching(/development version.*2025-12-node-directory.*empty database.*snapshots/),
    });
    expect(await at.database.schema()).toEqual(before);
  });
});

test('a node that comes after the first look has written nothing, or is seen: the migration changes nothing', async () => {
  const at = places.postgresql();
  await restoreSchema(baseline, 'postgresql', at.database);
  const before = await at.database.schema();
  const node = await at.engine();
  // Starts are one after the other: this one is over, and the node has not claimed its place yet.
  await node.shared?.started();
  try {
    const upgraded = upgrade(at, [owners], (engine) => ({
      columns: engine.columns,
      kindOf: engine.kindOf,
      shared: engine.shared && {
        ...engine.shared,
        // The node is still connecting: it claims its row only after the running nodes were listed.
        running: async () => {
          const names = await engine.shared?.running();
          await node.shared?.link.claim(newId(9), '');
          return names ?? [];
        },
      },
    }));
    await expect(upgraded).rejects.toThrow('stop them first (a node that starts)');
    expect([await at.database.schema(), await applied(at)]).toEqual([before, [baseline]]);
  } finally {
    await node.close();
    for (const dialect of [node.writer, node.reader]) await new Kysely<never>({ dialect }).destroy();
  }
});
