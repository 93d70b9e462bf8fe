// Repairs a master key that encrypts and never decrypts (base/master-keys.ts): it decrypts from now
// on. A database cannot do it, because its master keys are not modifiable. What the key already
// wrapped stays closed: a key that has wrapped a sensitive key never decrypts, and the transaction
// reads that mark. Done twice, the second one changes nothing.

import { isMasterKeyLabel } from '../../base/master-keys.ts';
import { ServiceError } from '../../base/service-error.ts';
import { keyUsages } from '../../domain/key.ts';
import type { Ports } from '../../ports/ports.ts';
import { findApplication } from '../shared/find.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { MasterKeyOperations } from './keys-operations.ts';
import { findMasterKey } from './master-key-view.ts';

export const allowDecryption =
  ({ store, directory }: Pick<Ports, 'store' | 'directory'>): MasterKeyOperations['allowDecryption'] =>
  async (actor, applicationId, keyId) => {
    const { tenantId } = actor;
    const { key, handle } = await store.write(async (tx) => {
      await findApplication(tx, tenantId, applicationId);
      const before = await tx.keys.get(tenantId, keyId);
      const view = await findMasterKey(tx, applicationId, before);
      const object = await tx.objects.get(view.handle);
      if (before === undefined || object === undefined || view.state === 'destroyed')
        throw new ServiceError('key-destroyed', 'the key is destroyed');
      if (view.integrity !== 'ok') throw new ServiceError('key-tampered', 'the key was changed outside of DKE');
      if (object.wrappedSensitive)
        throw new ServiceError('conflict', `${view.name} has wrapped a sensitive key, so it never decrypts`, {
          hint: 'set a new master key in the database before it encrypts more data',
        });
      if (object.usages.includes('decrypt')) return { key: view, handle: null };
      const isDatabaseKey = isMasterKeyLabel(Buffer.from(object.label, 'base64'));
      if (object.class !== 'secret-key' || object.algorithm !== 'aes' || !isDatabaseKey)
        throw new ServiceError('conflict', `${view.name} is not the master key of a database`, {
          hint: 'its own program changes what such a key may do (C_SetAttributeValue)',
        });
      const usages = keyUsages.filter((usage) => usage === 'decrypt' || object.usages.includes(usage));
      await tx.objects.update({ ...object, usages });
      const after = { ...before, usages };
      await tx.keys.update(after);
      await recordEvent(tx, 'key.decryption-allowed', actor, about('key', after), {
        name: after.name,
        label: object.label,
        applicationId,
      });
      return { key: await findMasterKey(tx, applicationId, after), handle: view.handle };
    });
    if (handle !== null) await directory.renew({ keys: [keyId], objects: [handle] });
    return key;
  };
