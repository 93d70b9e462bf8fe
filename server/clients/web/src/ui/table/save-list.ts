// Reads a list from its beginning to its end, and gives the browser a file.

import { type Query, send } from '../../api/client.ts';
import type { FileFormat } from './export.ts';
import type { ListPage } from './rows.ts';

const largestPage = 1_000;

/** Throws ApiProblem. */
export const readRows = async (path: string, filters: Query, tell: (count: number) => void): Promise<object[]> => {
  const rows: object[] = [];
  for (let after: string | undefined; ; ) {
    const page = await send<ListPage<object>>({
      method: 'GET',
      path,
      query: { ...filters, limit: largestPage, after },
    });
    rows.push(...page.items);
    tell(rows.length);
    if (page.next === null) return rows;
    after = page.next;
  }
};

export const saveFile = (name: string, text: string, format: FileFormat): void => {
  const type = format === 'csv' ? 'text/csv;charset=utf-8' : 'application/x-ndjson';
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
};
