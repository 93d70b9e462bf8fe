// Vaults, put together.

import type { Ports } from '../../ports/ports.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { changeVault, deleteVault, setVaultProfile } from './change-vault.ts';
import { createVault } from './create-vault.ts';
import { readVaults } from './read-vaults.ts';
import { renameVault } from './rename-vault.ts';
import type { VaultOperations } from './vaults-operations.ts';

export const createVaultOperations = (ports: Ports, approvals: Approvals): VaultOperations => ({
  ...readVaults(ports),
  create: createVault(ports),
  enable: changeVault(ports, 'enabled'),
  disable: changeVault(ports, 'disabled'),
  setProfile: setVaultProfile(ports),
  ...renameVault(ports, approvals),
  ...deleteVault(ports, approvals),
});
