// What the clock removes, of each table whose declaration says that its rows end with their age: a
// row goes when its time is over, not before, and the key records that it owns with it.
import { Kysely, sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sqliteColumns, temporaryDatabase } from '../../../server/adapters/store/engine/sqlite/dialect.ts';
import { createRepositories } from '../../../server/adapters/store/repositories/repositories.ts';
import { createRowSet } from '../../../server/adapters/store/rows/row-set.ts';
import { createTables } from '../../../server/adapters/store/schema/create-tables.ts';
import { type Declaration, declared, type Schema } from '../../../server/adapters/store/schema/schema.ts';
import type { ColumnKind } from '../../../server/adapters/store/schema/tables/table.ts';
import { newId, serviceTenantId } from '../../../server/base/ids.ts';
import { repeatMs } from '../../../server/domain/tde.ts';

const now = 1_000 * 86_400_000;
const idleMs = 3_600_000;
const clock = { now: () => now, monotonic: () => 0 };
let db: Kysely<Schema>;

beforeEach(async () => {
  db = new Kysely<Schema>({ dialect: temporaryDatabase() });
  await sql`pragma foreign_keys = off`.execute(db);
  await createTables(db, sqliteColumns);
});
afterEach(() => db.destroy());

const prune = async (): Promise<void> => {
  const set = createRowSet(
    () => '',
    false,
    () => Promise.resolve([]),
  );
  set.transaction.begin();
  await createRepositories(db, set, 'transaction', clock).pruning.run(now, idleMs);
};

const tables = [...declared].flatMap(([name, table]) =>
  'past' in table.pruned ? [{ name, table, ...table.pruned }] : [],
);
let made = 0;
/**
 * A row whose columns that end it are these; the others are of no age, and different in each row.
 */
const insert = async (
  name: string,
  { columns }: Declaration,
  ends: Readonly<Record<string, number>>,
): Promise<void> => {
  made += 1;
  const valueIn = (column: string, kind: ColumnKind): unknown => {
    if (Object.hasOwn(ends, column)) return ends[column];
    if (column === 'id') return newId(0);
    if (kind === 'bytes') return Buffer.of(1);
    return kind === 'text' ? `${column} ${made}` : 0;
  };
  const row = Object.entries(columns)
    .filter(([, { kind }]) => kind !== 'sequence')
    .map(([column, { kind }]) => [column, valueIn(column, kind)] as const);
  await sql`insert into ${sql.table(name)} (${sql.join(row.map(([column]) => sql.ref(column)))})
    values (${sql.join(row.map(([, value]) => value))})`.execute(db);
};
const rowsOf = async (name: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  (await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(db)).rows;

test('some tables end with their age, and each says how old it may be', () => {
  const day = 86_400_000;
  expect(Object.fromEntries(tables.map(({ name, past }) => [name, past]))).toEqual({
    approvals: { ended_at: 400 * day },
    diagnoses: { at: 90 * day },
    xks_latency: { minute: 8 * day },
    idempotency_keys: { created_at: day },
    notifications: { resolved_at: 90 * day },
    notification_events: { at: 90 * day },
    sessions: { expires_at: 0, used_at: 'the idle time of sessions' },
    sign_in_attempts: { expires_at: 0 },
    sign_in_failures: { failed_at: 2 * day },
    snapshot_openings: { expires_at: 0 },
    tde_requests: { at: repeatMs },
  });
});

test.each(tables)('$name: what is too old goes, and nothing else', async ({ name, table, past, unitMs = 1 }) => {
  const ages = Object.entries(past).map(([column, age]) => [column, typeof age === 'number' ? age : idleMs] as const);
  const at = (over?: string): Readonly<Record<string, number>> =>
    Object.fromEntries(
      ages.map(([column, age]) => [column, Math.floor((now - age) / unitMs) + (column === over ? 0 : 1)]),
    );
  await insert(name, table, at());
  for (const [column] of ages) await insert(name, table, at(column));
  expect(await rowsOf(name)).toHaveLength(1 + ages.length);
  await prune();
  expect(await rowsOf(name)).toMatchObject([at()]);
});

test('the key records of a row that goes are wiped; those of others stay', async () => {
  const opening = async (expiresAt: number): Promise<string> => {
    await insert('snapshot_openings', declared.get('snapshot_openings') as Declaration, { expires_at: expiresAt });
    const id = String((await rowsOf('snapshot_openings')).at(-1)?.id);
    const place = { object_id: id, version: 1, class: 'snapshot-opening', tenant_id: serviceTenantId };
    const record = { ...place, epoch: 1, attributes: '', record: Buffer.of(7) };
    await db.insertInto('key_records').values(record).execute();
    return id;
  };
  await opening(now);
  const left = await opening(now + 1);
  await prune();
  expect((await rowsOf('key_records')).filter(({ record }) => record !== null)).toMatchObject([{ object_id: left }]);
});
