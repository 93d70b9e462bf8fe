// Finding things by their terms (domain/search-terms.ts). The terms are kept by the store itself,
// in the transaction that writes what they are of, and are made again when the store is opened by a
// version that makes them differently.

import type { Found } from '../domain/search-terms.ts';
import type { TenantScope } from '../domain/tenant.ts';
import type { TablesBy } from './tables.ts';

/** Kinds that are found by their terms: others have another finder. */
export type TermKind = TablesBy['searched'];

export interface TermSearch {
  readonly kind: TermKind;
  /** `foldQuery`; not empty. */
  readonly folded: string;
  readonly limit: number;
  /** Users and endpoints that were deleted, too. */
  readonly withDeleted?: true;
}

export interface SearchRepository {
  /**
   * First the entries with a term that begins with the query, in the order of the terms; then the
   * entries with one for each of its words. Of one tenant: its own entries. Of every tenant: only
   * users and tokens, including those of the platform. `more`: there are or may be others.
   */
  find(
    tenant: TenantScope,
    search: TermSearch,
  ): Promise<{ readonly items: readonly (Found & { readonly kind: TermKind })[]; readonly more: boolean }>;
}
