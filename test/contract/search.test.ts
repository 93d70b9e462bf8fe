// Search in every store (ports/search-index.ts): what is found, what is no longer found, and that
// among 100,000 keys each statement goes by an index.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, PostgresDialect, SqliteDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { searchStatements } from '../../server/adapters/store/repositories/search-index-repository.ts';
import type { Schema } from '../../server/adapters/store/schema/schema.ts';
import { openPostgresStore, openStore } from '../../server/adapters/store/store.ts';
import { newId } from '../../server/base/ids.ts';
import { systemClock } from '../../server/base/time.ts';
import { type Key, newKey } from '../../server/domain/key.ts';
import { foldQuery } from '../../server/domain/search-terms.ts';
import { everyTenant, type TenantScope } from '../../server/domain/tenant.ts';
import { newTenant } from '../../server/operations/tenants/create-tenant.ts';
import type { TermKind } from '../../server/ports/search-index.ts';
import type { Store } from '../../server/ports/store.ts';
import { sharedFolder } from '../support/folders.ts';
import { type PostgresPlace, type PostgresServer, startPostgres } from '../support/postgresql.ts';
import { storedUser, storedVault } from '../support/stored.ts';

const many = 100_000;
const folder = sharedFolder();
let postgres: PostgresServer;
let place: PostgresPlace;
beforeAll(async () => {
  postgres = await startPostgres();
  place = postgres.createDatabase('search');
});
afterAll(async () => {
  await postgres?.remove();
});

const surroundings = {
  clock: systemClock,
  authenticateRow: () => 'code',
  onFatal: (error: Error) => {
    throw error;
  },
};
/** Numbers 1 to `many`, as each database counts. */
const counted = {
  sqlite: `with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${many})`,
  postgres: `with counted as (select n from generate_series(1, ${many}) as n)`,
};
const padded = { sqlite: "printf('%06d', n)", postgres: "lpad(n::text, 6, '0')" };

const implementations = [
  {
    name: 'sqlite' as const,
    open: () => openStore({ ...surroundings, path: join(folder, 'dke.db') }),
    run: (statement: string) => {
      const database = new DatabaseSync(join(folder, 'dke.db'));
      database.exec(statement);
      database.close();
    },
    /** What the database does to answer a statement. */
    plan: async (build: (statements: ReturnType<typeof searchStatements>) => Compilable): Promise<string> => {
      const database = new DatabaseSync(join(folder, 'dke.db'), { readOnly: true });
      try {
        const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database: database as never }) });
        const { sql, parameters } = build(searchStatements(db)).compile();
        const lines = database.prepare(`explain query plan ${sql}`).all(...(parameters as string[]));
        return lines.map(({ detail }) => String(detail)).join('\n');
      } finally {
        database.close();
      }
    },
    scans: /\bSCAN (search_terms|keys|own)\b/,
    sorts: /TEMP B-TREE/,
  },
  {
    name: 'postgres' as const,
    open: () =>
      openPostgresStore({ ...surroundings, postgres: { ...place, password: undefined, ca: undefined, readers: 2 } }),
    run: (statement: string) => {
      postgres.run(place.database, statement);
    },
    plan: async (build: (statements: ReturnType<typeof searchStatements>) => Compilable): Promise<string> => {
      const client = new pg.Client({ ...place });
      await client.connect();
      try {
        const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: {} as never }) });
        const { sql, parameters } = build(searchStatements(db)).compile();
        const { rows } = await client.query<Record<'QUERY PLAN', string>>(`explain ${sql}`, [...parameters]);
        return rows.map((row) => row['QUERY PLAN']).join('\n');
      } finally {
        await client.end();
      }
    },
    scans: /\bSeq Scan\b/,
    sorts: /\bSort\b/,
  },
];
interface Compilable {
  compile(): { readonly sql: string; readonly parameters: readonly unknown[] };
}

const ours = newTenant('ours', 1);
const theirs = newTenant('theirs', 1);
const vaultId = newId(2);
const keyOf = (name: string, tenantId = ours.id): Key =>
  newKey({
    id: newId(3),
    tenantId,
    vaultId: tenantId === ours.id ? vaultId : vaultOfThem,
    name,
    createdAt: 3,
  });
const vaultOfThem = newId(2);
const userOf = (name: string, tenantId: string | null) =>
  storedUser({ name, tenantId, displayName: `${name} Example`, email: `${name}@mail.example` });

describe.each(implementations)('search in $name', ({ name, open, run, plan, scans, sorts }) => {
  let store: Store;
  const payroll = keyOf('prod-payroll.2026');
  const orders = keyOf('OrdersProd');
  const foreign = keyOf('prod of them', theirs.id);
  const alice = userOf('alice', ours.id);
  const root = userOf('alicia', null);
  beforeAll(async () => {
    store = await open();
    await store.write(async (tx) => {
      for (const tenant of [ours, theirs]) {
        await tx.tenants.insert(tenant);
        const id = tenant === ours ? vaultId : vaultOfThem;
        await tx.vaults.insert(storedVault({ id, tenantId: tenant.id, name: 'prod vault' }));
      }
      for (const key of [payroll, orders, foreign]) await tx.keys.insert(key);
      for (const user of [alice, root]) await tx.users.insert(user);
    });
  });
  afterAll(() => store?.close());

  const find = async (kind: TermKind, text: string, tenant: TenantScope = ours.id, limit = 10) =>
    (await store.read.search.find(tenant, { kind, folded: foldQuery(text), limit })).items.map(({ id }) => id);

  test.each<[string, readonly Key[]]>([
    ['payroll', [payroll]],
    ['PROD', [orders, payroll]],
    ['prod payroll', [payroll]],
    ['2026 prod', [payroll]],
    ['roll', []],
    ['prod nothing', []],
  ])('%j finds keys by the beginnings of words', async (text, found) => {
    expect(await find('key', text)).toEqual(found.map(({ id }) => id));
  });

  test('an id is found by its beginning and by its last part, and the result names the field', async () => {
    expect(await find('key', payroll.id.slice(0, 30))).toContain(payroll.id);
    const { items } = await store.read.search.find(ours.id, {
      kind: 'key',
      folded: foldQuery(payroll.id.slice(24).toUpperCase()),
      limit: 10,
    });
    expect(items).toEqual([
      { kind: 'key', id: payroll.id, name: payroll.name, field: 'id', tenantId: ours.id, state: 'active' },
    ]);
  });

  test('what another tenant has is not there', async () => {
    expect(await find('key', 'them')).toEqual([]);
    expect(await find('key', 'them', theirs.id)).toEqual([foreign.id]);
    expect(await find('user', 'alic')).toEqual([alice.id]);
    expect(await find('user', 'alic', theirs.id)).toEqual([]);
  });

  test('of every tenant there are people, those of the platform too; keys are looked for in one', async () => {
    expect(await find('user', 'mail', everyTenant)).toEqual([alice.id, root.id]);
    expect(await find('user', 'alic', everyTenant)).toEqual([alice.id, root.id]);
    await expect(find('key', 'prod', everyTenant)).rejects.toThrow(RangeError);
  });

  test('a limit is respected and reported', async () => {
    expect(await store.read.search.find(ours.id, { kind: 'key', folded: 'prod', limit: 1 })).toMatchObject({
      items: [{ id: orders.id }],
      more: true,
    });
    expect(await store.read.search.find(ours.id, { kind: 'key', folded: 'prod', limit: 2 })).toMatchObject({
      more: false,
    });
  });

  test('another name finds, the one before no longer does; a deleted user is not shown, but for those who look for actors', async () => {
    const renamed = { ...alice, name: 'bob', displayName: 'Bob', email: null };
    const update = (user: typeof alice) =>
      store.write(async (tx) => {
        await tx.users.get(everyTenant, user.id);
        await tx.users.update(user);
      });
    await update(renamed);
    expect(await find('user', 'alice')).toEqual([]);
    expect(await find('user', 'bob', everyTenant)).toEqual([alice.id]);
    await update({ ...renamed, state: 'deleted' });
    expect(await find('user', 'bob')).toEqual([]);
    const { items } = await store.read.search.find(ours.id, {
      kind: 'user',
      folded: 'bob',
      limit: 5,
      withDeleted: true,
    });
    expect(items.map(({ state }) => state)).toEqual(['deleted']);
  });

  test('what was undone is not found', async () => {
    await expect(
      store.write(async (tx) => {
        await tx.keys.insert(keyOf('never there'));
        throw new Error('undone');
      }),
    ).rejects.toThrow('undone');
    expect(await find('key', 'never')).toEqual([]);
  });

  test('terms that are missing or of another version are created again at the start', async () => {
    await store.close();
    run("delete from search_terms; insert into search_terms values ('x', 'key', 'stale', 'nobody', 'name')");
    run("update settings set value = '0' where name = 'search-terms'");
    store = await open();
    expect(await find('key', 'prod')).toEqual([orders.id, payroll.id]);
    expect(await find('user', 'alicia', everyTenant)).toEqual([root.id]);
  });

  describe(`among ${many} keys`, () => {
    beforeAll(() => {
      const columns =
        'id, tenant_id, vault_id, name, kind, algorithm, bits, usages, state, current_version, created_at, row_mac';
      run(`insert into keys (${columns}) ${counted[name]}
        select 'many-' || ${padded[name]}, '${ours.id}', '${vaultId}', 'Bulk ' || ${padded[name]}, 'general', 'aes', 256, '[]', 'active', 1, 1, 'code' from counted`);
      for (const [term, field] of [
        ["'bulk ' || ", 'name'],
        ['', 'name'],
        ["'many ' || ", 'id'],
      ])
        run(`insert into search_terms ${counted[name]}
          select '${ours.id}', 'key', ${term}${padded[name]}, 'many-' || ${padded[name]}, '${field}' from counted`);
      if (name === 'postgres') run('analyze');
    });

    test('one is found by its number, the first of them by their word, and words apart among the rarest', async () => {
      expect(await find('key', '077777')).toEqual(['many-077777']);
      expect(await find('key', 'bulk', ours.id, 2)).toEqual(['many-000001', 'many-000002']);
      expect(await find('key', '077777 bulk')).toEqual(['many-077777']);
      expect(await find('key', 'bulk payroll')).toEqual([]);
      expect((await store.read.search.find(ours.id, { kind: 'key', folded: 'bulk', limit: 3 })).more).toBe(true);
    });

    test.each<[string, (statements: ReturnType<typeof searchStatements>) => Compilable]>([
      ['the first', (s) => s.beginning(ours.id, 'key', 'bulk', undefined, 50)],
      ['one', (s) => s.beginning(ours.id, 'key', 'bulk 077777', undefined, 50)],
      ['the following', (s) => s.beginning(ours.id, 'key', 'bulk', { term: 'bulk 050000', subject_id: 'x' }, 50)],
      ['a count', (s) => s.count(ours.id, 'key', 'bulk', 2000)],
      ['words apart', (s) => s.together(ours.id, 'key', 'bulk', ['0777', 'payroll'], 50)],
      ['vaults that name an approver', (s) => s.naming('bulk 077777', 'x', 50)],
      ['the things', (s) => s.things('key', ['many-000001', 'many-077777'])],
    ])('%s is read by an index', async (what, build) => {
      const explained = await plan(build);
      expect(explained).not.toMatch(scans);
      expect(explained).toMatch(/search_terms_pk|search_terms_by_subject|keys_pkey|autoindex_(keys|search_terms)/);
      // Rows of words that stand apart may be sorted: there are two thousand at most.
      if (what !== 'words apart') expect(explained).not.toMatch(sorts);
    });
  });
});
