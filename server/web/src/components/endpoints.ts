// The key store endpoints: their addresses, and a choice of them.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { Endpoint } from '../api/types.ts';
import type { ListPage } from './list-view.tsx';

export const endpointsPath = '/api/endpoints';
export const endpointPath = (id: string): string => `${endpointsPath}/${encodeURIComponent(id)}`;

/** At most a hundred, for selection fields and for names of the endpoint that a resource belongs to. */
export const useEndpoints = (): readonly Endpoint[] =>
  useQuery({
    queryKey: [endpointsPath, 'choices'],
    queryFn: ({ signal }) =>
      send<ListPage<Endpoint>>({ method: 'GET', path: endpointsPath, query: { limit: 100 } }, { signal }),
    staleTime: 30_000,
  }).data?.items ?? [];
