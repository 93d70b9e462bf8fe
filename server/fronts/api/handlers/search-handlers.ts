// The handler of search: where what was found is shown, by the console and by the API.

import { tenantParameter } from '../../../contract/api/row.ts';
import type { FoundItem } from '../../../contract/api/search-routes.ts';
import type { Found, SearchKind } from '../../../domain/search-terms.ts';
import type { Operations } from '../../../operations/index.ts';
import type { Handlers } from './handler.ts';

/** Lists that have no page for one of their things show the list. */
const places: Readonly<Record<SearchKind, (id: string, found: Found) => readonly [page: string, api: string]>> = {
  key: (id) => [`/keys/${id}`, `/api/keys/${id}`],
  vault: (id) => [`/vaults/${id}`, `/api/vaults/${id}`],
  group: (id) => [`/tde/applications?groupId=${id}`, `/api/tde/groups/${id}`],
  application: (id) => [`/tde/applications/${id}`, `/api/tde/applications/${id}`],
  endpoint: (id) => [`/endpoints/${id}`, `/api/endpoints/${id}`],
  'external-key-store': (id) => ['/external-key-stores', `/api/external-key-stores/${id}`],
  user: (id) => [`/users/${id}`, `/api/users/${id}`],
  token: () => ['/tokens', '/api/tokens'],
  tenant: (id) => ['/tenants', `/api/tenants/${id}`],
  node: (id) => ['/nodes', `/api/nodes/${id}`],
  snapshot: (id) => ['/snapshots', `/api/snapshots/${id}`],
  approval: (id) => ['/approvals', `/api/approvals/${id}`],
  request: (id, { field }) => {
    const query = `${field === 'request-id' ? 'requestId' : 'kmsRequestId'}=${id}`;
    return [`/requests?${query}`, `/api/requests?${query}`];
  },
  'audit-actor': (id) => [`/audit?actorId=${id}`, `/api/audit?actorId=${id}`],
  'audit-request': (id) => [`/audit?requestId=${id}`, `/api/audit?requestId=${id}`],
  'audit-subject': (id) => [`/audit?subjectId=${id}`, `/api/audit?subjectId=${id}`],
};

const represent = (found: Found): FoundItem => {
  const { kind, id, name, field, tenantId, state } = found;
  const [page, api] = places[kind](encodeURIComponent(id), found);
  return { kind, id, name, foundIn: field, tenantId, state, page, api };
};

export const searchHandlers = ({ search }: Operations): Handlers['search'] => ({
  find: async ({ actor, grants, search: asked, query: { q, kind, limit } }) => {
    const namesTenant = new URLSearchParams(asked).has(tenantParameter);
    const { items, more, searched } = await search.find(actor, grants, { text: q, kinds: kind, limit, namesTenant });
    return { items: items.map(represent), more, searched };
  },
});
