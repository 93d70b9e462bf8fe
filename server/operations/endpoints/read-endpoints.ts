// Endpoints: reading. What a person sees of one says what its key can do now, because an endpoint
// whose key is disabled answers nothing: two look-ups for a page, none for a row.

import type { Endpoint } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import { showKeys } from '../keys/shown-keys.ts';
import { showEndpoint } from '../shared/find.ts';
import { byId, pageOf, withTotal } from '../shared/paging.ts';
import type { EndpointOperations, ShownEndpoint } from './endpoints-operations.ts';

type Show = (endpoints: readonly Endpoint[]) => Promise<readonly ShownEndpoint[]>;

/** These endpoints, in their order. A key that is not there is one that was destroyed. */
const show =
  ({ store: { read } }: Pick<Ports, 'store'>): Show =>
  async (endpoints) => {
    const keys = await showKeys(read, await read.keys.listByIds([...new Set(endpoints.map(({ keyId }) => keyId))]));
    const states = new Map(keys.map(({ tenantId, id, effectiveState }) => [`${tenantId} ${id}`, effectiveState]));
    return endpoints.map((endpoint) => ({
      ...endpoint,
      keyState: states.get(`${endpoint.tenantId} ${endpoint.keyId}`) ?? 'destroyed',
    }));
  };

/** The answer of a call that gives one endpoint. */
export const shown =
  (ports: Pick<Ports, 'store'>) =>
  <Given extends readonly unknown[]>(call: (...given: Given) => Promise<Endpoint>) =>
  async (...given: Given): Promise<ShownEndpoint> => {
    const [endpoint] = await show(ports)([await call(...given)]);
    return endpoint as ShownEndpoint;
  };

export const readEndpoints = (ports: Pick<Ports, 'store'>): Pick<EndpointOperations, 'list' | 'get'> => {
  const { read } = ports.store;
  return {
    list: async ({ tenantId }, query) => {
      const page = await withTotal(
        query,
        await pageOf(
          query,
          (window) => read.endpoints.list(tenantId, window),
          byId,
          ({ settings }) => JSON.stringify(settings).length,
        ),
        (most) => read.endpoints.count(tenantId, most),
      );
      return { ...page, items: await show(ports)(page.items) };
    },
    get: shown(ports)(({ tenantId }, id) => showEndpoint(read, tenantId, id)),
  };
};
