// Rows of lists as values: which of them are in the page, and the order of those that were read
// whole. Pure.

/** One page of a list, as every list of the API answers. */
export interface ListPage<Row> {
  readonly items: readonly Row[];
  /** Cursor of the following page; null at the end. */
  readonly next: string | null;
  /** How many there are in all, where the service counts them; first page only. */
  readonly total?: number | undefined;
}

export type SortValue = string | number | null;

export interface Order {
  readonly column: string;
  readonly descending: boolean;
}

/** Names with numbers as people count: key 2 before key 10. */
const words = new Intl.Collator('en', { numeric: true });

/** Rows without a value come last in either order; equal ones keep the order of the list. */
const sorted = <Row>(rows: readonly Row[], by: (row: Row) => SortValue, descending: boolean): readonly Row[] => {
  const side = descending ? -1 : 1;
  return rows
    .map((row) => [by(row), row] as const)
    .toSorted(([a], [b]) => {
      if (a === null || b === null) return Number(a === null) - Number(b === null);
      return side * (typeof a === 'number' && typeof b === 'number' ? a - b : words.compare(String(a), String(b)));
    })
    .map(([, row]) => row);
};

/** What the rows are narrowed to and sorted by, in the browser. */
export interface Arrangement<Row> {
  /** Rows whose name has this text. */
  readonly name: { readonly of: (row: Row) => string; readonly has: string } | undefined;
  /** Rows of which this is this. */
  readonly value: { readonly of: (row: Row) => SortValue; readonly is: string } | undefined;
  readonly order: { readonly by: (row: Row) => SortValue; readonly descending: boolean } | undefined;
}

/**
 * All rows of a list. Only this can be arranged: the first rows of a part that was sorted would not
 * be the first of the list, and what a part does not have may still be in it.
 */
export class WholeRows<Row> {
  readonly rows: readonly Row[];

  private constructor(rows: readonly Row[]) {
    this.rows = rows;
  }

  /** Undefined while a page is missing. */
  static of<Row>(pages: readonly ListPage<Row>[]): WholeRows<Row> | undefined {
    const last = pages.at(-1);
    return last === undefined || last.next !== null ? undefined : new WholeRows(pages.flatMap(({ items }) => items));
  }

  arranged({ name, value, order }: Arrangement<Row>): readonly Row[] {
    const wanted = name?.has.toLowerCase() ?? '';
    const rows = this.rows.filter(
      (row) =>
        (name === undefined || name.of(row).toLowerCase().includes(wanted)) &&
        (value === undefined || String(value.of(row)) === value.is),
    );
    return order === undefined ? rows : sorted(rows, order.by, order.descending);
  }
}

/** An opened row: its position, and how much higher it is than the others. */
export interface OpenRow {
  readonly index: number;
  readonly extra: number;
}

export interface Range {
  readonly first: number;
  /** Exclusive. */
  readonly end: number;
}

const spare = 12;
/** The range changes in steps of so many rows: most turns of the wheel draw nothing. */
const step = 6;

/**
 * The rows between two heights below the head, with some to spare. All are equally high but the
 * opened ones, so the cost does not grow with the list.
 */
export const rowsBetween = (
  count: number,
  height: number,
  [top, bottom]: readonly [number, number],
  open: readonly OpenRow[] = [],
): Range => {
  const at = (y: number): number => {
    let before = 0;
    for (const { index, extra } of open.toSorted((a, b) => a.index - b.index)) {
      if (y < (index + 1) * height + before) break;
      before += Math.min(extra, y - (index + 1) * height - before);
    }
    return Math.floor(Math.max(0, y - before) / height);
  };
  const end = Math.min(count, Math.ceil((at(bottom) + 1 + spare) / step) * step);
  const first = Math.min(at(top), Math.max(0, count - 1)) - spare;
  return { first: Math.max(0, Math.floor(first / step) * step), end };
};

/** The height of the rows before this one. */
export const heightBefore = (index: number, height: number, open: readonly OpenRow[] = []): number =>
  open.reduce((sum, row) => sum + (row.index < index ? row.extra : 0), index * height);
