// The authentication code of each policy row. The columns under it are those whose change from outside would change what a person or
// program may do; they are bound with the table's name under the service's row key. Use counters and last-use times are not policy.

import { canonicalJson } from '../base/bytes.ts';
import { ServiceError } from '../base/errors.ts';
import type { Integrity } from '../domain/vault.ts';
import { type PolicyTable, type Schema, tables } from './schema.ts';

/** Writing a row back would give it a fresh authentication code: a tampered one must not get it. */
export const refuseTampered = (entity: { readonly integrity: 'ok' | 'tampered' }): void => {
  if (entity.integrity !== 'ok')
    throw new ServiceError('key-tampered', 'the stored record was changed from outside', {
      hint: 'compare the database with a backup; the audit log has an alarm that names the record',
    });
};

/** Computes the authentication code of a row's text: 64 hexadecimal digits. */
export type RowAuthenticator = (text: string) => string;

/** What `policyTable` declares of the code. */
interface Coded {
  readonly code: readonly string[];
  readonly codeWhenSet?: readonly string[];
  readonly codeSinceVersions?: readonly string[];
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
  readonly whenSet: boolean;
  readonly sinceVersions: boolean;
}
const codedColumns = new Map<PolicyTable, readonly CodedColumn[]>(
  policyTables.map((table) => {
    const { code, codeWhenSet = [], codeSinceVersions = [] } = coded[table];
    const columnOf = (name: string): CodedColumn => ({
      name,
      whenSet: codeWhenSet.includes(name),
      sinceVersions: codeSinceVersions.includes(name),
    });
    return [table, code.map(columnOf)];
  }),
);

const rowText = (table: PolicyTable, row: { readonly [column: string]: unknown }): string => {
  const version = Number(row.row_version ?? 0);
  const values: unknown[] = [table];
  for (const { name, whenSet, sinceVersions } of codedColumns.get(table) ?? [])
    if ((version > 0 || !sinceVersions) && !(whenSet && row[name] == null)) values.push(row[name]);
  if (version > 0) values.push({ version });
  return canonicalJson(values);
};

/** The authentication code of a row: 64 hexadecimal digits. */
export const authenticationCode = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: { readonly [column: string]: unknown },
): string => authenticate(rowText(table, row));

/** The row with its authentication code. */
export const sealRow = <R extends { readonly [column: string]: unknown }>(
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: R,
): R & { readonly row_mac: string } => ({ ...row, row_mac: authenticate(rowText(table, row)) });

/** Whether the row still is what the service wrote. */
export const rowIntegrity = (
  authenticate: RowAuthenticator,
  table: PolicyTable,
  row: { readonly row_mac: string; readonly [column: string]: unknown },
): Integrity => {
  try {
    return authenticate(rowText(table, row)) === row.row_mac ? 'ok' : 'tampered';
  } catch (error) {
    // A value that canonical JSON cannot hold was not written by us.
    if (error instanceof RangeError) return 'tampered';
    throw error;
  }
};
