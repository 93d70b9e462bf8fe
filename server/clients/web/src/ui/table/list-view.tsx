// A list from the API in pages by cursor: loading, refused, empty and filtered-empty states, and
// "show more" at the end; where nothing is below the list, scrolling to its end loads more
// automatically, and the End key the rest. The server filters and pages, so that a list of a
// hundred thousand rows costs only what is visible.

import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react';
import { type Query, send } from '../../api/client.ts';
import { Button } from '../page/button.tsx';
import { EmptyState, ProblemView } from '../page/problem-view.tsx';
import { type Column, DataTable, type DataTableProps, TableSkeleton } from './data-table.tsx';
import { ExportMenu, Narrow, RecordedExport, ViewMenu } from './list-tools.tsx';
import { type ListPage, WholeRows } from './rows.ts';
import { fewPages, type Pages, shorten } from './shorten-lists.ts';
import { useView } from './use-view.ts';
import type { View } from './view.ts';

export type { ListPage } from './rows.ts';

const firstPage = 50;
/** A reader who continues usually wants many more. */
const laterPages = 1_000;
/**
 * Reads a list page by page. The key begins with the path, so that a change can renew every
 * filter's view of it; the list of what belongs to one thing names the path of those things as its
 * `owner`, and is renewed with them. `staleTime`: milliseconds for which what was read is shown
 * again without asking, as for all queries when absent.
 */
export const useList = <Row,>(path: string, filters: Query = {}, owner: string = path, staleTime?: number) => {
  const client = useQueryClient();
  const key = [owner, path, 'list', filters] as const;
  const text = JSON.stringify(key);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `text` says what the key says
  useEffect(() => () => void client.setQueryData<Pages<Row>>(key, shorten), [client, text]);
  const query = useInfiniteQuery({
    queryKey: key,
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
    // A comparison of all rows with all rows costs more than drawing the few that are in sight.
    structuralSharing: false,
    refetchOnWindowFocus: ({ state }) => (state.data?.pages.length ?? 0) <= fewPages,
    refetchOnReconnect: ({ state }) => (state.data?.pages.length ?? 0) <= fewPages,
  });
  return { ...query, path, filters };
};

interface ListViewProps<Row>
  extends Omit<DataTableProps<Row>, 'rows' | 'onNearEnd' | 'compact' | 'choosing' | 'ordering'> {
  readonly list: ReturnType<typeof useList<Row>>;
  /** Shown when the list is empty and has no filter. */
  readonly empty: ReactNode;
  /** True while a filter is set: an empty answer then means something else. */
  readonly filtered?: boolean;
  readonly onClearFilters?: () => void;
  /** The list is the last thing on its page. */
  readonly endless?: boolean;
  /** Where the service exports and records this list; false: the page has an export of its own. */
  readonly exports?: string | false;
  /** Actions on the rows that are chosen. */
  readonly bulk?: (rows: readonly Row[], onDone: () => void) => ReactNode;
}

export const ListView = <Row,>({ list, empty, filtered = false, onClearFilters, ...rest }: ListViewProps<Row>) => {
  if (list.data === undefined) {
    return list.error === null ? (
      <TableSkeleton />
    ) : (
      <div className="p-4">
        <ProblemView error={list.error} onRetry={() => void list.refetch()} />
      </div>
    );
  }
  if (list.data.pages.every(({ items }) => items.length === 0)) {
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
  return <Rows {...rest} list={list} pages={list.data.pages} />;
};

/** Longer lists are sorted and narrowed by the service alone. */
const mostArranged = 20_000;

/**
 * The rows as they were asked for; those of the list, in its order, while not all of them were
 * read.
 */
const useArranged = <Row,>(
  pages: readonly ListPage<Row>[],
  columns: readonly Column<Row>[],
  nameOf: ((row: Row) => string) | undefined,
  { order, name, state }: View,
): { readonly rows: readonly Row[]; readonly isWhole: boolean } => {
  const whole = useMemo(() => WholeRows.of(pages), [pages]);
  const by = columns.find(({ key }) => key === order?.column)?.sort;
  const pickedOf = columns.find(({ pick }) => pick !== undefined)?.sort;
  const descending = order?.descending === true;
  const rows = useMemo(
    () =>
      whole === undefined
        ? pages.flatMap(({ items }) => items)
        : whole.arranged({
            name: name === '' || nameOf === undefined ? undefined : { of: nameOf, has: name },
            value: state === '' || pickedOf === undefined ? undefined : { of: pickedOf, is: state },
            order: by === undefined ? undefined : { by, descending },
          }),
    [pages, whole, by, descending, name, state, nameOf, pickedOf],
  );
  return { rows, isWhole: whole !== undefined };
};

/**
 * Reads the rest of the list: because it is to be sorted or narrowed, or when End is pressed, until
 * another key or the wheel stops it. Answers whether it reads.
 */
const useRest = (list: ReturnType<typeof useList<never>>, endless: boolean, isArranged: boolean): boolean => {
  const [toEnd, setToEnd] = useState(false);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const available = endless && hasNextPage;
  useEffect(() => {
    if (!available) return undefined;
    const press = (event: KeyboardEvent): void => {
      const inField =
        event.target instanceof Element && event.target.closest('input, textarea, select, dialog') !== null;
      setToEnd(event.key === 'End' && !inField);
    };
    const stop = (): void => setToEnd(false);
    window.addEventListener('keydown', press);
    window.addEventListener('wheel', stop, { passive: true });
    return () => {
      window.removeEventListener('keydown', press);
      window.removeEventListener('wheel', stop);
    };
  }, [available]);
  const wanted = toEnd || (isArranged && available);
  useEffect(() => {
    if (!wanted) return;
    if (isFetchNextPageError) setToEnd(false);
    else if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
    else if (!hasNextPage) {
      window.scrollTo(0, document.documentElement.scrollHeight);
      setToEnd(false);
    }
  }, [wanted, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  return wanted && hasNextPage && !isFetchNextPageError;
};

const countText = (count: number, total: number | undefined, more: boolean): string => {
  if (!more) return `${count.toLocaleString('en-GB')} shown`;
  return total === undefined
    ? `${count.toLocaleString('en-GB')} shown, more available`
    : `1–${count.toLocaleString('en-GB')} of ${total.toLocaleString('en-GB')} shown, more available`;
};

const ordinary: View = { order: undefined, hidden: new Set(), compact: false, name: '', state: '' };

const Rows = <Row,>({
  list,
  pages,
  columns,
  endless = false,
  exports,
  bulk,
  ...table
}: Omit<ListViewProps<Row>, 'empty'> & { pages: readonly ListPage<Row>[] }) => {
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list;
  const [ofPage, onView] = useView();
  const view = endless ? ofPage : ordinary;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const { rows, isWhole } = useArranged(pages, columns, table.nameOf, view);
  const total = pages[0]?.total;
  const canArrange = endless && (isWhole || (total !== undefined && total <= mostArranged));
  const isNarrowed = view.name !== '' || view.state !== '';
  const isReadingAll = useRest(
    list as ReturnType<typeof useList<never>>,
    endless,
    canArrange && (isNarrowed || view.order !== undefined),
  );
  const onNearEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  const shown = useMemo(
    () => columns.filter(({ key, names, actions }) => names === true || actions === true || !view.hidden.has(key)),
    [columns, view.hidden],
  );
  const picked = chosen.size === 0 ? [] : rows.filter((row) => chosen.has(table.rowKey(row)));
  return (
    <>
      {endless && (
        <div
          data-screen
          className="flex flex-wrap items-center justify-end gap-1 border-b border-line px-2 py-1 text-xs text-muted"
        >
          {canArrange && (
            <Narrow columns={columns} rows={pages} named={table.nameOf !== undefined} view={view} onView={onView} />
          )}
          {bulk !== undefined && (
            <div className="mr-auto flex flex-wrap items-center gap-2 px-2">
              {picked.length > 0 && <span role="status">{picked.length.toLocaleString('en-GB')} chosen</span>}
              {bulk(picked, () => setChosen(new Set()))}
            </div>
          )}
          <ViewMenu columns={columns} view={view} onView={onView} />
          {typeof exports === 'string' ? (
            <RecordedExport path={exports} filters={list.filters} />
          ) : (
            exports !== false && <ExportMenu path={list.path} filters={list.filters} />
          )}
        </div>
      )}
      <DataTable
        {...table}
        columns={shown}
        rows={rows}
        compact={view.compact}
        onNearEnd={endless ? onNearEnd : undefined}
        choosing={bulk && { chosen, onChosen: setChosen }}
        ordering={canArrange ? { order: view.order, onOrder: (order) => onView({ order }) } : undefined}
      />
      <div className="flex flex-wrap items-center justify-between gap-3 border-t border-line px-4 py-2.5 text-xs text-muted">
        <p role="status">
          {countText(rows.length, total, hasNextPage)}
          {isNarrowed &&
            isWhole &&
            ` of ${pages.reduce((sum, { items }) => sum + items.length, 0).toLocaleString('en-GB')}`}
          {isReadingAll && '. The rest is being read.'}
        </p>
        {hasNextPage && (
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        )}
      </div>
      {list.error !== null && (
        <div className="p-4 pt-0">
          <ProblemView error={list.error} onRetry={() => void fetchNextPage()} compact />
        </div>
      )}
    </>
  );
};
