// How the service is searched.

import type { Grant } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Found, SearchKind } from '../../domain/search-terms.ts';

export interface SearchQuery {
  readonly text: string;
  /** Only these; all when absent. */
  readonly kinds?: readonly SearchKind[] | undefined;
  /** Most results of each kind: 1 to 100, 10 when absent. */
  readonly limit?: number | undefined;
  /** A caller who names a tenant sees only that tenant. */
  readonly namesTenant: boolean;
}

export interface SearchOperations {
  /**
   * Finds names by the beginnings of their words, and ids (domain/search-terms.ts). `items` are in
   * the order of the kinds; `searched` are the kinds that the caller may see; `more` the kinds with
   * further results. 'validation' where the text has neither letter nor digit.
   */
  find(
    actor: TenantActor,
    grants: readonly Grant[],
    query: SearchQuery,
  ): Promise<{
    readonly items: readonly Found[];
    readonly more: readonly SearchKind[];
    readonly searched: readonly SearchKind[];
  }>;
}
