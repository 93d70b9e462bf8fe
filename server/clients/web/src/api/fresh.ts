// Reads a resource again, with its entity tag, when a dialog asks to remove it: the user confirms
// what is shown, and the server refuses (If-Match) when it changed in between.

import { useQuery } from '@tanstack/react-query';
import { type Answer, sendForAnswer } from './client.ts';

export const useFresh = <T>(path: string) =>
  useQuery<Answer<T>>({
    queryKey: [path, 'fresh'],
    queryFn: ({ signal }) => sendForAnswer<T>({ method: 'GET', path }, { signal }),
    staleTime: 0,
    gcTime: 0,
  });
