// The view of a list: its order, the columns that are left out, and the density. It stands in the
// address after the filters, as the fragment, so that a view can be bookmarked and sent; the
// density is also the person's own.

import type { Order } from './rows.ts';

export interface View {
  readonly order: Order | undefined;
  readonly hidden: ReadonlySet<string>;
  readonly compact: boolean;
  /** Rows with this text in their name. */
  readonly name: string;
  /** Rows of this state. */
  readonly state: string;
}

/** What the address does not say is as the person had it last. */
export const readView = (fragment: string, usual: string | null): View => {
  const words = new URLSearchParams(fragment.replace(/^#/, ''));
  const sort = words.get('sort') ?? '';
  const column = sort.replace(/^-/, '');
  return {
    order: column === '' ? undefined : { column, descending: sort.startsWith('-') },
    hidden: new Set((words.get('without') ?? '').split('.').filter((name) => name !== '')),
    compact: (words.get('density') ?? usual) === 'compact',
    name: words.get('name') ?? '',
    state: words.get('state') ?? '',
  };
};

/** The words of the fragment that say it. */
export const viewWords = (
  { order, hidden, compact, name, state }: View,
  usual: string | null,
): Readonly<Record<string, string | undefined>> => ({
  sort: order === undefined ? undefined : `${order.descending ? '-' : ''}${order.column}`,
  name,
  state,
  without: [...hidden].join('.'),
  density: compact ? 'compact' : usual === 'compact' ? 'comfortable' : undefined,
});
