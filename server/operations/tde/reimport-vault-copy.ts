// The first use of a master key after it was soft-deleted puts its vault copy back from the sealed
// copy.

import { ServiceError } from '../../base/service-error.ts';
import type { Key } from '../../domain/key.ts';
import type { Ports } from '../../ports/ports.ts';
import { keyOwner } from '../keys/key-records.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { TdeCaller } from './tde-operations.ts';
import { instanceDetails } from './visibility.ts';

/** Once for each deletion. */
export const reimportVaultCopy = async (
  { store, core, ring, directory, clock, log }: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock' | 'log'>,
  caller: TdeCaller,
  keyId: string,
): Promise<void> => {
  try {
    await store.write(async (tx) => {
      const key = await tx.keys.get(caller.application.tenantId, keyId);
      if (key === undefined || key.state !== 'soft-deleted' || key.reimportedAt !== null) return;
      const owner = keyOwner(key);
      const record = await tx.records.of(owner).get(key.currentVersion, 'sealed-copy');
      if (record === undefined) return;
      const reference = ring.open(record);
      try {
        await tx.records.put(ring.seal(owner, key.currentVersion, 'vault-copy', reference));
      } finally {
        core.release(reference);
      }
      const after: Key = { ...key, reimportedAt: clock.now() };
      await tx.keys.update(after);
      await recordEvent(tx, 'key.reimported', caller.actor, about('key', { id: keyId, tenantId: key.tenantId }), {
        name: key.name,
        applicationId: caller.application.id,
        ...instanceDetails(caller),
      });
    });
    await directory.renew({ keys: [keyId] });
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') throw error;
    // The sealed copy is enough to continue: a store that cannot be written must not stop the
    // database.
    log.error('a vault copy could not be re-imported; the next use tries again', { keyId, error });
  }
};
