// Lists: a table on wide screens, one card for each row on narrow ones. The explicit roles keep the table's meaning when the narrow
// layout changes `display`, which would otherwise take it away from assistive technology.
//
// Of a long list only the rows near the window are in the page, the rest is two spacers: a hundred thousand rows scroll like
// a hundred. Heights are measured, for a row may wrap or be open. Sorting and filtering are the server's, so nothing more
// of a table library is needed than that.

import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import { usePrintedAt } from '../audit/printing.ts';
import { Icon } from '../page/icon.tsx';

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** The column that names the row; its text may break anywhere, names can be long. */
  readonly names?: boolean;
  readonly nowrap?: boolean;
  readonly end?: boolean;
  /** Contains buttons: has no label in the narrow layout. */
  readonly actions?: boolean;
}

export interface DataTableProps<Row> {
  /** Spoken name of the table. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** The content below a row that is opened. */
  readonly detail?: ((row: Row) => ReactNode) | undefined;
  /** Called when the user scrolls near the end of the rows. */
  readonly onNearEnd?: (() => void) | undefined;
}

/** Below this all rows are in the page: the browser's own search finds them, and nothing has to be measured. */
const mostWhole = 120;
const rowHeight = 45;

const cellClass = <Row,>(column: Column<Row>): string =>
  [
    'px-4 py-2.5 align-middle max-md:flex max-md:min-h-7 max-md:items-baseline max-md:gap-3 max-md:px-0 max-md:py-0.5',
    column.end === true ? 'md:text-right' : '',
    // Some width of its own: a word that may break anywhere would else be squeezed into the least that the other columns leave.
    column.names === true ? 'font-medium wrap-anywhere md:min-w-64' : '',
    column.nowrap === true ? 'md:whitespace-nowrap' : '',
  ].join(' ');

const Spacer = ({ height }: { height: number }) =>
  height <= 0 ? null : (
    <tbody aria-hidden="true" className="max-md:block">
      <tr className="max-md:block">
        <td className="p-0 max-md:block" style={{ height }} />
      </tr>
    </tbody>
  );

interface Shown {
  readonly index: number;
  readonly measure?: (element: Element | null) => void;
}

/** The rows that are in the page, and the heights of those before and after them. */
const useShownRows = <Row,>({
  rows,
  rowKey,
  onNearEnd,
}: Pick<DataTableProps<Row>, 'rows' | 'rowKey' | 'onNearEnd'>) => {
  const frame = useRef<HTMLDivElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  const isPrinted = usePrintedAt() !== null;
  const whole = rows.length <= mostWhole || isPrinted;
  useLayoutEffect(() => {
    const top = Math.round((frame.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    if (!whole && top !== scrollMargin) setScrollMargin(top);
  });
  const virtualizer = useWindowVirtualizer({
    count: whole ? 0 : rows.length,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : rowKey(row);
    },
  });
  const items = whole ? [] : virtualizer.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (!whole && lastShown >= rows.length - 20) onNearEnd?.();
  }, [whole, lastShown, rows.length, onNearEnd]);
  const shown: readonly Shown[] = whole
    ? rows.map((_, index) => ({ index }))
    : items.map(({ index }) => ({ index, measure: virtualizer.measureElement }));
  return {
    frame,
    whole,
    shown,
    before: (items[0]?.start ?? scrollMargin) - scrollMargin,
    after: whole ? 0 : virtualizer.getTotalSize() - ((items.at(-1)?.end ?? scrollMargin) - scrollMargin),
  };
};

// biome-ignore-start lint/a11y/noRedundantRoles: see the head of this file
const Head = <Row,>({ columns, details }: { columns: readonly Column<Row>[]; details: boolean }) => (
  <thead role="rowgroup" className="max-md:sr-only">
    <tr role="row" className="border-b border-line">
      {columns.map((column) => (
        <th
          key={column.key}
          role="columnheader"
          scope="col"
          className={`px-4 py-2.5 text-xs font-medium whitespace-nowrap text-muted ${column.end === true ? 'text-right' : ''}`}
        >
          {column.actions === true ? <span className="sr-only">{column.header}</span> : column.header}
        </th>
      ))}
      {details && (
        <th role="columnheader" scope="col">
          <span className="sr-only">Details</span>
        </th>
      )}
    </tr>
  </thead>
);

const DetailsButton = ({ detailId, opened, toggle }: { detailId: string; opened: boolean; toggle: () => void }) => (
  <button
    type="button"
    aria-expanded={opened}
    aria-controls={opened ? detailId : undefined}
    onClick={toggle}
    className="inline-flex min-h-8 items-center gap-1 rounded-md px-1.5 text-xs text-muted hover:text-ink max-md:-ml-1.5"
  >
    Details
    <Icon name="chevron" className={`size-3.5 transition-transform ${opened ? '-rotate-90' : 'rotate-90'}`} />
  </button>
);

interface TableRowProps<Row> extends Pick<DataTableProps<Row>, 'columns' | 'detail'> {
  readonly row: Row;
  readonly shown: Shown;
  readonly whole: boolean;
  readonly detailId: string;
  readonly opened: boolean;
  readonly toggle: () => void;
}

const TableRow = <Row,>({ columns, detail, row, shown, whole, detailId, opened, toggle }: TableRowProps<Row>) => (
  <tbody
    role="rowgroup"
    data-index={shown.index}
    ref={shown.measure}
    className="border-line not-first:border-t max-md:block"
  >
    <tr
      role="row"
      aria-rowindex={whole ? undefined : shown.index + 2}
      className="hover:bg-hover max-md:block max-md:px-4 max-md:py-3"
    >
      {columns.map((column) => (
        <td key={column.key} role="cell" className={cellClass(column)}>
          {column.actions !== true && column.names !== true && (
            <span aria-hidden="true" className="w-24 shrink-0 text-xs text-muted md:hidden">
              {column.header}
            </span>
          )}
          <div className="min-w-0 max-md:flex-1">{column.cell(row)}</div>
        </td>
      ))}
      {detail !== undefined && (
        <td role="cell" className="py-1 pr-3 text-right max-md:block max-md:p-0 max-md:text-left">
          <DetailsButton detailId={detailId} opened={opened} toggle={toggle} />
        </td>
      )}
    </tr>
    {opened && detail !== undefined && (
      <tr role="row" id={detailId} className="max-md:block">
        <td role="cell" colSpan={columns.length + 1} className="bg-sunken px-4 py-3 max-md:block">
          {detail(row)}
        </td>
      </tr>
    )}
  </tbody>
);

export const DataTable = <Row,>({ caption, columns, rows, rowKey, detail, onNearEnd }: DataTableProps<Row>) => {
  const id = useId();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const { frame, whole, shown, before, after } = useShownRows({ rows, rowKey, onNearEnd });
  const toggle = (key: string): void => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return (
    <div ref={frame} className="relative overflow-x-auto print:overflow-visible">
      <table
        role="table"
        aria-rowcount={whole ? undefined : rows.length + 1}
        className="w-full border-collapse text-left max-md:block"
      >
        <caption className="sr-only">{caption}</caption>
        <Head columns={columns} details={detail !== undefined} />
        <Spacer height={before} />
        {shown.map((each) => {
          const row = rows[each.index];
          if (row === undefined) return null;
          const key = rowKey(row);
          return (
            <TableRow
              key={key}
              {...{ columns, detail, row, shown: each, whole }}
              detailId={`${id}-${key}`}
              opened={open.has(key)}
              toggle={() => toggle(key)}
            />
          );
        })}
        <Spacer height={after} />
      </table>
    </div>
  );
};

// biome-ignore-end lint/a11y/noRedundantRoles: see the head of this file

export const TableSkeleton = ({ rows = 5 }: { rows?: number }) => (
  <div role="status" aria-label="Loading" className="divide-y divide-line">
    {Array.from({ length: rows }, (_, row) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
      <div key={row} className="flex gap-6 px-4 py-3.5">
        <div className="skeleton h-4 w-1/4" />
        <div className="skeleton h-4 w-1/6" />
        <div className="skeleton h-4 w-1/5" />
      </div>
    ))}
  </div>
);
