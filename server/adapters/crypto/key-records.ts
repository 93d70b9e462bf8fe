// Key records under tenants' key encryption keys (addon/FORMAT.md has their layout): sealed,
// opened, and sealed again.

import { CoreError } from '../../../addon/core.ts';
import { idBytes, isId } from '../../base/ids.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { CryptoCore, KeyRef, RecordContext } from '../../ports/crypto-core.ts';
import {
  OwnedRecord,
  RecordOwner,
  type RecordPlace,
  recordClasses,
  type StoredRecord,
} from '../../ports/key-record.ts';
import type { KeyRing } from '../../ports/key-ring.ts';
import type { TenantKeks } from './tenant-keks.ts';

export type KeyRecords = Pick<KeyRing, 'seal' | 'open' | 'opens' | 'reseal'>;

/**
 * A place may come from a row that was changed from outside: the service gives no record another
 * one.
 */
const isPlace = ({ tenantId, objectId, version, class: recordClass }: RecordPlace, epoch: number): boolean =>
  [tenantId, objectId].every((id) => typeof id === 'string' && isId(id)) &&
  [version, epoch].every((count) => Number.isInteger(count) && count >= 0 && count <= 0xffffffff) &&
  recordClasses.includes(recordClass);

const placed = (place: RecordPlace, epoch: number): RecordContext => ({
  tenant: idBytes(place.tenantId),
  object: idBytes(place.objectId),
  version: place.version,
  epoch,
  class: place.class,
  attributes: Buffer.from(place.attributes, 'utf8'),
});
const contextOf = (place: RecordPlace, epoch: number): RecordContext => {
  if (!isPlace(place, epoch))
    throw new ServiceError('key-tampered', 'a stored key record is in a place where no record of the service is');
  return placed(place, epoch);
};

/** Says which record is at fault where the core says only that it does not open. */
const opening = <T>(work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (error instanceof CoreError && (error.code === 'authentication-failed' || error.code === 'format'))
      throw new ServiceError('key-tampered', 'a stored key record does not authenticate', { cause: error });
    throw error;
  }
};

export const createKeyRecords = (core: CryptoCore, keks: Pick<TenantKeks, 'of' | 'current'>): KeyRecords => {
  const open = (record: StoredRecord): KeyRef => {
    const kek = keks.of(record.tenantId, record.epoch);
    return opening(() => core.openRecord(kek, contextOf(record, record.epoch), record.record));
  };
  return {
    seal: (owner, version, recordClass, key) => {
      if (!RecordOwner.isOne(owner) || owner.attributes === null)
        throw new ServiceError('internal', 'a key is sealed for an owner that says what it binds');
      const { tenantId, objectId, attributes } = owner;
      const kek = keks.current(tenantId);
      const place: RecordPlace = { tenantId, objectId, version, class: recordClass, attributes };
      const record = core.sealRecord(kek.key, contextOf(place, kek.epoch), key);
      return new OwnedRecord(owner, { ...place, epoch: kek.epoch, record });
    },
    open: (record) => {
      if (!OwnedRecord.isOne(record)) throw new ServiceError('internal', 'only the record of an owner is opened');
      return open(record);
    },
    opens: (record) => {
      try {
        core.release(open(record));
        return true;
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'key-tampered') return false;
        throw error;
      }
    },
    reseal: (record) => {
      const { tenantId, objectId, version, class: recordClass, attributes } = record;
      const from = keks.of(tenantId, record.epoch);
      const to = keks.current(tenantId);
      const sealed = opening(() =>
        core.resealRecord(from, contextOf(record, record.epoch), record.record, to.key, contextOf(record, to.epoch)),
      );
      return { tenantId, objectId, version, class: recordClass, attributes, epoch: to.epoch, record: sealed };
    },
  };
};
