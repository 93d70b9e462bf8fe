// How the key store endpoints do: what the first page of the console shows beside the notifications.

import { largestPageSize } from '../domain/page.ts';
import type { Ports } from '../ports/ports.ts';
import { findEndpoint } from './find.ts';
import type { OverviewOperations } from './index.ts';
import { byId, each, fewAtOnce } from './paging.ts';
import type { XksLatency } from './xks-latency.ts';

export const readOverview = (
  { store }: Pick<Ports, 'store'>,
  latency: Pick<XksLatency, 'read'>,
): OverviewOperations => ({
  latency: async ({ tenantId, reach }, { endpointId, span }) => {
    if (endpointId !== undefined)
      return latency.read([(await findEndpoint(store.read, tenantId, endpointId)).id], span);
    const ids: string[] = [];
    for await (const { id } of each((window) => store.read.endpoints.list(reach, window), byId, fewAtOnce)) {
      ids.push(id);
      if (ids.length === largestPageSize) break;
    }
    return latency.read(ids, span);
  },
});
