// The value of a token object that is not a secret key: AES-256-GCM under a content key of its own. Layout: nonce (12),
// ciphertext, tag (16); the object's id is authenticated with it.

import { ServiceError } from '../../base/errors.ts';
import { idBytes } from '../../base/ids.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import { type OwnedRecord, RecordOwner, recordAttributes } from '../../ports/records.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';

const nonceLength = 12;
const tagLength = 16;

type ContentOwner = Pick<StoredObject, 'tenantId' | 'id' | 'integrity'>;

const ownerOf = (object: ContentOwner): RecordOwner => new RecordOwner('tde_objects', object, recordAttributes.content);

export const contentRecord = (from: Repositories, object: ContentOwner): Promise<OwnedRecord | undefined> =>
  from.records.of(ownerOf(object)).get(1, 'object-content');

/** Encrypts a value with a fresh nonce. */
const encryptContent = (core: Ports['core'], id: string, contentKey: KeyRef, value: Uint8Array): Buffer => {
  const content = Buffer.alloc(nonceLength + value.length + tagLength);
  const iv = content.subarray(0, nonceLength);
  core.random(iv);
  const parameters = { algorithm: 'aes-gcm', iv, aad: idBytes(id), tagLength } as const;
  core.cipher(contentKey, 'encrypt', parameters, value, content.subarray(nonceLength));
  return content;
};

export const sealContent = (
  { core, ring }: Pick<Ports, 'core' | 'ring'>,
  object: ContentOwner,
  contentKey: KeyRef,
  value: Uint8Array,
): { readonly content: Buffer; readonly record: OwnedRecord } => ({
  content: encryptContent(core, object.id, contentKey, value),
  record: ring.seal(ownerOf(object), 1, 'object-content', contentKey),
});

/** The content with another value, under the content key that the object has: who reads next to this opens the old value or the new one. */
export const replaceContent = async (
  { core, ring }: Pick<Ports, 'core' | 'ring'>,
  tx: Repositories,
  object: StoredObject,
  value: Uint8Array,
): Promise<Buffer> => {
  const record = await contentRecord(tx, object);
  if (record === undefined) throw new ServiceError('key-tampered', 'the stored value is incomplete');
  if (!ring.knows(record)) await ring.refresh(tx);
  const contentKey = ring.open(record);
  try {
    return encryptContent(core, object.id, contentKey, value);
  } finally {
    core.release(contentKey);
  }
};

/** The caller wipes the answer. */
export const openContent = (
  { core, ring }: Pick<Ports, 'core' | 'ring'>,
  object: StoredObject,
  record: OwnedRecord | undefined,
): Buffer => {
  const { content } = object;
  if (content === null || record === undefined || content.length < nonceLength + tagLength)
    throw new ServiceError('key-tampered', 'the stored value is incomplete');
  const contentKey = ring.open(record);
  try {
    const out = Buffer.alloc(content.length - nonceLength - tagLength);
    const iv = content.subarray(0, nonceLength);
    const parameters = { algorithm: 'aes-gcm', iv, aad: idBytes(object.id), tagLength } as const;
    core.cipher(contentKey, 'decrypt', parameters, content.subarray(nonceLength), out);
    return out;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'invalid-ciphertext')
      throw new ServiceError('key-tampered', 'the stored value does not authenticate', { cause: error });
    throw error;
  } finally {
    core.release(contentKey);
  }
};
