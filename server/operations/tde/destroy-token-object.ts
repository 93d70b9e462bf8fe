// Destroys a token object of the caller's own permanently: a key through `destroyKey` (both copies,
// audit, erasure run), a value by overwriting it and its content key's record.

import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { type DestroyedBy, destroyKey } from '../keys/destroy-master-key.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { TdeCaller, TdeOperations } from './tde-operations.ts';
import { findVisible, instanceDetails, recordDenial, requireOwner } from './visibility.ts';

/** The instance that asked, as the record of a key's destruction has it. */
export const destroyedBy = (caller: TdeCaller): DestroyedBy => ({
  appId: caller.appId,
  host: caller.instance.host.slice(0, 255),
  process: caller.instance.process.slice(0, 255),
});

/** An object that is not a key: its value, inside a transaction. */
export const destroyValueIn = async (
  tx: Repositories,
  caller: TdeCaller,
  { id, tenantId, handle, class: objectClass, label }: StoredObject,
  clock: Ports['clock'],
): Promise<void> => {
  await tx.objects.destroy(handle, await destructionTime(tx, clock));
  await tx.records.wipe({ tenantId, objectId: id, version: 1, class: 'object-content' });
  await recordEvent(tx, 'object.destroyed', caller.actor, about('object', { id, tenantId }), {
    class: objectClass,
    label,
    handle,
    ...instanceDetails(caller),
  });
};

export const destroyTokenObject = (
  ports: Pick<Ports, 'store' | 'directory' | 'clock' | 'erasure' | 'usage'>,
): TdeOperations['destroyObject'] => {
  const destroy = destroyKey(ports);
  const { store, directory, clock, erasure } = ports;
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
        await destroy(caller.actor, object.tenantId, caller.application.id, object.id, destroyedBy(caller));
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
      await destroyValueIn(tx, caller, object, clock);
    });
    await directory.renew({ objects: [handle] });
    erasure.schedule();
  };
};
