// The vaults, all of them: for selection fields and for the name of a resource's vault.

import { vaultsPath } from '../api/paths.ts';
import type { Vault } from '../api/types.ts';
import { useEvery } from '../session/every.ts';

export const useVaults = (): readonly Vault[] => useEvery<Vault>(vaultsPath, 'vaults:read') ?? [];

/** The name of a vault, or its id while the name is not known. */
export const nameVault = (vaults: readonly Vault[], id: string): string =>
  vaults.find((vault) => vault.id === id)?.name ?? id;
