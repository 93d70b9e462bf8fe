// Handlers of the request log.

import type { Operations } from '../../../operations/index.ts';
import { exportRequests } from '../export.ts';
import { representCorrelated, representPage, representRequest } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const requestsHandlers = ({ endpoints, requests }: Operations): Handlers['requests'] => ({
  search: async ({ actor, query }) => representPage(await requests.search(actor, query), representRequest),
  export: async ({ actor, query: { format = 'ndjson', ...filter } }) =>
    exportRequests(await requests.export(actor, filter, format), format),
  correlate: async ({ actor, body }) => representCorrelated(await requests.correlate(actor, body.text)),
  verify: async ({ actor, query }) => {
    const verdict = await requests.verify(actor, query);
    return { ...verdict, valid: verdict.findings.length === 0 };
  },
  searchOne: async ({ actor, path, query }) => {
    const { id: endpointId } = await endpoints.get(actor, path.id);
    return representPage(await requests.search(actor, { ...query, endpointId }), representRequest);
  },
  exportOne: async ({ actor, path, query: { format = 'ndjson', ...filter } }) => {
    const { id: endpointId } = await endpoints.get(actor, path.id);
    return exportRequests(await requests.export(actor, { ...filter, endpointId }, format), format);
  },
});
