// The key store endpoints: their addresses, and a choice of them.

import type { Endpoint } from '../api/types.ts';
import { useEvery } from '../app/every.ts';

export const endpointsPath = '/api/endpoints';
export const endpointPath = (id: string): string => `${endpointsPath}/${encodeURIComponent(id)}`;

/** All, for selection fields and for names of the endpoint that a resource belongs to. */
export const useEndpoints = (): readonly Endpoint[] => useEvery<Endpoint>(endpointsPath, 'endpoints:read') ?? [];
