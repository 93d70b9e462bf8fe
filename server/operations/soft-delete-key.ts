// Soft deletion (specification section 3): the row stays, the vault copy is cleared on a best-effort basis and the answer
// says whether it was. A master key's sealed copy is untouched: its next use re-imports the vault copy. For a general key
// use is over.

import { ServiceError } from '../base/errors.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { Key } from '../domain/key.ts';
import { nextState } from '../domain/lifecycle.ts';
import { largestPageSize } from '../domain/page.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories } from '../ports/store.ts';
import type { Approvals } from './approvals.ts';
import { findKey, findVault } from './find.ts';
import type { KeyOperations } from './index.ts';

const clearVaultCopy = async (tx: Repositories, key: Key): Promise<void> => {
  for (const version of await tx.keys.versions(key.id)) await tx.records.wipe(key.id, version.version, 'vault-copy');
};

/** Endpoints whose key this is. */
const endpointsOf = async (from: Repositories, tenantId: string, keyId: string): Promise<readonly Endpoint[]> => {
  const found: Endpoint[] = [];
  let after: string | undefined;
  do {
    const page = await from.endpoints.list(tenantId, { after, limit: largestPageSize });
    found.push(...page.filter((endpoint) => endpoint.keyId === keyId));
    after = page.length < largestPageSize ? undefined : page.at(-1)?.id;
  } while (after !== undefined);
  return found;
};

const findDeletable = async (from: Repositories, tenantId: string, id: string): Promise<Key> => {
  const key = await findKey(from, tenantId, id);
  if (nextState(key.state, 'soft-delete') === null) throw new ServiceError('conflict', `the key is ${key.state}`);
  // A deleted general key is gone for its users; deleting it again tells so.
  if (key.state === 'soft-deleted' && key.kind === 'general') throw new ServiceError('key-not-found', 'no such key');
  return key;
};

export const softDeleteKey = (
  { directory, clock, log }: Pick<Ports, 'directory' | 'clock' | 'log'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<KeyOperations, 'softDelete' | 'planSoftDelete'> => {
  const governed = withApproval('key.delete', {
    permission: 'keys:delete',
    plan: async (from, tenantId, { id }: { readonly id: string }) => {
      const key = await findDeletable(from, tenantId, id);
      const endpoints = await endpointsOf(from, tenantId, id);
      return {
        tenantId: key.tenantId,
        subject: { kind: 'key', id, name: key.name },
        // A master key goes on from its sealed copy: its deletion ends nothing for good.
        vaults: key.kind === 'general' ? [await findVault(from, tenantId, key.vaultId)] : [],
        impact: {
          endsForGood: key.kind === 'general',
          endpoints: endpoints.slice(0, 100).map(({ name }) => name),
          lastUse: endpoints.length === 0 ? 'no endpoint has this key' : 'see the request log of the endpoints',
        },
        state: { state: key.state, vaultId: key.vaultId, currentVersion: key.currentVersion },
      };
    },
    carryOut: async (tx, actor, { id }) => {
      const before = await findDeletable(tx, actor.tenantId, id);
      const renew = { afterCommit: () => directory.renew({ keys: [id] }) };
      if (before.state === 'soft-deleted' && before.reimportedAt === null)
        return { answer: { key: before, vaultCopyCleared: true }, ...renew };
      const after: Key = { ...before, state: 'soft-deleted', deletedAt: clock.now(), reimportedAt: null };
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
      return { answer: { key: after, vaultCopyCleared }, ...renew };
    },
  });
  return {
    softDelete: (actor, id) => governed.run(actor, { id }),
    planSoftDelete: (actor, id) => governed.plan(actor, { id }),
  };
};
