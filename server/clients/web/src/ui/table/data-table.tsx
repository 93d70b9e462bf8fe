// Lists: a table on wide screens, one card for each row on narrow ones. The explicit roles keep the
// table's meaning when the narrow layout changes `display`, which would otherwise take it away from
// assistive technology.
//
// The head stays in sight where the table fits its frame; where it does not, it scrolls sideways
// and the actions stay.

import { memo, type ReactNode, type RefObject, useCallback, useEffect, useId, useMemo, useState } from 'react';
import { Icon } from '../page/icon.tsx';
import type { OpenRow, Order, SortValue } from './rows.ts';
import { useShownRows } from './use-shown-rows.ts';

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** What the rows are sorted by: the list view offers it where all rows were read. */
  readonly sort?: (row: Row) => SortValue;
  /** The list can be narrowed to one of its values, which this words: that of the state. */
  readonly pick?: (value: string) => string;
  /** The column that names the row; its text may break anywhere, names can be long. */
  readonly names?: boolean;
  readonly nowrap?: boolean;
  readonly end?: boolean;
  /** Contains buttons: has no label in the narrow layout. */
  readonly actions?: boolean;
}

/** The rows that are chosen for an action on all of them, by key. */
export interface Choosing {
  readonly chosen: ReadonlySet<string>;
  readonly onChosen: (chosen: ReadonlySet<string>) => void;
}

export interface Ordering {
  readonly order: Order | undefined;
  readonly onOrder: (order: Order | undefined) => void;
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
  readonly compact?: boolean;
  /** Lines of text in a row of a long list; what is longer is cut. */
  readonly lines?: 1 | 2;
  /** The spoken name of a row, for its box. */
  readonly nameOf?: ((row: Row) => string) | undefined;
  readonly choosing?: Choosing | undefined;
  readonly ordering?: Ordering | undefined;
}

const lineHeight = 24;
const narrowLine = 28;

/** Whether rows are cards. */
const narrow = globalThis.matchMedia?.('(max-width: 47.99rem)');

const cellClass = <Row,>(column: Column<Row>, compact: boolean, fits: boolean): string =>
  [
    `px-4 align-middle ${compact ? 'py-1' : 'py-2.5'} max-md:flex max-md:min-h-7 max-md:items-baseline max-md:gap-3 max-md:px-0 max-md:py-0.5`,
    column.end === true ? 'md:text-right' : '',
    // Some width of its own: a word that may break anywhere would else be squeezed into the least
    // that the other columns leave.
    column.names === true ? 'font-medium wrap-anywhere md:min-w-72' : '',
    column.nowrap === true ? 'md:whitespace-nowrap' : '',
    column.actions === true && !fits ? 'md:sticky md:right-0 md:bg-surface' : '',
  ].join(' ');

const Spacer = ({ height }: { height: number }) =>
  height <= 0 ? null : (
    <tbody aria-hidden="true" className="max-md:block">
      <tr className="max-md:block">
        <td className="p-0 max-md:block" style={{ height }} />
      </tr>
    </tbody>
  );

// biome-ignore-start lint/a11y/noRedundantRoles: see the head of this file
const SortButton = ({ column, text, ordering }: { column: string; text: string; ordering: Ordering }) => {
  const { order, onOrder } = ordering;
  const own = order?.column === column ? order : undefined;
  const next =
    own === undefined ? { column, descending: false } : own.descending ? undefined : { column, descending: true };
  return (
    <button
      type="button"
      onClick={() => onOrder(next)}
      className="-mx-1.5 inline-flex min-h-6 items-center gap-1 rounded px-1.5 hover:bg-hover hover:text-ink"
    >
      {text}
      <Icon
        name="chevron"
        className={`size-3 ${own === undefined ? 'rotate-90 opacity-30' : own.descending ? 'rotate-90' : '-rotate-90'}`}
      />
    </button>
  );
};

const sortedWord = (order: Order | undefined, column: string): 'ascending' | 'descending' | undefined =>
  order?.column !== column ? undefined : order.descending ? 'descending' : 'ascending';

const Box = ({ label, checked, onChecked }: { label: string; checked: boolean; onChecked: () => void }) => (
  <input
    type="checkbox"
    aria-label={label}
    checked={checked}
    onChange={onChecked}
    className="block size-4 accent-accent"
  />
);

const Head = <Row,>({
  columns,
  details,
  fits,
  ordering,
  all,
}: {
  columns: readonly Column<Row>[];
  details: boolean;
  fits: boolean;
  ordering: Ordering | undefined;
  all: ReactNode;
}) => (
  <thead
    role="rowgroup"
    className={`max-md:sr-only ${fits ? 'md:sticky md:top-12 md:z-10 md:bg-surface md:shadow-[inset_0_-1px_0_var(--color-line)]' : ''}`}
  >
    <tr role="row" className="border-b border-line">
      {all !== undefined && (
        <th role="columnheader" scope="col" className="w-8 py-2.5 pl-4">
          {all}
        </th>
      )}
      {columns.map((column) => (
        <th
          key={column.key}
          role="columnheader"
          scope="col"
          aria-sort={sortedWord(ordering?.order, column.key)}
          className={`px-4 py-2.5 text-xs font-medium whitespace-nowrap text-muted ${column.end === true ? 'text-right' : ''} ${column.actions === true && !fits ? 'md:sticky md:right-0 md:bg-surface' : ''}`}
        >
          {column.actions === true ? (
            <span className="sr-only">{column.header}</span>
          ) : ordering !== undefined && column.sort !== undefined ? (
            <SortButton column={column.key} text={column.header} ordering={ordering} />
          ) : (
            column.header
          )}
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
  readonly rowId: string;
  readonly index: number;
  /** Its height is that of all rows; null: as its content. */
  readonly lines: 1 | 2 | null;
  readonly compact: boolean;
  readonly fits: boolean;
  readonly detailId: string;
  readonly opened: boolean;
  readonly toggle: (rowId: string) => void;
  readonly onHeight: (rowId: string, height: number) => void;
  /** The spoken name of its box; null: there is none. */
  readonly boxLabel: string | null;
  readonly chosen: boolean;
  readonly onChoose: (rowId: string) => void;
}

/** A row that is opened says how high its content is. */
const Opened = ({
  id,
  span,
  onHeight,
  children,
}: {
  id: string;
  span: number;
  onHeight: (height: number) => void;
  children: ReactNode;
}) => {
  const [element, setElement] = useState<HTMLTableRowElement | null>(null);
  useEffect(() => {
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => onHeight(element.getBoundingClientRect().height));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element, onHeight]);
  return (
    <tr role="row" id={id} ref={setElement} className="max-md:block">
      <td role="cell" colSpan={span} className="bg-sunken px-4 py-3 max-md:block">
        {children}
      </td>
    </tr>
  );
};

const PlainRow = <Row,>({
  columns,
  detail,
  row,
  rowId,
  index,
  lines,
  compact,
  fits,
  detailId,
  opened,
  toggle,
  onHeight,
  boxLabel,
  chosen,
  onChoose,
}: TableRowProps<Row>) => {
  const tellHeight = useCallback((height: number) => onHeight(rowId, height), [onHeight, rowId]);
  const cut =
    lines === null
      ? ''
      : `overflow-hidden max-md:h-7 max-md:truncate ${lines === 1 ? 'md:max-h-6 md:max-w-96 md:truncate md:has-[button]:max-h-8' : 'md:max-h-12'}`;
  return (
    <tbody role="rowgroup" data-row className="border-line not-first:border-t max-md:block">
      <tr
        role="row"
        aria-rowindex={lines === null ? undefined : index + 2}
        className="hover:bg-hover max-md:block max-md:px-4 max-md:py-3"
        style={lines === null || narrow?.matches === true ? undefined : { height: wideHeight(lines, compact) }}
      >
        {boxLabel !== null && (
          <td role="cell" className="w-8 pl-4 max-md:block max-md:pl-0">
            <Box label={boxLabel} checked={chosen} onChecked={() => onChoose(rowId)} />
          </td>
        )}
        {columns.map((column) => (
          <td
            key={column.key}
            role="cell"
            className={`${cellClass(column, compact, fits)} ${lines === null ? '' : 'md:py-0'}`}
          >
            {column.actions !== true && column.names !== true && (
              <span aria-hidden="true" className="w-24 shrink-0 text-xs text-muted md:hidden">
                {column.header}
              </span>
            )}
            <div className={`min-w-0 max-md:flex-1 ${column.actions === true ? '' : cut}`}>{column.cell(row)}</div>
          </td>
        ))}
        {detail !== undefined && (
          <td role="cell" className="py-1 pr-3 text-right max-md:block max-md:p-0 max-md:text-left">
            <DetailsButton detailId={detailId} opened={opened} toggle={() => toggle(rowId)} />
          </td>
        )}
      </tr>
      {opened && detail !== undefined && (
        <Opened id={detailId} span={columns.length + 1 + (boxLabel === null ? 0 : 1)} onHeight={tellHeight}>
          {detail(row)}
        </Opened>
      )}
    </tbody>
  );
};
// `memo` does not keep the type parameter of a generic component.
const TableRow = memo(PlainRow) as typeof PlainRow;

const wideHeight = (lines: number, compact: boolean): number => lines * lineHeight + (compact ? 13 : 21);

const toggled = (set: ReadonlySet<string>, key: string): ReadonlySet<string> => {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
};

/** The opened rows with their heights, and where they are. */
const useOpenRows = <Row,>(rows: readonly Row[], rowKey: (row: Row) => string) => {
  const [open, setOpen] = useState<ReadonlyMap<string, number>>(new Map());
  const toggle = useCallback((key: string): void => {
    setOpen((now) => {
      const next = new Map(now);
      if (!next.delete(key)) next.set(key, 0);
      return next;
    });
  }, []);
  const onHeight = useCallback((key: string, height: number): void => {
    setOpen((now) => (now.has(key) && now.get(key) !== height ? new Map(now).set(key, height) : now));
  }, []);
  const places = useMemo((): readonly OpenRow[] => {
    if (open.size === 0) return [];
    return rows.flatMap((row, index) => {
      const extra = open.get(rowKey(row));
      return extra === undefined ? [] : [{ index, extra }];
    });
  }, [open, rows, rowKey]);
  return { open, places, toggle, onHeight };
};

/** Whether the table is as wide as its frame: then the window scrolls it, and the head can stay. */
const useFits = (frame: RefObject<HTMLDivElement | null>): boolean => {
  const [fits, setFits] = useState(true);
  useEffect(() => {
    const element = frame.current;
    const table = element?.querySelector('table') ?? null;
    if (element === null || table === null) return undefined;
    const observer = new ResizeObserver(() => setFits(table.offsetWidth <= element.clientWidth + 1));
    observer.observe(element);
    observer.observe(table);
    return () => observer.disconnect();
  }, [frame]);
  return fits;
};

export const DataTable = <Row,>({
  caption,
  columns,
  rows,
  rowKey,
  detail,
  onNearEnd,
  compact = false,
  lines = 1,
  nameOf = rowKey,
  choosing,
  ordering,
}: DataTableProps<Row>) => {
  const id = useId();
  const { open, places, toggle, onHeight } = useOpenRows(rows, rowKey);
  const cardHeight = columns.length * (narrowLine + 4) + 24 + (detail === undefined ? 0 : 32);
  const { frame, whole, range, before, after } = useShownRows(
    rows.length,
    narrow?.matches === true ? cardHeight : wideHeight(lines, compact),
    places,
  );
  const fits = useFits(frame);
  useEffect(() => {
    if (!whole && range.end >= rows.length - 20) onNearEnd?.();
  }, [whole, range, rows.length, onNearEnd]);
  const { chosen, onChosen } = choosing ?? {};
  const choose = useCallback((key: string): void => onChosen?.(toggled(chosen ?? new Set(), key)), [chosen, onChosen]);
  const all = chosen !== undefined && rows.length > 0 && chosen.size === rows.length;
  return (
    <div
      ref={frame}
      className={`relative print:overflow-visible ${fits ? 'max-md:overflow-x-auto' : 'overflow-x-auto'}`}
    >
      <table
        role="table"
        aria-rowcount={whole ? undefined : rows.length + 1}
        className="w-full border-collapse text-left max-md:block"
      >
        <caption className="sr-only">{caption}</caption>
        <Head
          columns={columns}
          details={detail !== undefined}
          fits={fits}
          ordering={ordering}
          all={
            choosing && (
              <Box
                label={`Choose all ${rows.length} rows`}
                checked={all}
                onChecked={() => choosing.onChosen(all ? new Set() : new Set(rows.map(rowKey)))}
              />
            )
          }
        />
        <Spacer height={before} />
        {rows.slice(range.first, range.end).map((row, offset) => {
          const key = rowKey(row);
          return (
            <TableRow
              key={key}
              {...{ columns, detail, row, compact, fits, toggle, onHeight }}
              rowId={key}
              index={range.first + offset}
              lines={whole ? null : lines}
              detailId={`${id}-${key}`}
              opened={open.has(key)}
              boxLabel={chosen === undefined ? null : `Choose ${nameOf(row)}`}
              chosen={chosen?.has(key) === true}
              onChoose={choose}
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
