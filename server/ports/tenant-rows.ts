// A tenant's rows as they are stored, table by table, for snapshots and restores. Entities do not matter here, only that
// nothing is lost and that every row gets its authentication code again.

import type { Integrity } from '../domain/vault.ts';
import type { StoredRecord } from './records.ts';
import type { SnapshotRow } from './snapshot-archive.ts';

/** In an order in which each table comes after those that it refers to. */
export const tenantTables = [
  'vaults',
  'tde_groups',
  'tde_applications',
  'access_guids',
  'instances',
  'keys',
  'key_versions',
  'key_bindings',
  'tde_objects',
  'endpoints',
  'endpoint_credentials',
  'external_key_stores',
] as const;
export type TenantTable = (typeof tenantTables)[number];
/** Those that are found by their key's id, and come with their key. */
export const keyTables = ['key_versions', 'key_bindings'] as const satisfies TenantTable[];

export interface TenantRow {
  readonly row: SnapshotRow;
  readonly integrity: Integrity;
}

export interface TenantRows {
  /** Every column that a snapshot carries. */
  columns(table: TenantTable): readonly string[];
  /** Those of them whose change is a change: the others are marks of use. */
  policy(table: TenantTable): readonly string[];
  /** By id; `after` is the last id of the page before. Not for `keyTables`. */
  page(table: TenantTable, tenantId: string, after: string | undefined, limit: number): Promise<readonly TenantRow[]>;
  /** By id; of `keyTables`, by the key's id. */
  find(table: TenantTable, ids: readonly string[]): Promise<readonly TenantRow[]>;
  /** Keys and other token objects that were destroyed after this time, of every owner. */
  destroyedSince(at: number): Promise<readonly string[]>;
  count(table: TenantTable, tenantId: string): Promise<number>;
  /** Inserts, or replaces what is policy, with fresh authentication codes; a tampered row gets no valid one. */
  put(table: TenantTable, rows: readonly TenantRow[]): Promise<void>;
  /** Every record of these objects that is not wiped. */
  records(objectIds: readonly string[]): Promise<readonly StoredRecord[]>;
  putRecords(records: readonly StoredRecord[]): Promise<void>;
  /** Ids of objects that are not in their application's group. */
  strays(
    tenantId: string,
  ): Promise<readonly { readonly id: string; readonly groupId: string; readonly vaultId: string }[]>;
  /** Names that exist twice where they must be unique. */
  doubles(tenantId: string): Promise<readonly { readonly what: string; readonly name: string }[]>;
  /** No handle up to this one will be assigned again. */
  reserveHandles(last: number): Promise<void>;
  /** Which of these handles are in use. */
  takenHandles(handles: readonly number[]): Promise<readonly number[]>;
}
