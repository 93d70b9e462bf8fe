// Whether the database has the schema that is declared, and nothing beside it that acts in the service's transactions. Its owner can add a trigger, a
// rule or a default: that would write in a unit of work what no person asked for. Tables of others are not the service's business.

import { type Kysely, sql } from 'kysely';
import type { Difference } from '../domain/difference.ts';
import { type Schema, tables } from './schema.ts';
import type { ColumnKind, TableDeclaration } from './tables/table.ts';

/** How a database lists its schema. */
export interface SchemaList {
  /** The name of a type of columns in the list. */
  readonly typeNames: { readonly [Kind in ColumnKind]: string };
  /** The default of a column of the kind `sequence`, if it has one. */
  readonly sequence?: (table: string, column: string) => string;
  /**
   * A statement that answers `place`, the table, and `line`, as `expectedLines` has them. Of what acts in a transaction that writes to the table, other
   * lines; `place` is null where it acts in every transaction.
   */
  readonly list: string;
}

const declared = Object.entries<TableDeclaration>(tables);
const isDeclared: ReadonlySet<string> = new Set(declared.map(([name]) => name));
/** A default that is a value, and no call of a function. */
const constant = /^default \S+ \(?(-?\d+|'[^']*')(::[a-z ]+)?\)?$/;

const expectedLines = ({ typeNames, sequence }: SchemaList): readonly string[] =>
  declared.flatMap(([table, { columns, indexes = [] }]) => [
    ...Object.entries(columns).flatMap(([name, { kind, of }]) => [
      `column ${table}.${name} ${typeNames[kind]}`,
      ...(of === undefined ? [] : [`reference ${table}.${name} to ${of}`]),
      ...(kind === 'sequence' && sequence !== undefined ? [`default ${table}.${name} ${sequence(table, name)}`] : []),
    ]),
    ...indexes.map(({ name }) => `index ${table}.${name}`),
  ]);

/** Empty: it is the declared one. */
export const compareSchema = async (db: Kysely<Schema>, schema: SchemaList): Promise<readonly Difference[]> => {
  const expected = new Set(expectedLines(schema));
  const { rows } = await sql<{ readonly place: string | null; readonly line: string }>`${sql.raw(schema.list)}`.execute(
    db,
  );
  const found = new Set(
    rows
      .filter(({ place, line }) => (place === null || isDeclared.has(place)) && !constant.test(line))
      .map(({ line }) => line),
  );
  const where = { foundIn: 'its schema', expectedIn: 'the declaration of its tables' };
  return [
    ...[...found]
      .filter((line) => !expected.has(line))
      .map((line) => ({ what: line, found: 'there', expected: 'none', ...where })),
    ...[...expected]
      .filter((line) => !found.has(line))
      .map((line) => ({ what: line, found: 'none', expected: 'there', ...where })),
  ].toSorted((a, b) => a.what.localeCompare(b.what));
};
