// What a key's records bind: the immutable attributes, in one canonical text. A record moved below a row that says
// otherwise does not open.

import { canonicalJson } from '../../base/bytes.ts';
import type { Key } from '../../domain/key.ts';
import type { RecordClass, RecordPlace } from '../../ports/records.ts';

export const recordAttributes = (key: Pick<Key, 'algorithm' | 'bits' | 'kind'>): string =>
  canonicalJson({ algorithm: key.algorithm, bits: key.bits, kind: key.kind });

export const recordPlace = (
  key: Pick<Key, 'id' | 'tenantId' | 'algorithm' | 'bits' | 'kind'>,
  version: number,
  recordClass: RecordClass,
): RecordPlace => ({
  tenantId: key.tenantId,
  objectId: key.id,
  version,
  class: recordClass,
  attributes: recordAttributes(key),
});

/** A credential's record binds the access key id, so that secrets cannot be swapped between credentials. */
export const credentialAttributes = (accessKeyId: string): string => canonicalJson({ accessKeyId });
