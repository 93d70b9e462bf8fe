// Endpoints: reading, with their request log.

import type { Ports } from '../ports/ports.ts';
import { findEndpoint } from './find.ts';
import type { EndpointOperations } from './index.ts';
import { byId, checkSequenceCursor, pageOf } from './paging.ts';

export const readEndpoints = ({
  store,
}: Pick<Ports, 'store'>): Pick<EndpointOperations, 'list' | 'get' | 'requests'> => ({
  list: (_actor, query) => pageOf(query, (window) => store.read.endpoints.list(window), byId),
  get: (_actor, id) => findEndpoint(store.read, id),
  requests: async (_actor, id, query) => {
    checkSequenceCursor(query);
    await findEndpoint(store.read, id);
    return pageOf(
      query,
      (window) => store.read.requests.list(id, window),
      (entry) => String(entry.sequence),
    );
  },
});
