// What one table is, declared once: its columns and indexes, which columns the authentication code
// of a row leaves out (row-codes.ts), and what becomes of its rows: in snapshots and restores, in
// copies of the store, in a purge, with age, in search and in figures. The other files of this
// folder declare the tables, one file for each aggregate. No other file lists tables: the types of
// rows, the SQL and every list follow from the declarations, and one that leaves something out does
// not compile. Where a table has nothing of a kind, it says so, and why.

import type { Generated, Selectable } from 'kysely';
import type { SearchField, SearchKind } from '../../../../domain/search-terms.ts';
import type { RecordClass } from '../../../../ports/key-record.ts';
import type { Reactivates } from '../../../../ports/tenant-rows.ts';

/**
 * `text` compares by its bytes. `long`: 64 bits. `sequence`: grows with every row and is never used
 * twice.
 */
export type ColumnKind = 'text' | 'integer' | 'long' | 'double' | 'bytes' | 'sequence';

interface Options {
  readonly null?: true;
  readonly key?: true;
  readonly unique?: true;
  /** The table to whose `id` it refers. */
  readonly of?: string;
  /** What it names, where no row of one table has to be there. */
  readonly to?: string;
  readonly default?: string | number;
}

export interface Column<Value> extends Options {
  readonly kind: ColumnKind;
  /** For the type only. */
  readonly value?: Value;
}
export type Columns = { readonly [column: string]: Column<unknown> };
type ColumnOf<C> = keyof C & string;

const column =
  <Value>(kind: ColumnKind) =>
  <const O extends Options = Record<never, never>>(
    options?: O,
  ): Column<O extends { readonly null: true } ? Value | null : Value> & Pick<O, keyof O & ('of' | 'to')> =>
    ({ kind, ...options }) as never;

export const text = column<string>('text');
export const integer = column<number>('integer');
export const long = column<number>('long');
export const double = column<number>('double');
export const bytes = column<Uint8Array>('bytes');
export const sequence = column<Generated<number>>('sequence');

/**
 * Columns of every policy table: the authentication code of the row, and the version of the row set
 * in which it was written (row-set-table.ts).
 */
export const rowMac = text();
export const rowVersion = long({ default: 0 });
type CodeColumns = { readonly row_mac: typeof rowMac; readonly row_version: typeof rowVersion };

/**
 * Each column with the id of something says of which table, or what it names: a restore maps the
 * former.
 */
type References<C extends Columns> = {
  readonly [Name in ColumnOf<C> as Name extends `${string}_id` ? Name : never]:
    | { readonly of: string }
    | { readonly to: string };
};

interface Constraint<Name> {
  readonly name: string;
  readonly columns: readonly Name[];
}
export type Index<Name extends string = string> = {
  readonly name: string;
  readonly unique?: true;
  /** SQL that both databases understand. */
  readonly where?: string;
} & ({ readonly columns: readonly Name[] } | { readonly expression: string });

/**
 * What the purge of a tenant does with the rows: changes them in a step of its own
 * (operations/tenants/purge-steps.ts does not compile without it), removes them, found by a column
 * or by the row of `of` that the column names, or keeps them, and why.
 */
type Purge<C extends Columns> =
  | 'by a step'
  | { readonly removed: ColumnOf<C>; readonly of?: 'endpoints' | 'tde_applications' }
  | { readonly kept: string };

/**
 * Whether snapshots of a tenant carry the rows, and what a restore does with them. `marks`: columns
 * that record use, whose change is not a change of the row. `fixed`: columns that never change: a
 * snapshot that says otherwise is about another row, and is not restored. `beside`: whether a copy
 * of the tenant next to it has the rows, too. `existing`: what becomes of a row that is there
 * already and differs. `reactivates`: what of it decides who may use keys.
 */
type Snapshots<C extends Columns> =
  | {
      readonly marks: readonly ColumnOf<C>[];
      readonly fixed: readonly ColumnOf<C>[];
      readonly beside: 'copied' | { readonly not: string };
      readonly existing: 'replaced' | 'kept';
      readonly reactivates: Reactivates | { readonly nothing: string };
    }
  | { readonly without: string }
  | 'of no tenant';

/**
 * Which rows the clock removes: those of which one of the columns is so far in the past. The key
 * records that they own are wiped. `idsFrom`: ids begin with a time that is before that of the
 * column, so that an index finds them. `most`: at a time. `by`: something else removes them, not by
 * their age alone.
 */
type Pruned<C extends Columns> =
  | {
      readonly past: { readonly [Name in ColumnOf<C>]?: number | 'the idle time of sessions' };
      readonly unitMs?: number;
      readonly idsFrom?: 'an earlier time';
      readonly most?: number;
    }
  | { readonly by: string }
  | { readonly never: string };

/**
 * How search finds a row: by which columns, next to its id, as what kind of thing, and with which
 * state. `everywhere`: in every tenant at once. `deleted`: the state of those that no list shows.
 * `as`: it is found as the row that this column refers to.
 */
type Search<C extends Columns> =
  | {
      readonly kind: SearchKind;
      readonly terms: { readonly [Name in ColumnOf<C>]?: SearchField };
      readonly state: ((row: { readonly [column: string]: unknown }) => string | null) | null;
      readonly everywhere?: true;
      readonly deleted?: 'deleted';
    }
  | { readonly as: ColumnOf<C>; readonly by: ColumnOf<C>; readonly field: SearchField }
  | { readonly not: string };

/** The word for what a tenant contains, and the SQL that tells which rows are counted now. */
type Statistics = { readonly counted: string; readonly where: (now: number) => string } | { readonly none: string };

/**
 * Classes of the key records that the rows own: no other table's rows lead to them. `attributes`:
 * what they bind of a row that a snapshot carries; others are opened by their own operations only.
 * `each`: these rows have one record of each class, and others have none; null: what a row has
 * depends on other rows too. `tenant`: the column that says whose they are, or refers to a row that
 * does.
 */
type Records<C extends Columns> =
  | {
      readonly classes: readonly RecordClass[];
      readonly each: { readonly tenant: ColumnOf<C> | 'the service'; readonly where?: string } | null;
      readonly attributes?: (row: { readonly [column: string]: unknown }) => string;
    }
  | 'none';

/**
 * Whether other nodes hear of changes of the rows (changes.ts): they keep them in memory, or an
 * erasure run is due.
 */
type Changes = 'told' | { readonly not: string };

/**
 * What is declared of every table. Functions keep the literal types, from which lists of names
 * follow.
 */
interface Fates<
  P extends Purge<Columns>,
  S extends Snapshots<Columns>,
  F extends Search<Columns>,
  N extends Statistics,
  R extends Records<Columns>,
  H extends Changes,
> {
  readonly purge: P;
  readonly snapshots: S;
  readonly search: F;
  readonly statistics: N;
  readonly records: R;
  readonly changes: H;
}

interface Common<C extends Columns> {
  readonly columns: C;
  readonly primaryKey?: Constraint<ColumnOf<C>>;
  readonly unique?: Constraint<ColumnOf<C>>;
  /** In this order: SQLite prefers the last of several that serve a query equally well. */
  readonly indexes?: readonly Index<ColumnOf<C>>[];
  /**
   * Expressions whose values a database has to count before it can plan queries that compare them.
   */
  readonly plans?: { readonly [name: string]: string };
  /** Rows of a new database. */
  readonly rows?:
    | (() => readonly { readonly [column: string]: string | number }[])
    | 'written when the store is opened';
  readonly pruned: Pruned<C>;
  /** Whether a move of the store copies the rows, and the trial of a restore (scratch.ts). */
  readonly copied: 'with the store' | 'for trials, too' | { readonly not: string };
}

/** Milliseconds, in declarations of ages. */
export const day = 86_400_000;
/** The state that search shows of a thing that has a column for it. */
export const stateOf = (row: { readonly [column: string]: unknown }): string => String(row.state);

/** Rows of the service itself. */
export const ofNoTenant = {
  snapshots: 'of no tenant',
  purge: { kept: 'of no tenant' },
  search: { not: 'of no tenant' },
  statistics: { none: 'of no tenant' },
  records: 'none',
  copied: 'with the store',
  changes: { not: 'read at each use' },
} as const;
/** Notes, figures and links beside things, and what was made of their rows. */
export const besideThings = {
  search: { not: 'not a thing that people look for' },
  statistics: { none: 'not a thing that a tenant contains' },
  records: 'none',
  copied: 'with the store',
  changes: { not: 'read at each use' },
} as const;

/**
 * A table that decides who may do what. Each row has an authentication code over all columns but
 * those in `beside`, which has the reason why a person who changes one of them in the database
 * gains nothing. The order of the columns is part of its bytes: new ones come last.
 */
export const policyTable = <
  const C extends Columns & CodeColumns,
  const P extends Purge<C>,
  const S extends Snapshots<C>,
  const F extends Search<C>,
  const N extends Statistics,
  const R extends Records<C>,
  const H extends Changes,
>(
  table: Common<C> &
    Fates<P, S, F, N, R, H> & {
      readonly columns: References<C>;
      /** Where the bytes have another order than the columns. */
      readonly code?: readonly ColumnOf<C>[];
      /**
       * In the first layout of a code these columns are omitted where they are null, so that rows
       * from before them stay valid. `fits`: a value that the service writes there, and writes in
       * none of the others: a row of that layout whose value stands elsewhere is not accepted.
       */
      readonly codeWhenSet?: { readonly [Name in ColumnOf<C>]?: RegExp };
      /** Under the code of rows that carry a version only. */
      readonly codeSinceVersions?: readonly ColumnOf<C>[];
      /**
       * Columns that came later, by the layout that has them first: a row of an earlier layout has
       * none of them, so they are null there.
       */
      readonly codeSinceLayout?: { readonly [Name in ColumnOf<C>]?: 3 };
      /**
       * A column that came later and began as a copy of another one is in the text of the newest
       * layout only, and only where the two differ: rows from before it, whose copy the migration
       * made, stay valid.
       */
      readonly codeUnlessSame?: { readonly [Name in ColumnOf<C>]?: ColumnOf<C> };
      /**
       * Columns beside the code whose SHA-256 is in a column under it, in hexadecimal. Null there:
       * a row of an earlier version, or no value.
       */
      readonly digests?: { readonly [Name in ColumnOf<C>]?: ColumnOf<C> };
      readonly beside: { readonly [Name in ColumnOf<C>]?: string };
    },
): typeof table & { readonly code: readonly ColumnOf<C>[] } => {
  const others = new Set(['row_mac', 'row_version', ...Object.keys(table.beside)]);
  return { ...table, code: table.code ?? Object.keys(table.columns).filter((name) => !others.has(name)) };
};

/** A table whose rows have no authentication code, and why. */
export const plainTable = <
  const C extends Columns,
  const P extends Purge<C>,
  const S extends Snapshots<C>,
  const F extends Search<C>,
  const N extends Statistics,
  const R extends Records<C>,
  const H extends Changes,
>(
  table: Common<C> & Fates<P, S, F, N, R, H> & { readonly columns: References<C>; readonly unauthenticated: string },
): typeof table => table;

/** What is known of a table without its columns' names. */
export type TableDeclaration = Common<Columns> &
  Fates<Purge<Columns>, Snapshots<Columns>, Search<Columns>, Statistics, Records<Columns>, Changes>;

/** A row as Kysely sees it. */
export type TableOf<T extends { readonly columns: Columns }> = {
  [Name in keyof T['columns']]: T['columns'][Name] extends Column<infer Value> ? Value : never;
};
/** A row as it is read. */
export type RowOf<T extends { readonly columns: Columns }> = Selectable<TableOf<T>>;
