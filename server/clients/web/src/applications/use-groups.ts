// The TDE groups, for selection fields and for the name of an application's group.

import { groupsPath } from '../api/paths.ts';
import type { TdeGroup } from '../api/types.ts';
import { useEvery } from '../session/every.ts';

export const useGroups = (): readonly TdeGroup[] => useEvery<TdeGroup>(groupsPath, 'applications:read') ?? [];

/** The name of a group, or its id while the name is not known. */
export const nameGroup = (groups: readonly TdeGroup[], id: string): string =>
  groups.find((group) => group.id === id)?.name ?? id;
