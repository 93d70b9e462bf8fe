// Cursors: reading one row more than the limit shows whether there is a next page. Rows are read in steps; other requests are answered between
// them.

import { ServiceError } from '../base/errors.ts';
import { defaultPageSize, largestPageSize, type Page, type PageRequest } from '../domain/page.ts';
import type { Window } from '../ports/store.ts';

export const limitOf = ({ limit }: PageRequest): number => {
  const value = limit ?? defaultPageSize;
  if (!Number.isInteger(value) || value < 1 || value > largestPageSize)
    throw new ServiceError('validation', `limit is from 1 to ${largestPageSize}`);
  return value;
};

/** Takes a few milliseconds. */
const mostAtOnce = 250;

/** Asks `list` for a page; `cursor` is what the next page begins after. */
export const pageOf = async <T>(
  query: PageRequest,
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
): Promise<Page<T>> => {
  const limit = limitOf(query);
  const items: T[] = [];
  for (let after = query.after; ; ) {
    const asked = Math.min(limit + 1 - items.length, mostAtOnce);
    const read = await list({ after, limit: asked });
    items.push(...read);
    const newest = read.at(-1);
    if (newest === undefined || read.length < asked || items.length > limit) break;
    after = cursor(newest);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const page = items.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: items.length > limit && last !== undefined ? cursor(last) : null };
};

/** Every item of a list. Other requests are answered between its steps. */
export async function* each<T>(
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
): AsyncGenerator<T> {
  let after: string | undefined;
  for (;;) {
    const page = await list({ after, limit: mostAtOnce });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < mostAtOnce) return;
    after = cursor(last);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
/** A cursor over a sequence is its number. */
export const checkSequenceCursor = (query: PageRequest): void => {
  if (query.after !== undefined && !/^[0-9]{1,15}$/.test(query.after))
    throw new ServiceError('validation', 'after is not a cursor of this list');
};

export const byId = (item: { readonly id: string }): string => item.id;
