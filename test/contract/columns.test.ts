// Every column of every table is accounted for, on each store as its migrations leave it: whether a row's authentication code covers
// it, whether snapshots carry it. A new column fails here until somebody has decided both.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../server/base/clock.ts';
import type { Store } from '../../server/ports/store.ts';
import { tenantTables } from '../../server/ports/tenant-rows.ts';
import { policyColumns } from '../../server/store/row-codes.ts';
import { openPostgresStore, openStore } from '../../server/store/store.ts';
import { type PostgresServer, startPostgres } from '../support/postgresql.ts';

type Columns = readonly string[];
type Tables = ReadonlyMap<string, Columns>;

/** Columns beside a row's authentication code, and why they may be: whoever writes them gets nothing by it. */
const unprotected: Readonly<Record<string, readonly [why: string, ...columns: Columns]>> = {
  access_guids: ['a mark of use', 'last_used_at'],
  api_tokens: ['a mark of use', 'last_used_at'],
  endpoint_credentials: ['a mark of use', 'last_used_at'],
  endpoints: ['a mark of use', 'last_used_at'],
  external_key_stores: ['what was seen of the cloud, and when', 'connection', 'looked_at'],
  keys: ['marks of use', 'first_used_at', 'last_used_at'],
  sessions: ['a mark of use, which ends it', 'used_at'],
  snapshots: [
    'what is known of the file, which is signed',
    ...['size', 'counts', 'verification', 'verified_at', 'failure'],
  ],
  tde_objects: ['the content is a record that authenticates itself', 'content'],
  user_factors: ['a mark of use', 'last_used_at'],
  users: ['a mark of use', 'last_sign_in_at'],
};

/** Tables whose rows have no authentication code, and why. */
const plain: Readonly<Record<string, string>> = {
  audit_checkpoints: 'signed',
  audit_events: 'leaves of the tree that checkpoints sign',
  audit_head: 'the size of the tree that checkpoints sign',
  audit_nodes: 'nodes of the tree that checkpoints sign',
  diagnoses: 'results for people',
  instances: 'marks of use',
  key_bindings: 'what a ciphertext is bound to: another value opens nothing',
  key_records: 'records authenticate themselves, and where they belong',
  key_tags: 'where the list of keys of a tag looks: made of what stands in other rows',
  key_versions: 'times; the key says how many there are',
  kysely_migration: "the schema's own",
  kysely_migration_lock: "the schema's own",
  node_changes: 'what is read again',
  node_head: 'what is read again',
  node_duties: 'changed in place, once a second: which node does the work',
  nodes: 'a node proves by a record that it has the root key',
  notification_events: 'for people',
  notifications: 'for people',
  request_log: 'figures, for people',
  request_log_dropped: 'figures, for people',
  root_parcels: 'sealed, and bound to the old root key',
  root_turns: 'nodes prove what they have by records',
  row_set: 'has an authentication code of its own',
  runbook_runs: 'for people',
  runbook_ticks: 'for people',
  search_terms: 'where a search looks: made of what stands in other rows',
  settings: 'counters and what work has come to',
  sign_in_attempts: 'digests of what only the other party has',
  sign_in_failures: 'counters',
  snapshot_exports: 'for people; the audit log has them',
  snapshot_openings: 'bound into the record of its key',
  tde_requests: 'handles of objects, which are looked up under the rules of who asks',
  tenant_keks: 'records authenticate themselves',
  xks_latency: 'figures',
};

/** Tables with rows of a tenant that its snapshots do not carry, and why. */
const notCarried: Readonly<Record<string, string>> = {
  api_tokens: "the service's own: they do not come back with a tenant",
  approvals: 'requests of their day',
  audit_events: "the log is one, and the service's own",
  diagnoses: 'results of their day',
  idempotency_keys: 'requests of their day',
  key_records: 'carried as keys, sealed to recovery keys',
  key_tags: 'made of other rows, and anew with them',
  notification_events: 'of their day',
  notifications: 'of their day',
  request_log: 'figures of their day',
  runbook_runs: 'notes of their day',
  runbook_ticks: 'notes of their day',
  search_terms: 'made of other rows, and anew with them',
  sessions: "the service's own: they do not come back with a tenant",
  sign_in_attempts: 'of their minute',
  sign_in_failures: 'of their day',
  snapshot_exports: 'about snapshots',
  snapshot_openings: 'of their ten minutes',
  snapshots: 'about snapshots',
  tde_requests: 'requests of their hour',
  tenant_keks: 'a tenant that is restored gets a fresh one',
  tenants: 'restored into one that is there, or made for it',
  user_factors: "the service's own: they do not come back with a tenant",
  users: "the service's own: they do not come back with a tenant",
  xks_latency: 'figures of their day',
};
/** Tables that are no tenant's. */
const ofNoTenant: Columns = [
  ...['audit_checkpoints', 'audit_head', 'audit_nodes', 'kysely_migration', 'kysely_migration_lock', 'node_changes'],
  ...[
    'request_log_dropped',
    'node_duties',
    'node_head',
    'nodes',
    'recovery_keys',
    'root_parcels',
    'root_turns',
    'row_set',
    'settings',
  ],
];

let folder: string;
let postgres: PostgresServer;
const stores = new Map<string, { readonly store: Store; readonly tables: Tables }>();
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dke-columns-'));
  const surroundings = {
    clock: systemClock,
    authenticateRow: () => '',
    onFatal: (error: Error) => {
      throw error;
    },
  };
  const path = join(folder, 'dke.db');
  const sqlite = await openStore({ path, ...surroundings });
  const database = new DatabaseSync(path, { readOnly: true });
  const found = database
    .prepare(
      `select t.name as place, c.name as own from sqlite_master t, pragma_table_info(t.name) c
       where t.type = 'table' and t.name not like 'sqlite%'`,
    )
    .all();
  database.close();
  const group = (rows: readonly (readonly [string, string])[]): Tables =>
    new Map([...Map.groupBy(rows, ([table]) => table)].map(([table, of]) => [table, of.map(([, own]) => own)]));
  stores.set('sqlite', { store: sqlite, tables: group(found.map((row) => [String(row.place), String(row.own)])) });

  postgres = await startPostgres();
  const place = postgres.createDatabase('columns');
  const other = await openPostgresStore({
    postgres: { ...place, password: undefined, ca: undefined, readers: 1 },
    ...surroundings,
  });
  const listed = postgres.run(
    place.database,
    "select table_name || ' ' || column_name from information_schema.columns where table_schema = current_schema()",
  );
  const pairs = listed.split('\n').map((line) => line.split(' '));
  stores.set('postgresql', { store: other, tables: group(pairs.map(([table = '', own = '']) => [table, own])) });
});
afterAll(async () => {
  for (const { store } of stores.values()) await store.close();
  await postgres?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const policy: Readonly<Record<string, Columns>> = policyColumns;
const ofTheCode: Columns = ['row_mac', 'row_version'];
const sorted = (columns: Iterable<string>): Columns => [...columns].toSorted();

test('both stores have the same tables and columns', () => {
  const plainly = (name: string) =>
    [...(stores.get(name)?.tables ?? [])].map(([table, own]) => [table, sorted(own)] as const).toSorted();
  expect(plainly('sqlite').length).toBeGreaterThan(30);
  expect(plainly('sqlite')).toEqual(plainly('postgresql'));
});

describe.each(['sqlite', 'postgresql'])('on %s', (name) => {
  const at = () => {
    const found = stores.get(name);
    if (found === undefined) throw new Error('the store was not opened');
    return found;
  };

  test('every table is authenticated, or says why not', () => {
    expect(sorted([...Object.keys(policy), ...Object.keys(plain)])).toEqual(sorted(at().tables.keys()));
  });

  test.each(Object.keys(policy))('each column of %s is under its authentication code, or says why not', (table) => {
    const [, ...beside] = unprotected[table] ?? [''];
    expect(sorted([...(policy[table] ?? []), ...beside, ...ofTheCode])).toEqual(sorted(at().tables.get(table) ?? []));
  });

  test('every table is carried by snapshots, or says why not', () => {
    const known = [...tenantTables, ...Object.keys(notCarried), ...ofNoTenant];
    expect(sorted(known)).toEqual(sorted(at().tables.keys()));
  });

  test.each(tenantTables)('each column of %s is carried by snapshots', (table) => {
    const { store, tables } = at();
    const own = (tables.get(table) ?? []).filter((column) => !ofTheCode.includes(column));
    expect(sorted(store.read.tenantRows.columns(table))).toEqual(sorted(own));
    // What is policy for the row is a change for a snapshot.
    for (const column of policy[table] ?? []) expect(store.read.tenantRows.policy(table)).toContain(column);
  });
});
