// Search: names, ids, labels, people, request ids. A caller finds what their lists show them, in
// the tenant they act in or, where they have the right for the whole platform and name no tenant,
// what the platform's lists show. Kinds that they may not see are not looked for.

import { ServiceError } from '../../base/service-error.ts';
import { effectivePermissions, type Grant, isAllowed, isPlatformOnly } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { type Found, foldQuery, type SearchKind, searchKindNames, searchKinds } from '../../domain/search-terms.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { TermKind } from '../../ports/search-index.ts';
import { logFinders } from './find-in-logs.ts';
import { findScoped, rowFinders } from './find-rows.ts';
import type { SearchOperations, SearchQuery } from './search-operations.ts';
import type { Sight, Some } from './sight.ts';

/** Found of each kind, when nothing else is said, and at most. */
export const defaultSearchLimit = 10;
export const largestSearchLimit = 100;

/**
 * Kinds whose lists show what every tenant and the platform has to those who have the right for all
 * of it.
 */
const acrossTenants: ReadonlySet<SearchKind> = new Set([
  'user',
  'token',
  'tenant',
  'snapshot',
  'request',
  'audit-actor',
  'audit-request',
  'audit-subject',
]);

/** Where the caller may search for a kind; null: nowhere. */
const sightOf = (
  kind: SearchKind,
  actor: TenantActor,
  grants: readonly Grant[],
  { namesTenant }: Pick<SearchQuery, 'namesTenant'>,
): Pick<Sight, 'tenant' | 'ids'> | null => {
  const permission = searchKinds[kind];
  // What concerns the platform is seen by those who have the right for the whole of it.
  const platform = isPlatformOnly(permission);
  if (isAllowed(grants, permission, platform ? null : actor.tenantId, null)) {
    const everything = !namesTenant && acrossTenants.has(kind) && isAllowed(grants, permission, null, null);
    return { tenant: platform || everything ? everyTenant : actor.tenantId, ids: null };
  }
  const of = kind === 'application' ? 'application' : kind === 'endpoint' || kind === 'request' ? 'endpoint' : null;
  if (of === null) return null;
  const ids = effectivePermissions(grants).flatMap((right) =>
    right.permission === permission &&
    right.scope?.kind === of &&
    (right.tenantId === null || right.tenantId === actor.tenantId)
      ? [right.scope.id]
      : [],
  );
  return ids.length === 0 ? null : { tenant: actor.tenantId, ids };
};

export const createSearchOperation = ({ store }: Pick<Ports, 'store'>): SearchOperations => {
  const { read } = store;
  const others: { readonly [K in Exclude<SearchKind, TermKind>]: (sight: Sight) => Some } = {
    ...rowFinders(read),
    ...logFinders(read),
  };
  const hasOther = (kind: SearchKind): kind is keyof typeof others => Object.hasOwn(others, kind);

  return {
    find: async (actor, grants, { text: given, kinds = searchKindNames, limit = defaultSearchLimit, namesTenant }) => {
      if (!Number.isInteger(limit) || limit < 1 || limit > largestSearchLimit)
        throw new ServiceError('validation', `limit must be from 1 to ${largestSearchLimit}`);
      const text = given.trim();
      const folded = foldQuery(text);
      if (folded === '')
        throw new ServiceError('validation', 'the search text has no letter or digit', {
          hint: 'enter the beginning of a word in a name, an id or a request id',
        });
      const searched: SearchKind[] = [];
      const more: SearchKind[] = [];
      const items: Found[] = [];
      for (const kind of searchKindNames) {
        if (!kinds.includes(kind)) continue;
        const sight = sightOf(kind, actor, grants, { namesTenant });
        if (sight === null) continue;
        searched.push(kind);
        const asked: Sight = { ...sight, actedIn: actor.tenantId, text, folded, limit };
        const found = hasOther(kind)
          ? await others[kind](asked)
          : sight.ids === null
            ? await read.search.find(sight.tenant, { kind, folded, limit })
            : await findScoped(read, kind, asked);
        items.push(...found.items);
        if (found.more) more.push(kind);
      }
      return { items, more, searched };
    },
  };
};
