// A tenant's rows as they are stored, table by table, for snapshots and restores. Entities do not matter here, only that
// nothing is lost and that every row gets its authentication code again.

import type { Integrity } from '../domain/vault.ts';
import type { OwnedRecord, RecordClass, RecordOwner } from './records.ts';
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

/** Where a token object belongs, and the key of the same id. */
export interface Place {
  readonly id: string;
  readonly handle: number;
  readonly groupId: string;
  readonly vaultId: string;
}

export interface TenantRows {
  /** Every column that a snapshot carries. */
  columns(table: TenantTable): readonly string[];
  /** Those of them whose change is a change: the others are marks of use. */
  policy(table: TenantTable): readonly string[];
  /** Columns that say which row of another table is meant, and of which table. */
  references(table: TenantTable): ReadonlyMap<string, TenantTable>;
  /** Columns that never change after a row was made. */
  fixed(table: TenantTable): readonly string[];
  /** By id; `after` is the last id of the page before. Not for `keyTables`. */
  page(table: TenantTable, tenantId: string, after: string | undefined, limit: number): Promise<readonly TenantRow[]>;
  /** By id; of `keyTables`, by the key's id. */
  find(table: TenantTable, ids: readonly string[]): Promise<readonly TenantRow[]>;
  /** Keys and other token objects that were destroyed after this time, of every owner: rows that the service wrote. */
  destroyedSince(at: number): Promise<readonly string[]>;
  /** The same, of these ids, whenever that was. */
  destroyedAmong(ids: readonly string[]): Promise<ReadonlySet<string>>;
  count(table: TenantTable, tenantId: string): Promise<number>;
  /** Inserts, or replaces what is policy, with fresh authentication codes; a tampered row gets no valid one. */
  put(table: TenantTable, rows: readonly TenantRow[]): Promise<void>;
  /** The same, without rows of other tenants. */
  findIn(table: TenantTable, tenantId: string, ids: readonly string[]): Promise<readonly TenantRow[]>;
  /** Classes of the records that rows of a table own. */
  recordClasses(table: TenantTable): readonly RecordClass[];
  /** Of rows of this tenant, by their ids. A row that was changed from outside owns nothing. */
  owners(table: TenantTable, tenantId: string, rows: readonly TenantRow[]): ReadonlyMap<string, RecordOwner>;
  /** Every record that is not wiped of these owners, which are of one table and tenant. */
  recordsOf(owners: readonly RecordOwner[]): Promise<readonly OwnedRecord[]>;
  /** Objects that are not in their application's group, with the place that they should have. */
  strays(tenantId: string): Promise<readonly Place[]>;
  /**
   * Moves objects with their keys. Rows get fresh authentication codes; one that was changed from
   * outside gets no valid one. Answers whether every row was sound.
   */
  place(places: readonly Place[]): Promise<boolean>;
  /** Live vaults that share a name, and handles of live key objects that share a label in a group: candidates, of which the rules decide. */
  namesakes(tenantId: string): Promise<{ readonly vaults: readonly string[]; readonly handles: readonly number[] }>;
  /** No handle up to this one will be assigned again. */
  reserveHandles(last: number): Promise<void>;
  /** Which of these handles are in use. */
  takenHandles(handles: readonly number[]): Promise<readonly number[]>;
}
