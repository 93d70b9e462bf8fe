// Renames a TDE application or a group. Its id, its credentials, its app_id and the label of its
// token stay: databases notice nothing. The vault of a group is renamed with it, unless it is
// deleted.

import { ServiceError } from '../../base/errors.ts';
import type { TdeApplication, TdeGroup } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication, findGroup, findVault } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { renameVaultIn, vaultNameOfGroup } from '../shared/vault-names.ts';
import type { ApplicationOperations, TdeGroupOperations } from './interface.ts';

export const renameApplication =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): ApplicationOperations['rename'] =>
  async (actor, id, { name }) => {
    checkName(name);
    const application = await store.write(async (tx): Promise<TdeApplication> => {
      const before = await findApplication(tx, actor.tenantId, id);
      if (before.name === name) return before;
      if ((await tx.applications.findByName(before.tenantId, name)) !== undefined)
        throw new ServiceError('conflict', 'an application with this name already exists', {
          hint: 'choose another name',
        });
      const after: TdeApplication = { ...before, name };
      await tx.applications.update(after);
      await recordEvent(tx, 'application.renamed', actor, about('application', after), { name, from: before.name });
      return after;
    });
    await directory.renew({ applications: [id] });
    return application;
  };

export const renameGroup =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): TdeGroupOperations['rename'] =>
  async (actor, id, { name }) => {
    checkName(name);
    const group = await store.write(async (tx): Promise<TdeGroup> => {
      const before = await findGroup(tx, actor.tenantId, id);
      if (before.name === name) return before;
      if ((await tx.groups.findByName(before.tenantId, name)) !== undefined)
        throw new ServiceError('conflict', 'a group with this name already exists', { hint: 'choose another name' });
      const vault = await findVault(tx, before.tenantId, before.vaultId);
      if (vault.state !== 'deleted') await renameVaultIn(tx, actor, vault, vaultNameOfGroup(name));
      const after: TdeGroup = { ...before, name };
      await tx.groups.update(after);
      await recordEvent(tx, 'group.renamed', actor, about('group', after), { name, from: before.name });
      return after;
    });
    await directory.renew({ vaults: [group.vaultId] });
    return group;
  };
