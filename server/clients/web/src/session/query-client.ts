// How long answers are kept. After any 401, the sign-in page replaces the page at the same URL.

import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiProblem } from '../api/client.ts';
import { sessionQuery } from './current-session.ts';

export const createQueryClient = (): QueryClient => {
  const noticeSignOut = (error: unknown): void => {
    if (error instanceof ApiProblem && error.status === 401) client.setQueryData(sessionQuery.queryKey, null);
  };
  const client = new QueryClient({
    queryCache: new QueryCache({ onError: noticeSignOut }),
    mutationCache: new MutationCache({
      // A wrong code or password is a 401 too, and the session continues: ask the service for it.
      onError: (error) => {
        if (error instanceof ApiProblem && error.status === 401)
          void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      },
    }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        // Only temporary faults are tried again: no answer, or a server that is starting or
        // draining.
        retry: (count, error) =>
          count < 2 &&
          error instanceof ApiProblem &&
          (error.status === 0 || error.status === 503 || error.status === 504),
        retryDelay: (count) => 400 * 2 ** count,
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
  return client;
};
