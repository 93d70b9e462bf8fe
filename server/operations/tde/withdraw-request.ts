// The end of a request whose outcome the agent could not learn in time: its caller was told that it
// failed, so nothing of it may remain. If the request comes later, it is refused. If it was carried
// out, what it created is destroyed: its handle was never returned. Another process of the database
// may have found it by its label and used it; then data may depend on it, and it stays.

import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import { destroyKeyIn } from '../keys/destroy-master-key.ts';
import { withdrawOnce } from './carry-out-once.ts';
import { destroyedBy, destroyValueIn } from './destroy-token-object.ts';
import type { TdeOperations } from './tde-operations.ts';

export const withdrawRequest = (
  ports: Pick<Ports, 'store' | 'directory' | 'clock' | 'erasure' | 'usage'>,
): TdeOperations['withdraw'] => {
  const { store, directory, clock, erasure, usage } = ports;
  const destroyKey = destroyKeyIn(ports);
  return async (caller, key) => {
    await usage.flush(false);
    const afterCommit: (() => Promise<void>)[] = [];
    const outcome = await store.write((tx) => {
      afterCommit.length = 0;
      return withdrawOnce(tx, caller, key, clock.now(), async (created) => {
        // Which keys these are, and whether they are keys, verified rows say: what is destroyed
        // here has no rule, and is erased from snapshots, too.
        for (const { id, tenantId, integrity } of created) {
          if (integrity !== 'ok')
            throw new ServiceError('key-tampered', 'the stored object of the key was changed from outside', {
              hint: 'compare the database with a backup; dke verify names every such row',
            });
          if (((await tx.keys.get(tenantId, id))?.lastUsedAt ?? null) !== null) return false;
        }
        for (const object of created) {
          const { id, tenantId, handle } = object;
          if ((await tx.keys.get(tenantId, id)) === undefined) {
            await destroyValueIn(tx, caller, object, clock);
            afterCommit.push(async () => {
              await directory.renew({ objects: [handle] });
              erasure.schedule();
            });
          } else {
            const destroyed = await destroyKey(
              tx,
              caller.actor,
              tenantId,
              caller.application.id,
              id,
              destroyedBy(caller),
            );
            afterCommit.push(destroyed.afterCommit);
          }
        }
        return true;
      });
    });
    for (const each of afterCommit) await each();
    return outcome;
  };
};
