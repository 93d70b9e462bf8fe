// Finding things by their terms (domain/search.ts). The terms are kept by the store itself, in the transaction that writes what they
// are of, and are made again when the store is opened by a version that makes them differently.

import type { Found, TermKind } from '../domain/search.ts';
import type { TenantScope } from '../domain/tenant.ts';

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
   * Those that have a term which begins as it was asked, in the order of the terms; then those that have one for each of the words. Of
   * a tenant: its own. Of every tenant: users and tokens alone, those of the platform too. `more`: there are others, or there may be.
   */
  find(
    tenant: TenantScope,
    search: TermSearch,
  ): Promise<{ readonly items: readonly (Found & { readonly kind: TermKind })[]; readonly more: boolean }>;
}
