// The vaults, for selection fields and for the name of a resource's vault. At most a hundred are offered; their own
// page lists them all.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { Vault } from '../api/types.ts';
import type { ListPage } from './list-view.tsx';

export const vaultsPath = '/api/vaults';

export const useVaults = (): readonly Vault[] =>
  useQuery({
    queryKey: [vaultsPath, 'choices'],
    queryFn: ({ signal }) =>
      send<ListPage<Vault>>({ method: 'GET', path: vaultsPath, query: { limit: 100 } }, { signal }),
    staleTime: 30_000,
  }).data?.items ?? [];

/** The name of a vault, or its id while the name is not known. */
export const nameVault = (vaults: readonly Vault[], id: string): string =>
  vaults.find((vault) => vault.id === id)?.name ?? id;
