// Whether the database has the schema that is declared, and nothing beside it that acts in the
// service's transactions. Its owner can add a trigger, a rule or a default: that would write in a
// unit of work what no person asked for. An index or a constraint counts with what it says, not by
// its name: an expression calls a function, and a value that is not unique can be there twice.
// Tables of others are not the service's business.

import { type Kysely, sql } from 'kysely';
import type { Difference } from '../../../domain/difference.ts';
import { type Schema, tables } from './schema.ts';
import type { ColumnKind, TableDeclaration } from './tables/table.ts';

/** How a database lists its schema. */
export interface SchemaList {
  /** The name of a type of columns in the list. */
  readonly typeNames: { readonly [Kind in ColumnKind]: string };
  /** Whether the list calls a column not null that is a primary key of its own. */
  readonly keysAreNotNull: boolean;
  /** The default of a column of the kind `sequence`. */
  readonly sequence: (table: string, column: string) => string;
  /**
   * A statement that answers `place`, the table, and `line`, as `expectedLines` has them before
   * `inOneForm`. Of what acts in a transaction that writes to the table, other lines; `place` is
   * null where it acts in every transaction.
   */
  readonly list: string;
  /** A line of the list where it is another one; undefined: it says nothing. */
  readonly read?: (line: string) => string | undefined;
}

const declared = Object.entries<TableDeclaration>(tables);
const isDeclared: ReadonlySet<string> = new Set(declared.map(([name]) => name));

/**
 * What databases write in ways of their own: names, casts and parentheses. No two declared lines
 * are the same without them. A cast to a type that is not the database's own calls a function, and
 * a name that needs its quotation marks is another name: both stay.
 */
const inOneForm = (line: string): string =>
  line
    .replaceAll(/"([^"]*)"/g, (name, own: string) => (/^[a-z0-9_]*$/.test(own) ? own : `quoted ${name}`))
    .toLowerCase()
    .replaceAll(/::(text|bigint|integer|double precision|bytea|regclass)\b(?!\[)/g, '')
    .replaceAll('!=', '<>')
    .replaceAll(/["()]/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?, ?/g, ', ')
    .trim();

const expectedLines = ({ typeNames, keysAreNotNull, sequence }: SchemaList): readonly string[] =>
  declared.flatMap(([table, { columns, indexes = [], primaryKey, unique }]) => [
    ...Object.entries(columns).flatMap(([name, { kind, of, key, null: isNull, unique: isUnique, default: value }]) => {
      const isKey = key === true || kind === 'sequence';
      return [
        `column ${table}.${name} ${typeNames[kind]}${(isKey ? keysAreNotNull : isNull !== true) ? ' not null' : ''}`,
        ...(of === undefined ? [] : [`reference ${table}.${name} to ${of} id`]),
        ...(kind === 'sequence' ? [`default ${table}.${name} ${sequence(table, name)}`] : []),
        ...(value === undefined
          ? []
          : [`default ${table}.${name} ${typeof value === 'number' ? value : `'${value}'`}`]),
        ...(isKey ? [`primary key ${table} ${name}`] : []),
        ...(isUnique === true ? [`unique ${table} ${name}`] : []),
      ];
    }),
    ...(primaryKey === undefined ? [] : [`primary key ${table} ${primaryKey.columns.join(', ')}`]),
    ...(unique === undefined ? [] : [`unique ${table} ${unique.columns.join(', ')}`]),
    ...indexes.map((index) => {
      const of = 'columns' in index ? index.columns.join(', ') : index.expression;
      const where = index.where === undefined ? '' : ` where ${index.where}`;
      return `index ${table}.${index.name} ${index.unique === true ? 'unique ' : ''}${of}${where}`;
    }),
  ]);

/** Empty: it is the declared one. */
export const compareSchema = async (db: Kysely<Schema>, schema: SchemaList): Promise<readonly Difference[]> => {
  const expected = new Set(expectedLines(schema).map(inOneForm));
  const { rows } = await sql<{ readonly place: string | null; readonly line: string }>`${sql.raw(schema.list)}`.execute(
    db,
  );
  const found = new Set(
    rows
      .filter(({ place }) => place === null || isDeclared.has(place))
      .flatMap(({ line }) => (schema.read === undefined ? line : schema.read(line)) ?? [])
      .map(inOneForm),
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
