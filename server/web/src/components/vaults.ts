// The vaults, for the places that offer a choice of one or name the one a thing is in. A hundred at most are offered; more
// are found through their own page.

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
