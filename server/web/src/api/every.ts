// A list of the API as a whole: for choices and for names, where a part would leave something out
// without a word. Lists that grow with use (keys, logs) are read page by page instead.

import { useQuery } from '@tanstack/react-query';
import { type Query, send } from './client.ts';

const largestPage = 1_000;

/** Every item of the list; throws ApiProblem. */
const readEvery = async <Row>(path: string, query: Query, signal: AbortSignal): Promise<readonly Row[]> => {
  const rows: Row[] = [];
  for (let after: string | undefined; ; ) {
    const page: { readonly items: readonly Row[]; readonly next: string | null } = await send(
      { method: 'GET', path, query: { ...query, limit: largestPage, after } },
      { signal },
    );
    rows.push(...page.items);
    if (page.next === null) return rows;
    after = page.next;
  }
};

/** Undefined until it is read. */
export const useEvery = <Row>(path: string, query: Query = {}): readonly Row[] | undefined =>
  useQuery({
    queryKey: [path, 'every', query],
    queryFn: ({ signal }) => readEvery<Row>(path, query, signal),
    staleTime: 30_000,
  }).data;
