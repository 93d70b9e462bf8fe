// Master keys as people see them: key rows together with their token objects. A page costs as many
// queries as one key does.

import { ServiceError } from '../../base/service-error.ts';
import type { Key } from '../../domain/key.ts';
import type { MasterKey } from '../../domain/tde.ts';
import type { Repositories } from '../../ports/store.ts';
import { showKeys } from './shown-keys.ts';

/** The master keys of the application among `keys`, in the order of `keys`. */
export const viewMasterKeys = async (
  from: Pick<Repositories, 'objects' | 'records' | 'vaults'>,
  applicationId: string,
  keys: readonly Key[],
): Promise<readonly MasterKey[]> => {
  const wanted = keys.filter((key) => key.kind === 'master' && key.applicationId === applicationId);
  if (wanted.length === 0) return [];
  const ids = wanted.map(({ id }) => id);
  // Keys of one application are of its tenant.
  const tenantId = wanted[0]?.tenantId ?? '';
  const objects = new Map((await from.objects.listByIds(ids)).map((object) => [object.id, object]));
  const copies = new Set(
    (await from.records.copies(tenantId, ids)).map((copy) => `${copy.objectId} ${copy.version} ${copy.class}`),
  );
  const newest = await from.objects.newestMasterKey(applicationId);
  return (await showKeys(from, wanted)).flatMap((key): MasterKey[] => {
    const object = objects.get(key.id);
    if (object === undefined) return [];
    return [
      {
        ...key,
        kind: 'master',
        applicationId,
        groupId: object.groupId,
        handle: object.handle,
        label: object.label,
        origin: object.local ? 'generated' : 'imported',
        class: object.class === 'private-key' ? 'private-key' : 'secret-key',
        sensitive: object.sensitive,
        extractable: object.extractable,
        neverDecrypts: object.wrappedSensitive,
        checkValue: object.checkValue === null ? null : Buffer.from(object.checkValue, 'base64').toString('hex'),
        publicKey: object.publicKey,
        sealedCopy: copies.has(`${key.id} ${key.currentVersion} sealed-copy`),
        vaultCopy: copies.has(`${key.id} ${key.currentVersion} vault-copy`),
        newest: key.id === newest,
        integrity: key.integrity === 'ok' ? object.integrity : key.integrity,
      },
    ];
  });
};

export const findMasterKey = async (
  from: Pick<Repositories, 'objects' | 'records' | 'vaults'>,
  applicationId: string,
  key: Key | undefined,
): Promise<MasterKey> => {
  const [found] = key === undefined ? [] : await viewMasterKeys(from, applicationId, [key]);
  if (found === undefined)
    throw new ServiceError('key-not-found', 'master key not found', { hint: 'identifiers are case-sensitive' });
  return found;
};
