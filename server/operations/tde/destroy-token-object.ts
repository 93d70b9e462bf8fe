// Destroys a token object of the caller's own, for good: a key through `destroyKey` (both copies, audit, erasure turn), a
// value by overwriting it and its content key's record.

import { ServiceError } from '../../base/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import { destroyKey } from '../destroy-master-key.ts';
import type { TdeOperations } from '../index.ts';
import { findVisible, instanceDetails, recordDenial, requireOwner } from './visibility.ts';

export const destroyTokenObject = (
  ports: Pick<Ports, 'store' | 'directory' | 'clock' | 'erasure' | 'usage'>,
): TdeOperations['destroyObject'] => {
  const destroy = destroyKey(ports);
  const { store, directory, clock } = ports;
  return async (caller, handle) => {
    const loaded = await findVisible(ports, caller, handle, 'destroy');
    await requireOwner(ports, caller, loaded, 'destroy');
    const { object } = loaded;
    if (!object.destroyable) {
      await recordDenial(ports, caller, object, 'destroy', 'not destroyable');
      throw new ServiceError('forbidden', 'the object is not destroyable');
    }
    if (loaded.key !== undefined) {
      try {
        await destroy(caller.actor, object.tenantId, caller.application.id, object.id, {
          appId: caller.appId,
          host: caller.instance.host.slice(0, 255),
          process: caller.instance.process.slice(0, 255),
        });
      } catch (error) {
        if (error instanceof ServiceError && error.reason === 'dual-control')
          await recordDenial(ports, caller, object, 'destroy', 'dual control');
        throw error;
      }
      return;
    }
    await store.write(async (tx) => {
      const before = await tx.objects.get(handle);
      if (before === undefined || before.destroyedAt !== null)
        throw new ServiceError('key-destroyed', 'the object is destroyed');
      await tx.objects.destroy(handle, clock.now());
      await tx.records.wipe(object.id, 1, 'object-content');
      await tx.audit.append({
        kind: 'object.destroyed',
        actor: caller.actor,
        tenantId: object.tenantId,
        subject: { kind: 'object', id: object.id },
        details: { class: object.class, label: object.label, handle, ...instanceDetails(caller) },
      });
    });
    await directory.renew({ objects: [handle] });
  };
};
