// The authentication code of each policy row. The columns under it are those whose change from
// outside would change what a person or program may do; they are bound with the table's name under
// a key of the service. Use counters and last-use times are not policy.

import { canonicalJson } from '../../../base/bytes.ts';
import { contentDigest } from '../../../base/content-digest.ts';
import type { RowAuthenticator } from '../../../base/row-jobs.ts';
import { ServiceError } from '../../../base/service-error.ts';
import type { Integrity, Sound } from '../../../domain/vault.ts';
import { type PolicyTable, type Schema, tables } from '../schema/schema.ts';

/** Writing a row back would give it a fresh authentication code: a tampered one must not get it. */
export const refuseTampered = (entity: { readonly integrity: 'ok' | 'tampered' }): void => {
  if (entity.integrity !== 'ok')
    throw new ServiceError('key-tampered', 'the stored record was changed from outside', {
      hint: 'compare the database with a backup; the audit log has an alarm that names the record',
    });
};

/** A look-up for decisions: no other row leaves it than one whose code is right. */
export const soundOnly =
  <A extends readonly unknown[], T extends { readonly integrity: Integrity }>(
    stored: (...by: A) => Promise<T | undefined>,
    what: string,
    nameOf: (found: T) => string,
  ) =>
  async (...by: A): Promise<Sound<T> | undefined> => {
    const found = await stored(...by);
    if (found === undefined || found.integrity === 'ok') return found as Sound<T> | undefined;
    throw new ServiceError('key-tampered', `the stored ${what} ${nameOf(found)} was changed from outside`, {
      hint: 'compare the database with a backup; dke verify names every such row',
    });
  };

/** What `policyTable` declares of the code. */
interface Coded {
  readonly code: readonly string[];
  readonly codeWhenSet?: { readonly [column: string]: RegExp | undefined };
  readonly codeSinceVersions?: readonly string[];
  readonly codeSinceLayout?: { readonly [column: string]: Layout | undefined };
  readonly codeUnlessSame?: { readonly [column: string]: string | undefined };
  readonly digests?: { readonly [column: string]: string | undefined };
}
const coded = Object.fromEntries(Object.entries(tables).filter(([, table]) => 'code' in table)) as unknown as {
  readonly [T in PolicyTable]: Coded;
};

/** Tables whose rows have an authentication code. */
export const policyTables = Object.keys(coded) as readonly PolicyTable[];
/** The columns under it, in the order of its bytes. */
export const policyColumns = Object.fromEntries(policyTables.map((table) => [table, coded[table].code])) as {
  readonly [T in PolicyTable]: readonly (keyof Schema[T] & string)[];
};

interface CodedColumn {
  readonly name: string;
  /** What a value of it is like, where the first layout omits it if it is null. */
  readonly whenSet: RegExp | undefined;
  readonly sinceVersions: boolean;
  readonly since: Layout;
  /** The column of which it is a copy where the text does not have it. */
  readonly unlessSameAs: string | undefined;
}
const codedColumns = new Map<PolicyTable, readonly CodedColumn[]>(
  policyTables.map((table) => {
    const { code, codeWhenSet = {}, codeSinceVersions = [], codeSinceLayout = {}, codeUnlessSame = {} } = coded[table];
    const columnOf = (name: string): CodedColumn => ({
      name,
      whenSet: codeWhenSet[name],
      sinceVersions: codeSinceVersions.includes(name),
      since: codeSinceLayout[name] ?? 1,
      unlessSameAs: codeUnlessSame[name],
    });
    return [table, code.map(columnOf)];
  }),
);

/**
 * How the text under a code is laid out. Layout 1 omits columns that are null where the declaration
 * says so: two rows can have one text. Since layout 2 null is a value, and the text names its
 * layout. A layout has the columns that had been declared by then, so a row of an earlier one has
 * no value in the others. Since layout 4 the code is under a key for nothing else; before, it was
 * under the row key, as all its jobs were. Rows of earlier layouts are read forever; a row is
 * written in the newest one.
 */
type Layout = 1 | 2 | 3 | 4;
const newest: Layout = 4;
type Row = { readonly [column: string]: unknown };

const layoutsOf = new Map<PolicyTable, readonly Layout[]>(
  [...codedColumns].map(([table, columns]) => {
    const layouts = new Set<Layout>([newest, ...columns.map(({ since }) => since), 1]);
    if (columns.some(({ whenSet }) => whenSet !== undefined)) layouts.add(2);
    return [table, [...layouts].toSorted((one, other) => other - one)];
  }),
);
/** The newest first. A row without a version is of the first. */
const layoutsFor = (table: PolicyTable, row: Row): readonly Layout[] =>
  Number(row.row_version ?? 0) > 0 ? (layoutsOf.get(table) ?? [1]) : [1];
const newestLayout = (table: PolicyTable, row: Row): Layout => layoutsFor(table, row)[0] ?? 1;

const rowText = (table: PolicyTable, row: Row, layout: Layout): string => {
  const version = Number(row.row_version ?? 0);
  const values: unknown[] = [table];
  for (const { name, whenSet, sinceVersions, since, unlessSameAs } of codedColumns.get(table) ?? []) {
    if (unlessSameAs !== undefined) {
      // Under its name: no other value of the text can be taken for it.
      if (layout === newest && row[name] !== undefined && row[name] !== row[unlessSameAs])
        values.push({ [name]: row[name] });
      continue;
    }
    const isOmitted = since > layout || (layout === 1 && whenSet !== undefined && row[name] == null);
    if ((version > 0 || !sinceVersions) && !isOmitted) values.push(row[name]);
  }
  if (version > 0) values.push(layout === 1 ? { version } : { layout, version });
  return canonicalJson(values);
};

/**
 * Whether each value is one that a row of this layout can have there: of layout 1, one of its own
 * column.
 */
const fits = (table: PolicyTable, row: Row, layout: Layout): boolean =>
  (codedColumns.get(table) ?? []).every(({ name, whenSet, since }) => {
    if (row[name] == null) return true;
    return since <= layout && (layout > 1 || whenSet === undefined || whenSet.test(String(row[name])));
  });

/** A text before the newest layout says nothing of a column that is a copy of another one. */
const hasItsCopies = (table: PolicyTable, row: Row, layout: Layout): boolean =>
  layout === newest ||
  (codedColumns.get(table) ?? []).every(
    ({ name, unlessSameAs }) =>
      unlessSameAs === undefined || row[name] === undefined || row[name] === row[unlessSameAs],
  );

/**
 * Whether the values beside the code are those whose digests are under it. A column that was not
 * read says nothing.
 */
const hasItsValues = (table: PolicyTable, row: Row): boolean =>
  Object.entries(coded[table].digests ?? {}).every(([name, under = name]) => {
    const [value, digest] = [row[name], row[under] ?? null];
    if (value === undefined || digest === null) return true;
    return value instanceof Uint8Array && contentDigest(value) === digest;
  });

/** The authentication code of a row: 64 hexadecimal digits. */
export const authenticationCode = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: Row,
  layout: Layout = newestLayout(table, row),
): string => authenticate(rowText(table, row, layout), layout === newest ? 'dke row codes 1' : 'earlier');

/**
 * The row with the digest of each value beside the code, where one of an earlier layout has none.
 */
const withDigests = <R extends Row>(table: PolicyTable, row: R): R => {
  const found = Object.entries(coded[table].digests ?? {}).flatMap(([name, under = name]) => {
    const value = row[name];
    return value instanceof Uint8Array && row[under] == null ? [[under, contentDigest(value)]] : [];
  });
  return found.length === 0 ? row : { ...row, ...Object.fromEntries(found) };
};

/**
 * The row with its authentication code, in the newest layout: no value beside the code is without
 * its digest.
 */
export const sealRow = <R extends Row>(
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: R,
): R & { readonly row_mac: string } => {
  const whole = withDigests(table, row);
  return { ...whole, row_mac: authenticationCode(authenticate, table, whole) };
};

/** Whether the row still is what the service wrote. */
export const rowIntegrity = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: { readonly row_mac: string; readonly [column: string]: unknown },
): Integrity => {
  try {
    const own = newestLayout(table, row);
    const isOurs = layoutsFor(table, row).some(
      (layout) =>
        (layout === own || fits(table, row, layout)) &&
        hasItsCopies(table, row, layout) &&
        authenticationCode(authenticate, table, row, layout) === row.row_mac,
    );
    return isOurs && hasItsValues(table, row) ? 'ok' : 'tampered';
  } catch (error) {
    // A value that canonical JSON cannot hold was not written by us.
    if (error instanceof RangeError) return 'tampered';
    throw error;
  }
};
