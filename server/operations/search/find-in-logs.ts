// What is found in the request log and the audit log: requests by their ids, and who acted, in
// which request, on what.

import { isId } from '../../base/ids.ts';
import type { Found } from '../../domain/search-terms.ts';
import { everyTenant, type TenantScope } from '../../domain/tenant.ts';
import type { TermKind } from '../../ports/search-index.ts';
import type { Repositories } from '../../ports/store.ts';
import { looksLikeId, one, type Sight, type Some } from './sight.ts';

/** Actors of the audit log by their names: those who act are people, tokens and databases. */
const actorKinds = ['user', 'token', 'application'] as const satisfies readonly TermKind[];

const lastActOf = async (read: Repositories, tenant: TenantScope, actorId: string) =>
  (await read.audit.list(tenant, { actorId, order: 'newest' }, { limit: 1 }))[0];

const findRequests = async (read: Repositories, { text, tenant, limit, ids }: Sight): Some => {
  if (!looksLikeId(text)) return { items: [], more: false };
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
};

const findActors = async (read: Repositories, { tenant, actedIn, folded, text, limit }: Sight): Some => {
  const items: Found[] = [];
  let more = false;
  const known = new Set<string>();
  if (isId(text) || (tenant === everyTenant && looksLikeId(text))) {
    const record = await lastActOf(read, tenant, text);
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
      if (known.has(id) || (await lastActOf(read, tenant, id)) === undefined) continue;
      known.add(id);
      items.push({ kind: 'audit-actor', id, name, field: 'actor', tenantId, state: null });
    }
  }
  return { items: items.slice(0, limit), more: more || items.length > limit };
};

/** Kinds that are found in a log. */
export const logFinders = (read: Repositories) => ({
  request: (sight: Sight) => findRequests(read, sight),
  'audit-actor': (sight: Sight) => findActors(read, sight),
  'audit-request': async ({ text, tenant }: Sight): Some => {
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
  'audit-subject': async ({ text, tenant }: Sight): Some => {
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
});
