// A list as a file, with the filters that are set: read from the service page by page, not only
// what was shown.

import { csvLine } from '../../../../../base/csv.ts';

export type FileFormat = 'csv' | 'ndjson';

const cellOf = (value: unknown): string | number | null => {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(' ');
  return typeof value === 'boolean' ? String(value) : JSON.stringify(value);
};

/** The columns of CSV are the members of the rows, in the order in which they first occur. */
export const formatRows = (rows: readonly object[], format: FileFormat): string => {
  if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const line = (row: object): string => {
    const members: Readonly<Record<string, unknown>> = { ...row };
    return csvLine(names.map((name) => cellOf(members[name])));
  };
  return [csvLine(names), ...rows.map(line)].join('');
};

/** `/api/tde/applications` as `dke-tde-applications.csv`. */
export const fileName = (path: string, format: FileFormat): string =>
  `dke-${path.replace(/^\/api\//, '').replaceAll(/[^a-z0-9]+/gi, '-')}.${format}`;
