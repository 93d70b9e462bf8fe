// Endpoints: reading.

import type { Ports } from '../../ports/ports.ts';
import { showEndpoint } from '../shared/find.ts';
import { byId, pageOf } from '../shared/paging.ts';
import type { EndpointOperations } from './interface.ts';

export const readEndpoints = ({ store }: Pick<Ports, 'store'>): Pick<EndpointOperations, 'list' | 'get'> => ({
  list: ({ tenantId }, query) =>
    pageOf(
      query,
      (window) => store.read.endpoints.list(tenantId, window),
      byId,
      ({ settings }) => JSON.stringify(settings).length,
    ),
  get: ({ tenantId }, id) => showEndpoint(store.read, tenantId, id),
});
