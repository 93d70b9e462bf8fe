// Who is signed in. The session itself is an HttpOnly cookie that no script can read; this asks the server.

import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { ApiProblem, send } from '../api/client.ts';
import type { Session } from '../api/types.ts';

/** The session, or null when nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      return await send<Session>({ method: 'GET', path: '/api/session' }, { signal });
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

export const useSignOut = () => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => send<void>({ method: 'DELETE', path: '/api/session' }),
    onSuccess: () => {
      // The session's own entry stays: the frame watches it, and shows the sign-in page when it becomes null.
      client.setQueryData(sessionQuery.queryKey, null);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
    },
  });
};
