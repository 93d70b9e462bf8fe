// What a search sees: where it looks, for what, and how much of it.

import type { Found } from '../../domain/search-terms.ts';
import type { TenantScope } from '../../domain/tenant.ts';

export interface Sight {
  readonly tenant: TenantScope;
  /** The tenant acted in, also for those who see every one. */
  readonly actedIn: string;
  readonly folded: string;
  /** The search text as it was typed, without blanks around it. */
  readonly text: string;
  readonly limit: number;
  /** Only these, for callers whose roles are all for single resources; null: all. */
  readonly ids: readonly string[] | null;
}
export type Some = Promise<{ readonly items: readonly Found[]; readonly more: boolean }>;

export const one = (found: Found | undefined) => ({ items: found === undefined ? [] : [found], more: false });

/**
 * An id of a request, not a word that is still being typed: no blank in it, and a digit, or longer
 * than words are.
 */
export const looksLikeId = (text: string): boolean =>
  /^[\x21-\x7e]{3,128}$/.test(text) && (/\d/.test(text) || text.length >= 12);
