// Rows that are found one by one, because they are few or have an id only.

import { isId } from '../../base/ids.ts';
import { type Found, isFoundBy, type SearchKind, termsOf, termsOfId } from '../../domain/search-terms.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { TermKind } from '../../ports/search-index.ts';
import type { Repositories } from '../../ports/store.ts';
import { one, type Sight, type Some } from './sight.ts';

/**
 * Only resources that the caller has a role for; used if all roles of the caller are for single
 * resources.
 */
export const findScoped = async (read: Repositories, kind: TermKind, { tenant, folded, ids, limit }: Sight): Some => {
  const items: Found[] = [];
  for (const id of ids ?? []) {
    const found =
      kind === 'application' ? await read.applications.stored(tenant, id) : await read.endpoints.stored(tenant, id);
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

/** Tenants, nodes, snapshots and approval requests. */
export const rowFinders = (read: Repositories) => ({
  tenant: async (sight: Sight): Some =>
    few(
      'tenant',
      (await read.tenants.list())
        .filter(({ id }) => sight.tenant === everyTenant || id === sight.tenant)
        .map((each) => ({ ...each, tenantId: each.id })),
      sight,
    ),
  node: async (sight: Sight): Some =>
    few(
      'node',
      (await read.nodes.list()).map(({ id, name, state }) => ({ id, name, state, tenantId: null })),
      sight,
    ),
  snapshot: async ({ text, tenant }: Sight): Some => {
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
  approval: async ({ text, tenant }: Sight): Some => {
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
});
