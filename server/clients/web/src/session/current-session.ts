// Who is signed in. The session itself is an HttpOnly cookie that no script can read; this asks the
// server.

import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiProblem, send } from '../api/client.ts';
import type { Session } from '../api/types.ts';
import { chooseTenant } from './tenant.ts';

/** Whether this page has had a session that the user has not ended here. */
let lasting = false;
/** A request without a session: it has expired, or another person has ended it. */
export const wasEnded = (): boolean => lasting;

/** Whose answers are in the cache. */
let owner: string | null = null;
/**
 * What one person has read, and the tenant that they chose, is not for the next one at this page.
 */
const giveTo = (client: QueryClient, { id, missing }: Session): void => {
  if (missing !== null) return;
  if (owner !== null && owner !== id) {
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
    chooseTenant(null);
  }
  owner = id;
};

/** The session, or null without one. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal, client }): Promise<Session | null> => {
    try {
      const session = await send<Session>({ method: 'GET', path: '/api/session' }, { signal });
      lasting = true;
      giveTo(client, session);
      return session;
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
  // The session is asked for even while the other queries wait for it.
  networkMode: 'always',
});

/**
 * Whether the caller has a permission for the whole platform; undefined: not known yet. For display
 * only: the service checks each call.
 */
export const usePlatformRight = (permission: string): boolean | undefined =>
  useQuery(sessionQuery).data?.permissions.some(
    (right) => right.permission === permission && right.scope === null && right.tenantId === null,
  );

export const useSignOut = () => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => send<void>({ method: 'DELETE', path: '/api/session' }),
    onSuccess: () => {
      lasting = false;
      // The session's own entry stays: the frame watches it, and shows the sign-in page when it
      // becomes null.
      client.setQueryData(sessionQuery.queryKey, null);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
    },
  });
};
