// How the key store endpoints do: what the first page of the console shows next to the
// notifications.

import { largestPageSize } from '../../domain/page.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksLatency } from '../requests/xks-latency.ts';
import { showEndpoint } from '../shared/find.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import type { OverviewOperations } from './service-operations.ts';

export const readOverview = (
  { store }: Pick<Ports, 'store'>,
  latency: Pick<XksLatency, 'read'>,
): OverviewOperations => ({
  latency: async ({ tenantId, reach }, { endpointId, span }) => {
    if (endpointId !== undefined)
      return latency.read([(await showEndpoint(store.read, tenantId, endpointId)).id], span);
    const ids: string[] = [];
    for await (const { id } of each((window) => store.read.endpoints.list(reach, window), byId, fewAtOnce)) {
      ids.push(id);
      if (ids.length === largestPageSize) break;
    }
    return latency.read(ids, span);
  },
});
