// Changes the label, the usages or the agent's attributes of a modifiable object of the caller's own. What protects a key
// (sensitive, extractable, algorithm) is not changed here at all.

import { parseBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredObject } from '../../ports/store.ts';
import type { TdeOperations } from '../index.ts';
import { isFreeLabel, nameFromLabel } from './create-token-object.ts';
import { findVisible, instanceDetails, requireOwner, show } from './visibility.ts';

export const updateTokenObject =
  (ports: Pick<Ports, 'store' | 'directory' | 'log'>): TdeOperations['updateObject'] =>
  async (caller, handle, change) => {
    const { store, directory } = ports;
    const loaded = await findVisible(ports, caller, handle, 'update');
    await requireOwner(ports, caller, loaded, 'update');
    if (!loaded.object.modifiable) throw new ServiceError('forbidden', 'the object is not modifiable');
    if (change.label !== undefined && parseBase64(change.label) === null)
      throw new ServiceError('validation', 'label is not Base64');
    if (change.attributes !== undefined && parseBase64(change.attributes) === null)
      throw new ServiceError('validation', 'attributes is not Base64');
    const after = await store.write(async (tx): Promise<StoredObject> => {
      const before = await tx.objects.get(handle);
      if (before === undefined || before.destroyedAt !== null)
        throw new ServiceError('key-destroyed', 'the object is destroyed');
      const next: StoredObject = {
        ...before,
        label: change.label ?? before.label,
        attributes: change.attributes ?? before.attributes,
        usages: change.usages ?? before.usages,
      };
      if (before.wrappedSensitive && next.usages.includes('decrypt'))
        throw new ServiceError('forbidden', 'a key that has wrapped sensitive keys does not decrypt');
      if (next.label !== before.label && !(await isFreeLabel(tx, next, handle)))
        throw new ServiceError('label-exists', 'a key of the group has this label');
      await tx.objects.update(next);
      const key = await tx.keys.get(before.id);
      if (key !== undefined) await tx.keys.update({ ...key, name: nameFromLabel(next.label), usages: next.usages });
      await tx.audit.append({
        kind: 'object.updated',
        actor: caller.actor,
        tenantId: before.tenantId,
        subject: { kind: key === undefined ? 'object' : 'key', id: before.id },
        details: {
          class: before.class,
          label: next.label,
          handle,
          changed: Object.entries(change)
            .filter(([, value]) => value !== undefined)
            .map(([name]) => name),
          ...instanceDetails(caller),
        },
      });
      return next;
    });
    await directory.renew({ objects: [handle], keys: [after.id] });
    return show(caller, after);
  };
