// Search: names, ids, labels, people, request ids. A caller finds what their lists show them, in the tenant they act in or, where they
// have the right for the whole platform and name no tenant, what the platform's lists show. Kinds that they may not see are not looked for.

import { ServiceError } from '../../base/errors.ts';
import { isId } from '../../base/ids.ts';
import { effectivePermissions, type Grant, isAllowed, isPlatformOnly } from '../../domain/access.ts';
import type { TenantActor } from '../../domain/actor.ts';
import {
  type Found,
  foldQuery,
  isFoundBy,
  type SearchKind,
  searchKindNames,
  searchKinds,
  type TermKind,
  termKinds,
  termsOf,
  termsOfId,
} from '../../domain/search.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { SearchOperations, SearchQuery } from './interface.ts';

/** Found of each kind, when nothing else is said, and at most. */
export const defaultSearchLimit = 10;
export const largestSearchLimit = 100;

/** Kinds whose lists show what every tenant and the platform has to those who have the right for all of it. */
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

interface Sight {
  readonly tenant: TenantScope;
  /** The tenant acted in, also for those who see every one. */
  readonly actedIn: string;
  readonly folded: string;
  /** As it was typed, without blanks around it. */
  readonly text: string;
  readonly limit: number;
  /** Only these, for those who have a role for single resources alone; null: every one. */
  readonly ids: readonly string[] | null;
}
type Some = Promise<{ readonly items: readonly Found[]; readonly more: boolean }>;
const nothing = { items: [], more: false } as const;
const one = (found: Found | undefined) => ({ items: found === undefined ? [] : [found], more: false });

/** An id of a request, not a word that is still being typed: no blank in it, and a digit, or longer than words are. */
const looksLikeId = (text: string): boolean =>
  /^[\x21-\x7e]{3,128}$/.test(text) && (/\d/.test(text) || text.length >= 12);

const isTermKind = (kind: SearchKind): kind is TermKind => (termKinds as readonly SearchKind[]).includes(kind);

/** Actors of the audit log by their names: those who act are people, tokens and databases. */
const actorKinds = ['user', 'token', 'application'] as const satisfies readonly TermKind[];

export const createSearchOperation = ({ store }: Pick<Ports, 'store'>): SearchOperations => {
  const { read } = store;

  const scoped = async (kind: TermKind, { tenant, folded, ids, limit }: Sight): Some => {
    const items: Found[] = [];
    for (const id of ids ?? []) {
      const found =
        kind === 'application' ? await read.applications.get(tenant, id) : await read.endpoints.get(tenant, id);
      if (found === undefined || found.state === 'deleted') continue;
      const extra = 'appId' in found ? termsOf(found.appId) : termsOf(found.prefix);
      const { name, tenantId, state } = found;
      for (const [field, terms] of [
        ['name', termsOf(name)],
        ['appId' in found ? 'app-id' : 'prefix', extra],
        ['id', termsOfId(id)],
      ] as const)
        if (isFoundBy(terms, folded)) {
          items.push({ kind, id, name, field, tenantId, state });
          break;
        }
    }
    return { items: items.slice(0, limit), more: items.length > limit };
  };

  const few = (
    kind: SearchKind,
    all: readonly {
      readonly id: string;
      readonly name: string;
      readonly state: string;
      readonly tenantId: string | null;
    }[],
    { folded, limit }: Sight,
  ): { readonly items: readonly Found[]; readonly more: boolean } => {
    const items = all.flatMap(({ id, name, state, tenantId }): Found[] => {
      const field = isFoundBy(termsOf(name), folded) ? 'name' : isFoundBy(termsOfId(id), folded) ? 'id' : null;
      return field === null ? [] : [{ kind, id, name, field, tenantId, state }];
    });
    return { items: items.slice(0, limit), more: items.length > limit };
  };

  const hasActed = async (tenant: TenantScope, actorId: string) =>
    (await read.audit.list(tenant, { actorId, order: 'newest' }, { limit: 1 }))[0];

  const others: { readonly [K in Exclude<SearchKind, TermKind>]: (sight: Sight) => Some } = {
    tenant: async (sight) =>
      few(
        'tenant',
        (await read.tenants.list())
          .filter(({ id }) => sight.tenant === everyTenant || id === sight.tenant)
          .map((each) => ({ ...each, tenantId: each.id })),
        sight,
      ),
    node: async (sight) =>
      few(
        'node',
        (await read.nodes.list()).map(({ id, name, state }) => ({ id, name, state, tenantId: null })),
        sight,
      ),
    snapshot: async ({ text, tenant }) => {
      const snapshot = isId(text) ? await read.snapshots.get(text) : undefined;
      const found = tenant === everyTenant || snapshot?.tenantId === tenant ? snapshot : undefined;
      return one(
        found && {
          kind: 'snapshot',
          id: found.id,
          name: `Snapshot of ${new Date(found.createdAt).toISOString()}`,
          field: 'id',
          tenantId: found.tenantId,
          state: found.state,
        },
      );
    },
    approval: async ({ text, tenant }) => {
      const found = isId(text) ? await read.approvals.get(tenant, text) : undefined;
      return one(
        found && {
          kind: 'approval',
          id: found.id,
          name: found.subject.name,
          field: 'id',
          tenantId: found.tenantId,
          state: found.state,
        },
      );
    },
    request: async ({ text, tenant, limit, ids }) => {
      if (!looksLikeId(text)) return nothing;
      const items: Found[] = [];
      let more = false;
      for (const [field, filter] of [
        ['request-id', { requestId: text }],
        ['kms-request-id', { kmsRequestId: text }],
      ] as const)
        for (const endpointId of ids ?? [undefined]) {
          const page = await read.requests.search(tenant, { ...filter, endpointId }, { limit });
          more ||= page.next !== null;
          for (const { requestId, kmsRequestId, operation, status } of page.items)
            items.push({
              kind: 'request',
              id: field === 'request-id' ? requestId : (kmsRequestId ?? requestId),
              name: `${operation}, status ${status}`,
              field,
              tenantId: tenant === everyTenant ? null : tenant,
              state: String(status),
            });
        }
      return { items: items.slice(0, limit), more: more || items.length > limit };
    },
    'audit-actor': async ({ tenant, actedIn, folded, text, limit }) => {
      const items: Found[] = [];
      let more = false;
      const known = new Set<string>();
      if (isId(text) || (tenant === everyTenant && looksLikeId(text))) {
        const record = await hasActed(tenant, text);
        if (record !== undefined) {
          known.add(text);
          items.push({
            kind: 'audit-actor',
            id: text,
            name: record.actorName,
            field: 'id',
            tenantId: tenant === everyTenant ? null : tenant,
            state: null,
          });
        }
      }
      for (const kind of actorKinds) {
        const found = await read.search.find(kind === 'application' ? actedIn : tenant, {
          kind,
          folded,
          limit,
          withDeleted: true,
        });
        more ||= found.more;
        for (const { id, name, tenantId } of found.items) {
          if (known.has(id) || (await hasActed(tenant, id)) === undefined) continue;
          known.add(id);
          items.push({ kind: 'audit-actor', id, name, field: 'actor', tenantId, state: null });
        }
      }
      return { items: items.slice(0, limit), more: more || items.length > limit };
    },
    'audit-request': async ({ text, tenant }) => {
      const [record] = looksLikeId(text)
        ? await read.audit.list(tenant, { requestId: text, order: 'newest' }, { limit: 1 })
        : [];
      return one(
        record && {
          kind: 'audit-request',
          id: text,
          name: `${record.kind} by ${record.actorName}`,
          field: 'request-id',
          tenantId: tenant === everyTenant ? null : tenant,
          state: null,
        },
      );
    },
    'audit-subject': async ({ text, tenant }) => {
      const [record] = isId(text)
        ? await read.audit.list(tenant, { subjectId: text, order: 'newest' }, { limit: 1 })
        : [];
      return one(
        record && {
          kind: 'audit-subject',
          id: text,
          name: `${record.kind} by ${record.actorName}`,
          field: 'subject',
          tenantId: tenant === everyTenant ? null : tenant,
          state: null,
        },
      );
    },
  };

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
        const found = !isTermKind(kind)
          ? await others[kind](asked)
          : sight.ids === null
            ? await read.search.find(sight.tenant, { kind, folded, limit })
            : await scoped(kind, asked);
        items.push(...found.items);
        if (found.more) more.push(kind);
      }
      return { items, more, searched };
    },
  };
};
