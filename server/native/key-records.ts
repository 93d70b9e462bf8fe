// Key records under tenants' key encryption keys (addon/FORMAT.md has their layout): sealed, opened, and sealed again.

import { CoreError } from '../../addon/core.ts';
import { ServiceError } from '../base/errors.ts';
import { idBytes } from '../base/ids.ts';
import type { CryptoCore, RecordContext } from '../ports/crypto-core.ts';
import type { KeyRing } from '../ports/key-ring.ts';
import type { RecordPlace } from '../ports/records.ts';
import type { TenantKeks } from './tenant-keks.ts';

export type KeyRecords = Pick<KeyRing, 'seal' | 'open' | 'reseal'>;

const contextOf = (place: RecordPlace, epoch: number): RecordContext => ({
  tenant: idBytes(place.tenantId),
  object: idBytes(place.objectId),
  version: place.version,
  epoch,
  class: place.class,
  attributes: Buffer.from(place.attributes, 'utf8'),
});

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

export const createKeyRecords = (core: CryptoCore, keks: Pick<TenantKeks, 'of' | 'current'>): KeyRecords => ({
  seal: (place, key) => {
    const kek = keks.current(place.tenantId);
    return { ...place, epoch: kek.epoch, record: core.sealRecord(kek.key, contextOf(place, kek.epoch), key) };
  },
  open: (record) => {
    const kek = keks.of(record.tenantId, record.epoch);
    return opening(() => core.openRecord(kek, contextOf(record, record.epoch), record.record));
  },
  reseal: (record, place = record) => {
    const from = keks.of(record.tenantId, record.epoch);
    const to = keks.current(place.tenantId);
    const sealed = opening(() =>
      core.resealRecord(from, contextOf(record, record.epoch), record.record, to.key, contextOf(place, to.epoch)),
    );
    return { ...record, ...place, epoch: to.epoch, record: sealed };
  },
});
