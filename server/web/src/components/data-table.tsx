// Lists: a table on wide screens, one card a row on narrow ones. The explicit roles keep the table's meaning when the narrow
// layout changes `display`, which would otherwise take it away from assistive technology.

import { Fragment, type ReactNode, useId, useState } from 'react';
import { Icon } from './icon.tsx';

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** The column that names the row; its text may break anywhere, names can be long. */
  readonly names?: boolean;
  readonly nowrap?: boolean;
  readonly end?: boolean;
  /** Holds buttons: no label beside it in the narrow layout. */
  readonly actions?: boolean;
}

export interface DataTableProps<Row> {
  /** Spoken name of the table. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** What a row shows below itself when it is opened. */
  readonly detail?: ((row: Row) => ReactNode) | undefined;
}

const cellClass = <Row,>(column: Column<Row>): string =>
  [
    'px-4 py-2.5 align-middle max-md:flex max-md:min-h-7 max-md:items-baseline max-md:gap-3 max-md:px-0 max-md:py-0.5',
    column.end === true ? 'md:text-right' : '',
    column.names === true ? 'font-medium wrap-anywhere' : '',
    column.nowrap === true ? 'md:whitespace-nowrap' : '',
  ].join(' ');

export const DataTable = <Row,>({ caption, columns, rows, rowKey, detail }: DataTableProps<Row>) => {
  const id = useId();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string): void => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return (
    // biome-ignore-start lint/a11y/noRedundantRoles: see the head of this file
    <div className="relative overflow-x-auto">
      <table role="table" className="w-full border-collapse text-left max-md:block">
        <caption className="sr-only">{caption}</caption>
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
            {detail !== undefined && (
              <th role="columnheader" scope="col">
                <span className="sr-only">Details</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody role="rowgroup" className="max-md:block">
          {rows.map((row) => {
            const key = rowKey(row);
            const opened = open.has(key);
            return (
              <Fragment key={key}>
                <tr
                  role="row"
                  className="border-line hover:bg-hover not-first:border-t max-md:block max-md:px-4 max-md:py-3"
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
                      <button
                        type="button"
                        aria-expanded={opened}
                        aria-controls={opened ? `${id}-${key}` : undefined}
                        onClick={() => toggle(key)}
                        className="inline-flex min-h-8 items-center gap-1 rounded-md px-1.5 text-xs text-muted hover:text-ink max-md:-ml-1.5"
                      >
                        Details
                        <Icon
                          name="chevron"
                          className={`size-3.5 transition-transform ${opened ? '-rotate-90' : 'rotate-90'}`}
                        />
                      </button>
                    </td>
                  )}
                </tr>
                {opened && detail !== undefined && (
                  <tr role="row" id={`${id}-${key}`} className="max-md:block">
                    <td role="cell" colSpan={columns.length + 1} className="bg-sunken px-4 py-3 max-md:block">
                      {detail(row)}
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
    // biome-ignore-end lint/a11y/noRedundantRoles: see the head of this file
  );
};

export const TableSkeleton = ({ rows = 5 }: { rows?: number }) => (
  <div role="status" aria-label="Loading" className="divide-y divide-line">
    {Array.from({ length: rows }, (_, row) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
      <div key={row} className="flex gap-6 px-4 py-3.5">
        <div className="skeleton h-4 w-1/4" />
        <div className="skeleton h-4 w-1/6" />
        <div className="skeleton h-4 w-1/3" />
      </div>
    ))}
  </div>
);
