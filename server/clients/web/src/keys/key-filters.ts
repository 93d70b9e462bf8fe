// The filters of the list of keys in its page's address. Age and time without use are in days, so
// that an address means the same tomorrow; the API is asked with the moments of today's midnight,
// so that a list that is shown stays the same list.

import type { Choice } from '../ui/fields/field.tsx';

export const keyFilters = ['kind', 'state', 'vaultId', 'tag', 'age', 'use'] as const;
export type KeyFilters = { readonly [name in (typeof keyFilters)[number]]?: string | undefined };

export const ages: readonly Choice[] = [
  { value: 'within-7', text: 'Created in the last 7 days' },
  { value: 'within-30', text: 'Created in the last 30 days' },
  { value: 'over-90', text: 'Older than 90 days' },
  { value: 'over-365', text: 'Older than a year' },
];

export const uses: readonly Choice[] = [
  { value: 'within-7', text: 'Used in the last 7 days' },
  { value: 'within-30', text: 'Used in the last 30 days' },
  { value: 'over-30', text: 'Last used over 30 days ago' },
  { value: 'over-90', text: 'Last used over 90 days ago' },
  { value: 'over-365', text: 'Last used over a year ago' },
  { value: 'never', text: 'Never used' },
];

/** The query parameter of a filter such as `over-90`. */
const spanOf = (what: 'created' | 'used', filter: string | undefined, now: Date): Readonly<Record<string, string>> => {
  const [, side, days] = /^(within|over)-([0-9]{1,4})$/.exec(filter ?? '') ?? [];
  if (side === undefined) return {};
  const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() - Number(days)).toISOString();
  return { [`${what}${side === 'within' ? 'After' : 'Before'}`]: at };
};

/** The query parameters for the API. */
export const keyQuery = (
  { age, use, ...others }: KeyFilters,
  now: Date,
): Readonly<Record<string, string | undefined>> => ({
  ...others,
  ...spanOf('created', age, now),
  ...(use === 'never' ? { neverUsed: 'true' } : spanOf('used', use, now)),
});

export const keyStates: readonly Choice[] = [
  { value: 'active', text: 'Active' },
  { value: 'disabled', text: 'Disabled' },
  { value: 'soft-deleted', text: 'Soft-deleted' },
  { value: 'destroyed', text: 'Destroyed' },
];

export const keyKinds: readonly Choice[] = [
  { value: 'general', text: 'General-purpose' },
  { value: 'master', text: 'TDE master key' },
];
