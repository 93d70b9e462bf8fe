// The key store endpoints, all of them, and what one does now.

import { endpointsPath } from '../api/paths.ts';
import type { Endpoint } from '../api/types.ts';
import { useEvery } from '../session/every.ts';

/** What an endpoint does for its cloud now: enabled alone says little. */
export const stateOf = ({ state, keyState, credentials }: Endpoint): string => {
  if (state !== 'enabled') return state;
  if (keyState !== 'active') return 'key-unusable';
  if (credentials.length === 0) return 'no-credential';
  return credentials.every(({ lastUsedAt }) => lastUsedAt === null) ? 'never-called' : state;
};

/** All, for selection fields and for names of the endpoint that a resource belongs to. */
export const useEndpoints = (): readonly Endpoint[] => useEvery<Endpoint>(endpointsPath, 'endpoints:read') ?? [];
