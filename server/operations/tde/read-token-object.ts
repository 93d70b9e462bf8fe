// Finds and reads token objects. Finding goes by the index on group and label; nothing lists
// everything.

import { parseBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Ports } from '../../ports/ports.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { handleBytes } from './make-token-key.ts';
import { readContent } from './object-content.ts';
import type { SealTo, TdeOperations } from './tde-operations.ts';
import { admittedUses, type TokenKeyUseRow, tokenKeyUse, type UsePorts } from './token-key-pipeline.ts';
import { findVisible, instanceDetails, recordDenial, recordSearchElsewhere, show } from './visibility.ts';

const mostFound = 1000;
/**
 * Found objects whose uses are checked: a database looks for one key to use it, and others list.
 */
const mostAdmitted = 4;

type ReadPorts = UsePorts & Pick<Ports, 'identity'>;

/** A key's value: sealed, or for its owner to see. */
const exportRow = ({
  core,
}: UsePorts): TokenKeyUseRow<{ readonly handle: number; readonly to: SealTo | undefined }, Buffer> => ({
  wants: ({ handle }) => [{ handle, use: 'export', by: null }],
  checks: (_input, [{ object }]) => {
    if (object.sensitive) throw new ServiceError('forbidden', 'the value of a sensitive key is not shown');
  },
  work: ({ input: { handle, to } }, [{ reference, loaded }]) => {
    if (to !== undefined) return core.hpkeSealKey(to.recipient, to.info, handleBytes(handle), reference);
    return loaded.object.class === 'private-key' ? core.exportPrivateKey(reference) : core.exportSecret(reference);
  },
  record: async ({ caller, input: { to }, admitted: [{ object }] }, value, commit) => {
    try {
      await commit((tx) =>
        recordEvent(tx, 'key.exported', caller.actor, about('key', object), {
          applicationId: caller.application.id,
          ...instanceDetails(caller),
          form: to === undefined ? 'clear' : 'sealed',
        }),
      );
      return value;
    } catch (error) {
      core.wipe(value);
      throw error;
    }
  },
});

export const readTokenObjects = (
  ports: ReadPorts,
): Pick<TdeOperations, 'info' | 'findObjects' | 'getObject' | 'readValue'> => {
  const { ring, directory, identity } = ports;
  const exportKey = tokenKeyUse(ports, exportRow(ports));
  return {
    info: async ({ application }) => ({
      recipient: ring.recipient(application.tenantId),
      applicationId: application.id,
      applicationName: application.name,
      tokenLabel: application.tokenLabel,
      groupId: application.groupId,
      tenantId: application.tenantId,
      serverVersion: identity.version,
      compatibility: application.compatibility,
      epoch: directory.epoch(),
    }),
    findObjects: async (caller, { label, class: objectClass, after, limit }) => {
      if (label !== undefined && parseBase64(label) === null)
        throw new ServiceError('validation', 'label is not Base64');
      if (!Number.isSafeInteger(after) || after < 0) throw new ServiceError('validation', 'after is not a handle');
      if (!Number.isInteger(limit) || limit < 1 || limit > mostFound)
        throw new ServiceError('validation', `limit is from 1 to ${mostFound}`);
      const { objects: found, more } = await directory.findObjects(
        { groupId: caller.application.groupId, label, class: objectClass, after },
        limit,
      );
      if (found.length === 0 && after === 0 && label !== undefined && label !== '')
        await recordSearchElsewhere(ports, caller, label);
      const objects = found.map((object) => show(caller, object));
      if (label === undefined || more || objects.length > mostAdmitted) return { objects, more };
      const admits = await Promise.all(objects.map(({ handle }) => admittedUses(ports, caller, handle)));
      return { objects: objects.map((object, at) => ({ ...object, admits: admits[at] ?? [] })), more };
    },
    getObject: async (caller, handle) => show(caller, (await findVisible(ports, caller, handle, 'get')).object),
    readValue: async (caller, handle, to) => {
      const { object, key } = await findVisible(ports, caller, handle, 'export');
      if (key === undefined) return (await readContent(ports, object)).value;
      if (object.sensitive || !object.extractable) {
        await recordDenial(ports, caller, object, 'export', 'sensitive or not extractable');
        throw new ServiceError('forbidden', 'the value of a sensitive or unextractable key is not shown');
      }
      return exportKey(caller, { handle, to });
    },
  };
};
