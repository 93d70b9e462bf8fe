// Finds and reads token objects. Finding goes by the index on group and label; nothing lists everything.

import { parseBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import type { TdeOperations } from '../index.ts';
import { openContent } from './object-content.ts';
import { findVisible, recordDenial, show } from './visibility.ts';

const mostFound = 1000;

type ReadPorts = Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'identity' | 'log'>;

export const readTokenObjects = (
  ports: ReadPorts,
): Pick<TdeOperations, 'info' | 'findObjects' | 'getObject' | 'readValue'> => {
  const { store, core, directory, identity } = ports;
  return {
    info: async ({ application }) => ({
      applicationId: application.id,
      applicationName: application.name,
      groupId: application.groupId,
      tenantId: application.tenantId,
      serverVersion: identity.version,
      epoch: directory.epoch(),
    }),
    findObjects: async (caller, { label, class: objectClass, after, limit }) => {
      if (label !== undefined && parseBase64(label) === null)
        throw new ServiceError('validation', 'label is not Base64');
      if (!Number.isSafeInteger(after) || after < 0) throw new ServiceError('validation', 'after is not a handle');
      if (!Number.isInteger(limit) || limit < 1 || limit > mostFound)
        throw new ServiceError('validation', `limit is from 1 to ${mostFound}`);
      const found = await store.read.objects.find(
        { groupId: caller.application.groupId, label, class: objectClass, after },
        limit + 1,
      );
      return { objects: found.slice(0, limit).map((object) => show(caller, object)), more: found.length > limit };
    },
    getObject: async (caller, handle) => show(caller, (await findVisible(ports, caller, handle, 'get')).object),
    readValue: async (caller, handle) => {
      const { object, key } = await findVisible(ports, caller, handle, 'read-value');
      if (key === undefined)
        return openContent(ports, object, await store.read.records.get(object.id, 1, 'object-content'));
      if (object.sensitive || !object.extractable) {
        await recordDenial(ports, caller, object, 'read-value', 'sensitive or not extractable');
        throw new ServiceError('forbidden', 'the value of a sensitive or unextractable key is not shown');
      }
      if (object.applicationId !== caller.application.id)
        throw new ServiceError('forbidden', 'the value is for the owning application only');
      const record = await store.read.records.get(key.id, key.currentVersion, 'sealed-copy');
      if (record === undefined) throw new ServiceError('key-destroyed', 'the object is destroyed');
      const answer = await directory.withObjectKey(handle, (reference) =>
        object.class === 'private-key' ? core.exportPrivateKey(reference) : core.exportSecret(reference),
      );
      if (answer === undefined) throw new ServiceError('key-destroyed', 'the object is destroyed');
      return answer.value;
    },
  };
};
