// Endpoints: reading.

import type { Ports } from '../../ports/ports.ts';
import { showEndpoint } from '../shared/find.ts';
import { byId, pageOf, withTotal } from '../shared/paging.ts';
import type { EndpointOperations } from './interface.ts';

export const readEndpoints = ({ store }: Pick<Ports, 'store'>): Pick<EndpointOperations, 'list' | 'get'> => ({
  list: async ({ tenantId }, query) =>
    withTotal(
      query,
      await pageOf(
        query,
        (window) => store.read.endpoints.list(tenantId, window),
        byId,
        ({ settings }) => JSON.stringify(settings).length,
      ),
      (most) => store.read.endpoints.count(tenantId, most),
    ),
  get: ({ tenantId }, id) => showEndpoint(store.read, tenantId, id),
});
