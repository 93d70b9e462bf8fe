// A list from the API in pages by cursor: loading, refused, empty and filtered-empty states, and "show more" at the end; where
// nothing is below the list, scrolling to its end loads more automatically. The server filters and pages, so that a list
// of a hundred thousand rows costs only what is visible.

import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactNode, useCallback } from 'react';
import { type Query, send } from '../../api/client.ts';
import { Button } from '../page/button.tsx';
import { EmptyState, ProblemView } from '../page/problem-view.tsx';
import { DataTable, type DataTableProps, TableSkeleton } from './data-table.tsx';

/** One page of a list, as every list of the API answers. */
export interface ListPage<Row> {
  readonly items: readonly Row[];
  /** Cursor of the following page; null at the end. */
  readonly next: string | null;
}

const firstPage = 50;
/** A reader who continues usually wants many more. */
const laterPages = 500;

/**
 * Reads a list page by page. The key begins with the path, so that a change can renew every filter's view of it; the list of
 * what belongs to one thing names the path of those things as its `owner`, and is renewed with them. `staleTime`: milliseconds for
 * which what was read is shown again without asking, as for all queries when absent.
 */
export const useList = <Row,>(path: string, filters: Query = {}, owner: string = path, staleTime?: number) =>
  useInfiniteQuery({
    queryKey: [owner, path, 'list', filters],
    queryFn: ({ pageParam, signal }) =>
      send<ListPage<Row>>(
        {
          method: 'GET',
          path,
          query: { ...filters, limit: pageParam === undefined ? firstPage : laterPages, after: pageParam },
        },
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    ...(staleTime === undefined ? {} : { staleTime }),
    getNextPageParam: (last) => last.next ?? undefined,
  });

export const ListView = <Row,>({
  list,
  empty,
  filtered = false,
  onClearFilters,
  endless = false,
  ...table
}: Omit<DataTableProps<Row>, 'rows' | 'onNearEnd'> & {
  list: ReturnType<typeof useList<Row>>;
  /** Shown when the list is empty and has no filter. */
  empty: ReactNode;
  /** True while a filter is set: an empty answer then means something else. */
  filtered?: boolean;
  onClearFilters?: () => void;
  /** The list is the last thing on its page. */
  endless?: boolean;
}) => {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const onNearEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  if (list.data === undefined) {
    return list.error === null ? (
      <TableSkeleton />
    ) : (
      <div className="p-4">
        <ProblemView error={list.error} onRetry={() => void list.refetch()} />
      </div>
    );
  }
  const rows = list.data.pages.flatMap((page) => page.items);
  if (rows.length === 0) {
    if (!filtered) return empty;
    return (
      <EmptyState
        title="No entries match these filters"
        action={onClearFilters !== undefined && <Button onClick={onClearFilters}>Clear filters</Button>}
      >
        The list has entries, but none matches all filters.
      </EmptyState>
    );
  }
  return (
    <>
      <DataTable {...table} rows={rows} onNearEnd={endless ? onNearEnd : undefined} />
      <div className="flex flex-wrap items-center justify-between gap-3 border-t border-line px-4 py-2.5 text-xs text-muted">
        <p role="status">
          {rows.length.toLocaleString('en-GB')} shown{list.hasNextPage ? ', more available' : ''}
        </p>
        {list.hasNextPage && (
          <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        )}
      </div>
      {list.error !== null && (
        <div className="p-4 pt-0">
          <ProblemView error={list.error} onRetry={() => void list.fetchNextPage()} compact />
        </div>
      )}
    </>
  );
};
