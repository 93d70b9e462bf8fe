// How the key store endpoints do: what the first page of the console shows beside the notifications.

import { largestPageSize } from '../domain/page.ts';
import type { Ports } from '../ports/ports.ts';
import { findEndpoint } from './find.ts';
import type { OverviewOperations } from './index.ts';
import type { XksLatency } from './xks-latency.ts';

export const readOverview = (
  { store }: Pick<Ports, 'store'>,
  latency: Pick<XksLatency, 'read'>,
): OverviewOperations => ({
  latency: async ({ tenantId, reach }, { endpointId, span }) => {
    const ids =
      endpointId === undefined
        ? (await store.read.endpoints.list(reach, { limit: largestPageSize })).map(({ id }) => id)
        : [(await findEndpoint(store.read, tenantId, endpointId)).id];
    return latency.read(ids, span);
  },
});
