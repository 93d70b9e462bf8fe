// A tenant's rows as they are stored, table by table, for snapshots and restores. Entities do not
// matter here, only that nothing is lost and that every row gets its authentication code again.

import type { Integrity } from '../domain/vault.ts';
import type { OwnedRecord, RecordClass, RecordOwner } from './key-record.ts';
import type { SnapshotRow } from './snapshot-archive.ts';
import type { TablesBy } from './tables.ts';

/** The tables whose rows snapshots carry. */
export type TenantTable = TablesBy['carried'];

/** What a restore creates, reactivates or changes of that which decides who may use keys. */
export interface Activated {
  readonly kind:
    | 'application'
    | 'access-guid'
    | 'endpoint'
    | 'credential'
    | 'vault'
    | 'key'
    | 'token-object'
    | 'dual-control';
  /** `changed`: its group, switches, settings, attributes or rule are those of before. */
  readonly change: 'created' | 'reactivated' | 'changed';
  readonly id: string;
  readonly name: string;
}

/**
 * What of a row that a restore puts decides who may use keys. `before`: the row that is there;
 * undefined: there is none. It is shown by a name, by the label of a token object, or by the name
 * of the application of this id.
 */
export type Reactivates = (
  row: SnapshotRow,
  before: SnapshotRow | undefined,
) => readonly (Pick<Activated, 'kind' | 'change'> &
  ({ readonly name: string } | { readonly label: string } | { readonly application: string }))[];

export const same = (one: SnapshotRow[string] | undefined, other: SnapshotRow[string] | undefined): boolean =>
  one instanceof Uint8Array && other instanceof Uint8Array
    ? Buffer.from(one).equals(Buffer.from(other))
    : (one ?? null) === (other ?? null);
export const differIn = (columns: readonly string[], one: SnapshotRow, other: SnapshotRow): boolean =>
  columns.some((column) => !same(one[column], other[column]));

/** What the declaration of a table says about its rows in snapshots. */
export interface CarriedTable {
  readonly name: TenantTable;
  /** Every column that a snapshot carries. */
  readonly columns: readonly string[];
  /** Columns whose change counts as a change of the row: the others are marks of use. */
  readonly policy: readonly string[];
  /** Columns that never change after a row was made. */
  readonly fixed: readonly string[];
  /** Columns that say which row of another table is meant, and of which table. */
  readonly references: ReadonlyMap<string, TenantTable>;
  /** Columns whose values no two rows of a tenant share. */
  readonly unshared: readonly string[];
  /** What makes a row unique; by the first one it is found. */
  readonly identity: readonly [string, ...string[]];
  /** The table with whose rows its own come, where they have no id. */
  readonly comesWith: TenantTable | undefined;
  /** Whether its rows own keys and stay behind, with a time, when these are destroyed. */
  readonly leavesTombstones: boolean;
  /** Classes of the records that its rows own. */
  readonly recordClasses: readonly RecordClass[];
  /** Whether a copy of a tenant next to it has the rows. */
  readonly isCopied: boolean;
  /** Whether a row of a snapshot takes the place of one that differs. */
  readonly isReplaced: boolean;
  readonly reactivates: Reactivates;
}

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
  /** In an order in which each table comes after those that it refers to. */
  tables(): readonly TenantTable[];
  of(table: TenantTable): CarriedTable;
  /**
   * Rows of the tenant, ordered by id; `after` is the last id of the page before. Not for tables
   * whose rows come with another table's.
   */
  page(table: TenantTable, tenantId: string, after: string | undefined, limit: number): Promise<readonly TenantRow[]>;
  /** Rows of any tenant whose first column of the identity is one of `ids`. */
  find(table: TenantTable, ids: readonly string[]): Promise<readonly TenantRow[]>;
  /**
   * Keys and other token objects that were destroyed after this time, of every owner: rows that the
   * service wrote.
   */
  destroyedSince(at: number): Promise<readonly string[]>;
  /**
   * Which of these ids are of keys or other token objects that were destroyed, at any time: only
   * rows that the service wrote.
   */
  destroyedAmong(ids: readonly string[]): Promise<ReadonlySet<string>>;
  count(table: TenantTable, tenantId: string): Promise<number>;
  /**
   * Inserts rows of a tenant, or replaces what is policy, with fresh authentication codes; a
   * tampered row gets no valid one. Throws for a row of another tenant, or in the place of one.
   */
  put(tenantId: string, table: TenantTable, rows: readonly TenantRow[]): Promise<void>;
  /** Like `find`, without rows of other tenants. */
  findIn(table: TenantTable, tenantId: string, ids: readonly string[]): Promise<readonly TenantRow[]>;
  /** Rows of the tenant whose column has one of these values. */
  findBy(
    table: TenantTable,
    tenantId: string,
    column: string,
    values: readonly string[],
  ): Promise<readonly TenantRow[]>;
  /**
   * Record owners of rows of this tenant, by the rows' ids. A row that was changed from outside
   * owns nothing.
   */
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
  /**
   * Live vaults that share a name, and handles of live key objects that share a label in a group:
   * candidates, of which the rules decide.
   */
  namesakes(tenantId: string): Promise<{ readonly vaults: readonly string[]; readonly handles: readonly number[] }>;
  /** No handle up to this one will be assigned again. */
  reserveHandles(last: number): Promise<void>;
  /** Which of these handles are in use. */
  takenHandles(handles: readonly number[]): Promise<readonly number[]>;
}
