// Whose records those of keys and credentials are. A row that was changed from outside owns none.

import type { Key } from '../../domain/key.ts';
import type { Integrity } from '../../domain/vault.ts';
import { RecordOwner, recordAttributes } from '../../ports/key-record.ts';

export const keyOwner = (
  key: Pick<Key, 'id' | 'tenantId' | 'algorithm' | 'bits' | 'kind' | 'integrity'>,
): RecordOwner => new RecordOwner('keys', key, recordAttributes.key(key));

/** `integrity`: of the endpoint, which is that of its credentials too. */
export const credentialOwner = (
  { tenantId, integrity }: { readonly tenantId: string; readonly integrity: Integrity },
  { id, accessKeyId }: { readonly id: string; readonly accessKeyId: string },
): RecordOwner =>
  new RecordOwner('endpoint_credentials', { tenantId, id, integrity }, recordAttributes.credential(accessKeyId));
