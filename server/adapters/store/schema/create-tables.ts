// The SQL that creates the declared tables (schema.ts), for every dialect.

import {
  type ColumnDataType,
  type ColumnDefinitionBuilder,
  type CreateTableBuilder,
  type Kysely,
  type RawBuilder,
  sql,
} from 'kysely';
import { tables } from './schema.ts';
import type { Column, ColumnKind, Index, TableDeclaration } from './tables/table.ts';

// biome-ignore lint/suspicious/noExplicitAny: Kysely's own type for a database of which no schema is known yet
type Untyped = Kysely<any>;

/** Where dialects differ. */
export interface ColumnKinds {
  /** Raw bytes. */
  readonly bytes: ColumnDataType;
  /** 64-bit integer. */
  readonly long: ColumnDataType;
  /**
   * Text that compares by its bytes: an order of a language changes with the operating system, and
   * an index in such an order then misses rows, a unique one too.
   */
  readonly text: RawBuilder<unknown>;
  /** A number that grows with every row and is never used twice. */
  readonly sequence: {
    readonly type: ColumnDataType;
    readonly define: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder;
  };
  /** Makes every column of text of these tables one that compares by its bytes. */
  readonly compareBytewise: (db: Untyped, tables: readonly string[]) => Promise<void>;
  /** Makes a database that plans by statistics also collect them for this expression of a table. */
  readonly count: (db: Untyped, name: string, table: string, expression: RawBuilder<unknown>) => Promise<void>;
}

const typeOf = (kind: ColumnKind, kinds: ColumnKinds): ColumnDataType | RawBuilder<unknown> => {
  switch (kind) {
    case 'integer':
      return kind;
    case 'double':
      return 'double precision';
    case 'sequence':
      return kinds.sequence.type;
    case 'text':
    case 'long':
    case 'bytes':
      return kinds[kind];
  }
};

const define =
  (column: Column<unknown>, { sequence }: ColumnKinds) =>
  (builder: ColumnDefinitionBuilder): ColumnDefinitionBuilder => {
    if (column.kind === 'sequence') return sequence.define(builder);
    let defined = builder;
    if (column.key) defined = defined.primaryKey();
    else if (!column.null) defined = defined.notNull();
    if (column.unique) defined = defined.unique();
    if (column.of !== undefined) defined = defined.references(`${column.of}.id`);
    return column.default === undefined ? defined : defined.defaultTo(column.default);
  };

const createIndex = async (db: Untyped, table: string, index: Index): Promise<void> => {
  let builder = db.schema.createIndex(index.name).on(table);
  if (index.unique) builder = builder.unique();
  const indexed =
    'columns' in index ? builder.columns([...index.columns]) : builder.expression(sql.raw(index.expression));
  await (index.where === undefined ? indexed : indexed.where(sql.raw<boolean>(index.where))).execute();
};

const createTable = async (
  db: Untyped,
  kinds: ColumnKinds,
  name: string,
  declared: TableDeclaration,
): Promise<void> => {
  const { columns, primaryKey, unique, indexes = [], plans = {}, rows } = declared;
  let builder: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const [column, of] of Object.entries(columns))
    builder = builder.addColumn(column, typeOf(of.kind, kinds), define(of, kinds));
  if (primaryKey !== undefined) builder = builder.addPrimaryKeyConstraint(primaryKey.name, [...primaryKey.columns]);
  if (unique !== undefined) builder = builder.addUniqueConstraint(unique.name, [...unique.columns]);
  await builder.execute();
  for (const index of indexes) await createIndex(db, name, index);
  for (const [own, expression] of Object.entries(plans)) await kinds.count(db, own, name, sql.raw(expression));
  if (typeof rows === 'function') await db.insertInto(name).values(rows()).execute();
};

/** In an empty database. */
export const createTables = async (db: Untyped, kinds: ColumnKinds): Promise<void> => {
  for (const [name, declared] of Object.entries<TableDeclaration>(tables)) await createTable(db, kinds, name, declared);
};
