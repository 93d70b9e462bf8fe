// All tables, in an order in which each comes after those that it refers to, and the types of their rows.

import { apiTokensTables } from './tables/api-tokens.ts';
import { applicationsTables } from './tables/applications.ts';
import { approvalsTables } from './tables/approvals.ts';
import { auditTables } from './tables/audit.ts';
import { endpointsTables } from './tables/endpoints.ts';
import { externalKeyStoresTables } from './tables/external-key-stores.ts';
import { idempotencyTables } from './tables/idempotency.ts';
import { keysTables } from './tables/keys.ts';
import { nodesTables } from './tables/nodes.ts';
import { notificationsTables } from './tables/notifications.ts';
import { peopleTables } from './tables/people.ts';
import { requestLogTables } from './tables/request-log.ts';
import { rowSetTables } from './tables/row-set.ts';
import { runbooksTables } from './tables/runbooks.ts';
import { searchTables } from './tables/search.ts';
import { settingsTables } from './tables/settings.ts';
import { snapshotsTables } from './tables/snapshots.ts';
import type { TableOf } from './tables/table.ts';
import { tenantsTables } from './tables/tenants.ts';
import { tokenObjectsTables } from './tables/token-objects.ts';
import { vaultsTables } from './tables/vaults.ts';

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
 * The tables as Kysely sees them. Portable types only: text, integers below 2^53, bytes. Flags are 0 or 1, lists and details canonical JSON,
 * instants milliseconds since the epoch.
 */
export type Schema = { [T in TableName]: TableOf<Tables[T]> };
/** Tables whose rows a purge changes in a step of its own. */
export type SteppedTable = {
  [T in TableName]: Tables[T] extends { readonly purge: 'by a step' } ? T : never;
}[TableName];
/** Tables whose rows have an authentication code (row-codes.ts). */
export type PolicyTable = {
  [T in TableName]: Tables[T] extends { readonly code: readonly string[] } ? T : never;
}[TableName];
