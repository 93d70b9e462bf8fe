// Soft deletion: the row stays, the vault copy is cleared on a best-effort basis and the answer
// says whether it was. A master key's sealed copy is untouched: its next use re-imports the vault
// copy. For a general key use is over.

import { ServiceError } from '../../base/service-error.ts';
import type { Key } from '../../domain/key.ts';
import { nextState } from '../../domain/lifecycle.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { findKey, findVault } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { findKeyUse, lastUse } from './key-use.ts';
import type { KeyOperations } from './keys-operations.ts';
import { asShown } from './shown-keys.ts';

const clearVaultCopy = async (tx: Repositories, { id, tenantId }: Key) =>
  tx.records.tryWipe(
    (await tx.keys.versions(id)).map(({ version }) => ({ tenantId, objectId: id, version, class: 'vault-copy' })),
  );

const findDeletable = async (from: Repositories, tenantId: string, id: string): Promise<Key> => {
  const key = await findKey(from, tenantId, id);
  if (nextState(key.state, 'soft-delete') === null) throw new ServiceError('conflict', `the key is ${key.state}`);
  // A deleted general key is gone for its users; deleting it again tells so.
  if (key.state === 'soft-deleted' && key.kind === 'general') throw new ServiceError('key-not-found', 'key not found');
  return key;
};

export const softDeleteKey = (
  { directory, clock, log, usage }: Pick<Ports, 'directory' | 'clock' | 'log' | 'usage'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<KeyOperations, 'softDelete' | 'planSoftDelete'> => {
  const governed = withApproval('key.delete', {
    permission: 'keys:delete',
    plan: async (from, tenantId, { id }: { readonly id: string }) => {
      const key = await findDeletable(from, tenantId, id);
      const use = await findKeyUse(from, key);
      const endpoints = use.endpoints.filter(({ state }) => state !== 'deleted');
      return {
        tenantId: key.tenantId,
        subject: { kind: 'key', id, name: key.name },
        // A master key continues from its sealed copy: its deletion ends nothing permanently.
        vaults: key.kind === 'general' ? [await findVault(from, tenantId, key.vaultId)] : [],
        impact: { endsForGood: key.kind === 'general' },
        named: { endpoints: endpoints.map((endpoint) => ({ kind: 'endpoint', id: endpoint.id, name: endpoint.name })) },
        marks: lastUse(use),
        state: { state: key.state, vaultId: key.vaultId, currentVersion: key.currentVersion },
      };
    },
    carryOut: async (tx, actor, { id }) => {
      const before = await findDeletable(tx, actor.tenantId, id);
      const renew = { afterCommit: () => directory.renew({ keys: [id] }) };
      if (before.state === 'soft-deleted' && before.reimportedAt === null)
        return { answer: { key: await asShown(tx, before), vaultCopyCleared: true }, ...renew };
      const after: Key = { ...before, state: 'soft-deleted', deletedAt: clock.now(), reimportedAt: null };
      await tx.keys.update(after);
      const kept = await clearVaultCopy(tx, after);
      const vaultCopyCleared = kept === undefined;
      if (kept !== undefined)
        log.warn('the vault copy of a deleted key could not be cleared', { keyId: id, error: kept.failure });
      await recordEvent(tx, 'key.deleted', actor, about('key', after), {
        name: after.name,
        kind: after.kind,
        vaultCopy: vaultCopyCleared ? 'cleared' : 'kept',
      });
      return { answer: { key: await asShown(tx, after), vaultCopyCleared }, ...renew };
    },
  });
  return {
    softDelete: (actor, id) => governed.run(actor, { id }),
    planSoftDelete: async (actor, id) => {
      await usage.flush(false);
      return governed.plan(actor, { id });
    },
  };
};
