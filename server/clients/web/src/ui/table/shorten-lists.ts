// Only the beginning of a long list that was read far is read again: when the person comes back,
// and after a change.

import type { QueryClient } from '@tanstack/react-query';
import type { ListPage } from './rows.ts';

/** More pages than this are not read again only because the person came back. */
export const fewPages = 3;

export interface Pages<Row> {
  readonly pages: ListPage<Row>[];
  readonly pageParams: unknown[];
}

export const shorten = <Row>(data: Pages<Row> | undefined): Pages<Row> | undefined =>
  data === undefined || data.pages.length <= fewPages
    ? data
    : { pages: data.pages.slice(0, fewPages), pageParams: data.pageParams.slice(0, fewPages) };

/** The lists of these paths, and of what belongs to them, are read again. */
export const renew = async (client: QueryClient, paths: readonly string[]): Promise<void> => {
  for (const path of paths)
    client.setQueriesData<Pages<unknown>>(
      { queryKey: [path], predicate: ({ queryKey }) => queryKey[2] === 'list' },
      shorten,
    );
  await Promise.all(paths.map((path) => client.invalidateQueries({ queryKey: [path] })));
};
