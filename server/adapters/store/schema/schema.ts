// All tables, in an order in which each comes after those that it refers to, the types of their
// rows, and what the declarations say where tables are not known by name.

import { type RawBuilder, sql } from 'kysely';

import { apiTokensTables } from './tables/api-tokens-table.ts';
import { applicationsTables } from './tables/applications-table.ts';
import { approvalsTables } from './tables/approvals-table.ts';
import { auditTables } from './tables/audit-table.ts';
import { endpointsTables } from './tables/endpoints-table.ts';
import { externalKeyStoresTables } from './tables/external-key-stores-table.ts';
import { idempotencyTables } from './tables/idempotency-table.ts';
import { keysTables } from './tables/keys-table.ts';
import { nodesTables } from './tables/nodes-table.ts';
import { notificationsTables } from './tables/notifications-table.ts';
import { peopleTables } from './tables/people-table.ts';
import { requestLogTables } from './tables/request-log-table.ts';
import { rowSetTables } from './tables/row-set-table.ts';
import { runbooksTables } from './tables/runbooks-table.ts';
import { searchTables } from './tables/search-table.ts';
import { settingsTables } from './tables/settings-table.ts';
import { snapshotsTables } from './tables/snapshots-table.ts';
import type { TableDeclaration, TableOf } from './tables/table.ts';
import { tenantsTables } from './tables/tenants-table.ts';
import { tokenObjectsTables } from './tables/token-objects-table.ts';
import { vaultsTables } from './tables/vaults-table.ts';

export const tables = {
  ...settingsTables,
  ...tenantsTables,
  ...vaultsTables,
  ...applicationsTables,
  ...keysTables,
  ...tokenObjectsTables,
  ...endpointsTables,
  ...externalKeyStoresTables,
  ...apiTokensTables,
  ...peopleTables,
  ...approvalsTables,
  ...auditTables,
  ...requestLogTables,
  ...snapshotsTables,
  ...runbooksTables,
  ...notificationsTables,
  ...nodesTables,
  ...idempotencyTables,
  ...rowSetTables,
  ...searchTables,
};
type Tables = typeof tables;
type TableName = keyof Tables;
/**
 * The tables as Kysely sees them. Portable types only: text, integers below 2^53, bytes. Flags are
 * 0 or 1, lists and details canonical JSON, instants milliseconds since the epoch.
 */
export type Schema = { [T in TableName]: TableOf<Tables[T]> };
/** A declaration of either kind. */
export type Declaration = TableDeclaration & { readonly code?: readonly string[] };
export const declared: ReadonlyMap<string, Declaration> = new Map(Object.entries<Declaration>(tables));

/** Whether rows own keys and stay behind when these are destroyed: they have the time of that. */
export const leavesTombstones = ({ columns, records }: Declaration): boolean =>
  records !== 'none' && columns.destroyed_at !== undefined;

/**
 * The condition that a row of the table is of this tenant: it says so, or refers to a row that
 * does.
 */
export const ownedBy = (table: string, tenantId: string): RawBuilder<unknown> => {
  const { columns = {} } = declared.get(table) ?? {};
  if (columns.tenant_id !== undefined) return sql`tenant_id = ${tenantId}`;
  for (const [column, { of }] of Object.entries(columns))
    if (of !== undefined && declared.get(of)?.columns.tenant_id !== undefined)
      return sql`${sql.ref(column)} in (select id from ${sql.table(of)} where tenant_id = ${tenantId})`;
  throw new Error(`rows of ${table} are of no tenant`);
};

/** The tables whose declaration says this. */
type Declared<What> = { [T in TableName]: Tables[T] extends What ? T : never }[TableName];
/** Tables whose rows have an authentication code (row-codes.ts). */
export type PolicyTable = Declared<{ readonly code: readonly string[] }>;
/** Tables whose rows search finds. */
export type SearchedTable = Declared<{ readonly search: { readonly kind: string } }>;
type Counted = Declared<{ readonly statistics: { readonly counted: string } }>;

declare module '../../../ports/tables.ts' {
  interface TablesBy {
    /** Snapshots carry their rows. */
    readonly carried: Declared<{ readonly snapshots: { readonly marks: readonly string[] } }>;
    /** Their rows own key records. */
    readonly owning: Declared<{ readonly records: { readonly classes: readonly string[] } }>;
    /** A purge changes or ends their rows in a step of its own. */
    readonly stepped: Declared<{ readonly purge: 'by a step' }>;
    /** Other nodes hear of changes of their rows. */
    readonly told: Declared<{ readonly changes: 'told' }>;
    /** Kinds of things that search finds by their terms. */
    readonly searched: Tables[SearchedTable]['search']['kind'];
    /** The words for what a tenant contains, where the tables have some of it. */
    readonly counted: Tables[Counted]['statistics']['counted'];
  }
}
