// Adds a version to a general key. Older versions stay and open what they sealed.

import { ServiceError } from '../../base/service-error.ts';
import type { Key, KeyVersion } from '../../domain/key.ts';
import type { Ports } from '../../ports/ports.ts';
import { findKey } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { keyOwner } from './key-records.ts';
import type { KeyOperations } from './keys-operations.ts';

/** XKS ciphertexts carry the version in three bytes. */
const largestVersion = 0xffffff;

export const rotateKey =
  ({
    store,
    core,
    ring,
    directory,
    clock,
  }: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'clock'>): KeyOperations['rotate'] =>
  async (actor, id) => {
    const reference = core.generateAes(256);
    try {
      const version = await store.write(async (tx): Promise<KeyVersion> => {
        const key = await findKey(tx, actor.tenantId, id);
        if (key.kind !== 'general')
          throw new ServiceError('conflict', 'only its database can rotate a master key', {
            hint: 'run ADMINISTER KEY MANAGEMENT SET KEY in the database',
          });
        if (key.state !== 'active') throw new ServiceError('conflict', `the key is ${key.state}`);
        if (key.currentVersion >= largestVersion) throw new ServiceError('conflict', 'the key has too many versions');
        const added = key.currentVersion + 1;
        const now = clock.now();
        const after: Key = { ...key, currentVersion: added };
        await tx.keys.update(after);
        await tx.keys.insertVersion({ keyId: id, version: added, createdAt: now });
        await tx.records.put(ring.seal(keyOwner(after), added, 'vault-copy', reference));
        await recordEvent(tx, 'key.rotated', actor, about('key', key), { name: key.name, version: added });
        return { keyId: id, version: added, createdAt: now, vaultCopy: true };
      });
      await directory.renew({ keys: [id] });
      return version;
    } finally {
      core.release(reference);
    }
  };
