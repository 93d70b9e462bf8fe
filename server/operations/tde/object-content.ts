// The value of a token object that is not a secret key: encrypted (shared/sealed-content.ts) under
// a content key that no other value has. The row of the object has the digest of the content under
// its authentication code, so an older value that is put back is not accepted, with its key or
// without (docs/decisions/0054-values-under-the-code.md). Values of earlier versions have no digest
// until their row is written again, and share their content key with those that they had before.

import { ServiceError } from '../../base/service-error.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import { type OwnedRecord, RecordOwner, recordAttributes } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { decryptContent, encryptContent } from '../shared/sealed-content.ts';

type ContentOwner = Pick<StoredObject, 'tenantId' | 'id' | 'integrity'>;

const ownerOf = (object: ContentOwner): RecordOwner => new RecordOwner('tde_objects', object, recordAttributes.content);

const contentRecord = (from: Repositories, object: ContentOwner): Promise<OwnedRecord | undefined> =>
  from.records.of(ownerOf(object)).get(1, 'object-content');

export const sealContent = (
  { core, ring }: Pick<Ports, 'core' | 'ring'>,
  object: ContentOwner,
  contentKey: KeyRef,
  value: Uint8Array,
): { readonly content: Buffer; readonly record: OwnedRecord } => ({
  content: encryptContent(core, object.id, contentKey, value),
  record: ring.seal(ownerOf(object), 1, 'object-content', contentKey),
});

/**
 * The content with another value, and the record of its own new content key: who has the former
 * record opens only what was under it.
 */
export const replaceContent = async (
  ports: Pick<Ports, 'core' | 'ring'>,
  tx: Repositories,
  object: StoredObject,
  value: Uint8Array,
): Promise<Buffer> => {
  const contentKey = ports.core.generateAes(256);
  try {
    const { content, record } = sealContent(ports, object, contentKey, value);
    // Overwritten in its own page first: the former key stays in older pages and logs only, until
    // the erasure run.
    await tx.records.wipe(record);
    await tx.records.put(record);
    return content;
  } finally {
    ports.core.release(contentKey);
  }
};

const openContent = (
  { core, ring }: Pick<Ports, 'core' | 'ring'>,
  object: StoredObject,
  record: OwnedRecord | undefined,
): Buffer => {
  if (record === undefined) throw new ServiceError('key-tampered', 'the stored value is incomplete');
  const contentKey = ring.open(record);
  try {
    return decryptContent(core, object.id, contentKey, object.content);
  } finally {
    core.release(contentKey);
  }
};

/**
 * The value and the version of the object that has it. The caller wipes it. Throws 'key-tampered',
 * and 'key-destroyed' where it is gone by now.
 */
export const readContent = async (
  ports: Pick<Ports, 'core' | 'ring' | 'store'>,
  object: StoredObject,
): Promise<{ readonly value: Buffer; readonly version: number | undefined }> => {
  const open = async (from: Repositories, found: StoredObject) => {
    const record = await contentRecord(from, found);
    if (record !== undefined && !ports.ring.knows(record)) await ports.ring.refresh(from);
    return { value: openContent(ports, found, record), version: found.version };
  };
  try {
    return await open(ports.store.read, object);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'key-tampered') throw error;
  }
  // Content and key were read one after the other, and a replacement between both gives them
  // another pair: in one state, both fit.
  return ports.store.snapshot(async (from) => {
    const now = await from.objects.get(object.handle);
    if (now === undefined || now.destroyedAt !== null)
      throw new ServiceError('key-destroyed', 'the object is destroyed');
    return open(from, now);
  });
};
