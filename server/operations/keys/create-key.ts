// Makes a general-purpose AES-256 key in a vault. The key is born in the addon and stored sealed.

import { newId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import { checkTags } from '../../base/tags.ts';
import { newKey } from '../../domain/key.ts';
import { isVaultOpen } from '../../domain/key-policy.ts';
import type { Ports } from '../../ports/ports.ts';
import { findVault } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { keyOwner } from './key-records.ts';
import type { KeyOperations } from './keys-operations.ts';
import { asShown } from './shown-keys.ts';

export const createKey =
  ({ store, core, ring, clock }: Pick<Ports, 'store' | 'core' | 'ring' | 'clock'>): KeyOperations['create'] =>
  async (actor, { name, vaultId, tags: given = [] }) => {
    checkName(name);
    const tags = checkTags(given);
    const reference = core.generateAes(256);
    try {
      return await store.write(async (tx) => {
        const vault = await findVault(tx, actor.tenantId, vaultId);
        if (!isVaultOpen(vault)) throw new ServiceError('conflict', `the vault is ${vault.state}`);
        if (vault.kind !== 'general')
          throw new ServiceError('conflict', 'the vault belongs to a TDE group', {
            hint: 'create the key in a general vault',
          });
        const now = clock.now();
        const key = newKey({ id: newId(now), tenantId: vault.tenantId, vaultId, name, createdAt: now, tags });
        await tx.keys.insert(key);
        await tx.keys.insertVersion({ keyId: key.id, version: 1, createdAt: now });
        await tx.records.put(ring.seal(keyOwner(key), 1, 'vault-copy', reference));
        await recordEvent(tx, 'key.created', actor, about('key', key), {
          name,
          kind: key.kind,
          vaultId,
          algorithm: key.algorithm,
          bits: key.bits,
          usages: key.usages,
          origin: 'generated',
          ...(tags.length === 0 ? {} : { tags }),
        });
        return asShown(tx, key);
      });
    } finally {
      core.release(reference);
    }
  };
