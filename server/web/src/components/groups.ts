// The TDE groups, for selection fields and for the name of an application's group.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { TdeGroup } from '../api/types.ts';
import type { ListPage } from './list-view.tsx';

export const groupsPath = '/api/tde/groups';

export const useGroups = (): readonly TdeGroup[] =>
  useQuery({
    queryKey: [groupsPath, 'choices'],
    queryFn: ({ signal }) =>
      send<ListPage<TdeGroup>>({ method: 'GET', path: groupsPath, query: { limit: 100 } }, { signal }),
    staleTime: 30_000,
  }).data?.items ?? [];

/** The name of a group, or its id while the name is not known. */
export const nameGroup = (groups: readonly TdeGroup[], id: string): string =>
  groups.find((group) => group.id === id)?.name ?? id;
