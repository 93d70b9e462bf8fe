// Cursors: one row more than asked tells whether there is a next page.

import { ServiceError } from '../base/errors.ts';
import { defaultPageSize, largestPageSize, type Page, type PageRequest } from '../domain/page.ts';
import type { Window } from '../ports/store.ts';

export const limitOf = ({ limit }: PageRequest): number => {
  const value = limit ?? defaultPageSize;
  if (!Number.isInteger(value) || value < 1 || value > largestPageSize)
    throw new ServiceError('validation', `limit is from 1 to ${largestPageSize}`);
  return value;
};

/** Asks `list` for a page; `cursor` is what the next page begins after. */
export const pageOf = async <T>(
  query: PageRequest,
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
): Promise<Page<T>> => {
  const limit = limitOf(query);
  const items = await list({ after: query.after, limit: limit + 1 });
  const page = items.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: items.length > limit && last !== undefined ? cursor(last) : null };
};

/** Every item of a list, page by page. */
export async function* each<T>(
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
): AsyncGenerator<T> {
  let after: string | undefined;
  for (;;) {
    const page = await list({ after, limit: largestPageSize });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < largestPageSize) return;
    after = cursor(last);
  }
}
/** A cursor over a sequence is its number. */
export const checkSequenceCursor = (query: PageRequest): void => {
  if (query.after !== undefined && !/^[0-9]{1,15}$/.test(query.after))
    throw new ServiceError('validation', 'after is not a cursor of this list');
};

export const byId = (item: { readonly id: string }): string => item.id;
