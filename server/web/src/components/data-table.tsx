// Lists: a table on wide screens, one card a row on narrow ones. The explicit roles keep the table's meaning when the narrow
// layout changes `display`, which would otherwise take it away from assistive technology.

import type { ReactNode } from 'react';

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** The column that names the row. */
  readonly names?: boolean;
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
}

export const DataTable = <Row,>({ caption, columns, rows, rowKey }: DataTableProps<Row>) => (
  // biome-ignore-start lint/a11y/noRedundantRoles: see the head of this file
  <div className="overflow-x-auto">
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
        </tr>
      </thead>
      <tbody role="rowgroup" className="max-md:block">
        {rows.map((row) => (
          <tr
            key={rowKey(row)}
            role="row"
            className="border-b border-line last:border-b-0 hover:bg-hover max-md:block max-md:px-4 max-md:py-3"
          >
            {columns.map((column) => (
              <td
                key={column.key}
                role="cell"
                className={`px-4 py-2.5 align-middle max-md:flex max-md:min-h-7 max-md:items-baseline max-md:gap-3 max-md:px-0 max-md:py-0.5 ${column.end === true ? 'md:text-right' : ''} ${column.names === true ? 'font-medium' : ''}`}
              >
                {column.actions !== true && column.names !== true && (
                  <span aria-hidden="true" className="w-24 shrink-0 text-xs text-muted md:hidden">
                    {column.header}
                  </span>
                )}
                <div className="min-w-0 max-md:flex-1">{column.cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
  // biome-ignore-end lint/a11y/noRedundantRoles: see the head of this file
);

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
