// Cursors: reading one row more than the limit shows whether there is a next page. Rows are read in
// steps; other requests are answered between them.

import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import { defaultPageSize, largestPageSize, type Page, type PageRequest } from '../../domain/page.ts';
import type { Window } from '../../ports/window.ts';

export const limitOf = ({ limit }: PageRequest): number => {
  const value = limit ?? defaultPageSize;
  if (!Number.isInteger(value) || value < 1 || value > largestPageSize)
    throw new ServiceError('validation', `limit must be from 1 to ${largestPageSize}`);
  return value;
};

/** Takes a few milliseconds. */
export const mostAtOnce = 250;
/** The step of items that can be large, such as applications and endpoints. */
export const fewAtOnce = 8;
/** In bytes; takes a few milliseconds, too. */
const heaviestPage = 256 * 1024;

/**
 * Asks `list` for a page; `cursor` is what the next page begins after. `weigh` estimates the bytes
 * of an item: a page of large items is shorter than its limit.
 */
export const pageOf = async <T>(
  query: PageRequest,
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
  weigh?: (item: T) => number,
): Promise<Page<T>> => {
  const limit = limitOf(query);
  const items: T[] = [];
  let after = query.after;
  const step = weigh === undefined ? mostAtOnce : fewAtOnce;
  let weight = 0;
  for (;;) {
    const asked = Math.min(limit + 1 - items.length, step);
    const read = await list({ after, limit: asked });
    for (const item of read) {
      weight += weigh?.(item) ?? 0;
      const last = items.at(-1);
      if (last !== undefined && (items.length === limit || weight > heaviestPage)) return { items, next: cursor(last) };
      items.push(item);
    }
    const last = items.at(-1);
    if (last === undefined || read.length < asked) return { items, next: null };
    after = cursor(last);
    await otherWork();
  }
};

/** Counting so many takes a few milliseconds. */
const mostCounted = 200_000;

/** The first page says how many there are in all, when it does not have them. */
export const withTotal = async <T>(
  query: PageRequest,
  page: Page<T>,
  count: (most: number) => Promise<number>,
): Promise<Page<T>> => {
  if (query.after !== undefined || page.next === null) return page;
  const total = await count(mostCounted + 1);
  return total > mostCounted ? page : { ...page, total };
};

/** Every item of a list. Other requests are answered between its steps. */
export async function* each<T>(
  list: (window: Window) => Promise<readonly T[]>,
  cursor: (item: T) => string,
  step = mostAtOnce,
): AsyncGenerator<T> {
  let after: string | undefined;
  for (;;) {
    const page = await list({ after, limit: step });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < step) return;
    after = cursor(last);
    await otherWork();
  }
}
/** A cursor over a sequence is its number. */
export const checkSequenceCursor = (query: PageRequest): void => {
  if (query.after !== undefined && !/^[0-9]{1,15}$/.test(query.after))
    throw new ServiceError('validation', 'after must be the next of a previous page');
};

export const byId = (item: { readonly id: string }): string => item.id;
