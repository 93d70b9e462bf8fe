// Maps the members of a stored object to the columns of its table, by name: the member `tenantId`
// is the column `tenant_id`. The declaration of the table lists the columns. A column whose value
// has another form is named as an exception and mapped where the table is declared.

import type { Columns, RowOf } from './table.ts';

type MemberOf<Column> = Column extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<MemberOf<Rest>>}`
  : Column;
type CodeColumn = 'row_mac' | 'row_version';
type Values = { [name: string]: unknown };

/** Where a column is plain text, the member keeps the narrower type of the object. */
type Read<Thing, Row> = {
  [C in keyof Row as MemberOf<C>]: MemberOf<C> extends keyof Thing
    ? Thing[MemberOf<C>] extends Row[C]
      ? Thing[MemberOf<C>]
      : Row[C]
    : never;
};
interface Members<Thing, Row> {
  toRow(thing: { readonly [C in keyof Row as MemberOf<C>]: Row[C] }): Row;
  /** What a row says is believed: its authentication code is checked elsewhere (row-codes.ts). */
  fromRow(row: Row): Read<Thing, Row>;
}
type IfKnown<Thing, Row> =
  Exclude<MemberOf<keyof Row>, keyof Thing> extends infer Unknown
    ? [Unknown] extends [never]
      ? Members<Thing, Row>
      : { readonly columnsWithoutMember: Unknown }
    : never;

const memberOf = (column: string): string => column.replaceAll(/_(.)/g, (_, each: string) => each.toUpperCase());

export const membersOf =
  <Thing>() =>
  <T extends { readonly columns: Columns }, Except extends keyof T['columns'] = never>(
    { columns }: T,
    ...except: readonly Except[]
  ): IfKnown<Thing, Omit<RowOf<T>, Except | CodeColumn>> => {
    const left = new Set<unknown>([...except, 'row_mac', 'row_version'] satisfies readonly (Except | CodeColumn)[]);
    const names = Object.keys(columns)
      .filter((column) => !left.has(column))
      .map((column) => ({ column, member: memberOf(column) }));
    const members = {
      toRow: (thing: Values): Values => {
        const row: Values = {};
        for (const { member, column } of names) row[column] = thing[member];
        return row;
      },
      fromRow: (row: Values): Values => {
        const thing: Values = {};
        for (const { member, column } of names) thing[member] = row[column];
        return thing;
      },
    };
    return members as unknown as IfKnown<Thing, Omit<RowOf<T>, Except | CodeColumn>>;
  };
