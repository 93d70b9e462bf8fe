// A master key as people see it: its key row together with its token object.

import { ServiceError } from '../base/errors.ts';
import type { Key } from '../domain/key.ts';
import type { MasterKey } from '../domain/tde.ts';
import type { Repositories } from '../ports/store.ts';

export const findMasterKey = async (
  from: Repositories,
  applicationId: string,
  key: Key | undefined,
): Promise<MasterKey> => {
  const object =
    key?.kind === 'master' && key.applicationId === applicationId ? await from.objects.getById(key.id) : undefined;
  if (key === undefined || object === undefined)
    throw new ServiceError('key-not-found', 'no such master key', { hint: 'identifiers are compared with their case' });
  const [version] = await from.keys.versions(key.id);
  return {
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
    sealedCopy: (await from.records.get(key.id, key.currentVersion, 'sealed-copy')) !== undefined,
    vaultCopy: version?.vaultCopy ?? false,
    lastUsedAt: await from.objects.lastUsed(key.id),
    integrity: key.integrity === 'ok' ? object.integrity : key.integrity,
  };
};
