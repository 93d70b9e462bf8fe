// The name of a vault is unique among the live vaults of its tenant, whether a user gives it or it
// follows the name of a group.

import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import type { Sound, Vault } from '../../domain/vault.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from './record-event.ts';

/** The name of the vault that holds the master keys of a group. */
export const vaultNameOfGroup = (group: string): string => `TDE group ${group}`;

export const requireFreeVaultName = async (tx: Repositories, tenantId: string, name: string): Promise<void> => {
  if ((await tx.vaults.findByName(tenantId, name)) !== undefined)
    throw new ServiceError('conflict', `a vault with the name ${name} already exists`, { hint: 'choose another name' });
};

/** Throws where the vault cannot have the name. */
export const requireNewVaultName = async (tx: Repositories, before: Sound<Vault>, name: string): Promise<void> => {
  if (before.state === 'deleted') throw new ServiceError('conflict', 'the vault is deleted');
  if (before.name !== name) await requireFreeVaultName(tx, before.tenantId, name);
};

/** The step within a transaction; the caller renews the directory after it. */
export const renameVaultIn = async (
  tx: Repositories,
  actor: TenantActor,
  before: Sound<Vault>,
  name: string,
): Promise<Vault> => {
  await requireNewVaultName(tx, before, name);
  if (before.name === name) return before;
  const after: Vault = { ...before, name };
  await tx.vaults.update(after);
  await recordEvent(tx, 'vault.renamed', actor, about('vault', after), { name, from: before.name });
  return after;
};
