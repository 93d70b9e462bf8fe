// Soft deletion (specification section 3): the row stays, the vault copy is cleared on a best-effort basis and the answer
// says whether it was. A master key's sealed copy is untouched: its next use re-imports the vault copy. For a general key
// use is over.

import { ServiceError } from '../base/errors.ts';
import type { Key } from '../domain/key.ts';
import { nextState } from '../domain/lifecycle.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories } from '../ports/store.ts';
import { findKey } from './find.ts';
import type { KeyOperations } from './index.ts';

const clearVaultCopy = async (tx: Repositories, key: Key): Promise<void> => {
  for (const version of await tx.keys.versions(key.id)) await tx.records.wipe(key.id, version.version, 'vault-copy');
};

export const softDeleteKey =
  ({
    store,
    directory,
    clock,
    log,
  }: Pick<Ports, 'store' | 'directory' | 'clock' | 'log'>): KeyOperations['softDelete'] =>
  async (actor, id) => {
    const result = await store.write(async (tx) => {
      const before = await findKey(tx, actor.tenantId, id);
      const state = nextState(before.state, 'soft-delete');
      if (state === null) throw new ServiceError('conflict', `the key is ${before.state}`);
      // A deleted general key is gone for its users; deleting it again tells so.
      if (before.state === 'soft-deleted' && before.kind === 'general')
        throw new ServiceError('key-not-found', 'no such key');
      if (before.state === 'soft-deleted' && before.reimportedAt === null)
        return { key: before, vaultCopyCleared: true };
      const after: Key = { ...before, state, deletedAt: clock.now(), reimportedAt: null };
      await tx.keys.update(after);
      let vaultCopyCleared = true;
      try {
        await clearVaultCopy(tx, after);
      } catch (error) {
        vaultCopyCleared = false;
        log.warn('the vault copy of a deleted key was not cleared', { keyId: id, error });
      }
      await tx.audit.append({
        kind: 'key.deleted',
        actor,
        tenantId: after.tenantId,
        subject: { kind: 'key', id },
        details: { name: after.name, kind: after.kind, vaultCopy: vaultCopyCleared ? 'cleared' : 'kept' },
      });
      return { key: after, vaultCopyCleared };
    });
    await directory.renew({ keys: [id] });
    return result;
  };
