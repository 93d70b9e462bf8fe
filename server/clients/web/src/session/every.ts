// A list of the API as a whole: for choices and for names, where a part would leave something out
// without a word. Lists that grow with use (keys, logs) are read page by page instead.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { Permission } from '../api/types.ts';
import { useMay } from './may.ts';

const largestPage = 1_000;

/** Every item of the list; throws ApiProblem. */
const readEvery = async <Row>(path: string, signal: AbortSignal): Promise<readonly Row[]> => {
  const rows: Row[] = [];
  for (let after: string | undefined; ; ) {
    const page: { readonly items: readonly Row[]; readonly next: string | null } = await send(
      { method: 'GET', path, query: { limit: largestPage, after } },
      { signal },
    );
    rows.push(...page.items);
    if (page.next === null) return rows;
    after = page.next;
  }
};

/** Undefined until it is read, and for those who lack the permission for the list. */
export const useEvery = <Row>(path: string, needs: Permission): readonly Row[] | undefined => {
  const may = useMay();
  return useQuery({
    queryKey: [path, 'every'],
    queryFn: ({ signal }) => readEvery<Row>(path, signal),
    staleTime: 30_000,
    enabled: may(needs, { scoped: false }),
  }).data;
};
