// What an erasure run does with the stored key records: each one under an older KEK is sealed under
// the current one. A record that does not open is repaired from its other copy when it has one (a
// master key has two, independent of each other). Otherwise it counts as damaged and stays as it
// is. A record that was put back under a destroyed key is wiped, so that the run does not carry it
// on.

import { ServiceError } from '../../base/service-error.ts';
import { serviceActor } from '../../domain/actor.ts';
import type { ErasureBlockers } from '../../ports/erasure.ts';
import type { RecordClass, RecordPosition, StoredRecord } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { keyOwner } from '../keys/key-records.ts';
import { about, recordEvent } from '../shared/record-event.ts';

type ResealPorts = Pick<Ports, 'ring' | 'core' | 'log'>;

export type DamagedRecord = Pick<StoredRecord, 'tenantId' | 'objectId' | 'version' | 'class'>;

const otherCopy: Partial<Record<RecordClass, RecordClass>> = {
  'vault-copy': 'sealed-copy',
  'sealed-copy': 'vault-copy',
};

/** Whether what the record belongs to is destroyed, according to a row that authenticates. */
const isDestroyed = async (tx: Repositories, record: StoredRecord): Promise<boolean> => {
  if (record.class === 'object-content') {
    const object = await tx.objects.getById(record.objectId);
    return object?.tenantId === record.tenantId && object.integrity === 'ok' && object.destroyedAt !== null;
  }
  if (otherCopy[record.class] === undefined) return false;
  const key = await tx.keys.stored(record.tenantId, record.objectId);
  return key?.integrity === 'ok' && key.state === 'destroyed';
};

/** Seals both copies of a key's version again from the one that opens. False when there is none. */
const repair = async ({ ring, core, log }: ResealPorts, tx: Repositories, damaged: StoredRecord): Promise<boolean> => {
  const from = otherCopy[damaged.class];
  const key = from === undefined ? undefined : await tx.keys.stored(damaged.tenantId, damaged.objectId);
  if (from === undefined || key === undefined || key.integrity !== 'ok') return false;
  const owner = keyOwner(key);
  const record = await tx.records.of(owner).get(damaged.version, from);
  if (record === undefined) return false;
  try {
    const reference = ring.open(record);
    try {
      for (const copy of [from, damaged.class])
        await tx.records.put(ring.seal(owner, damaged.version, copy, reference));
    } finally {
      core.release(reference);
    }
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') return false;
    throw error;
  }
  log.warn('a damaged key record was restored from its other copy', { keyId: key.id, copy: damaged.class });
  await recordEvent(tx, 'key.repaired', serviceActor('integrity'), about('key', key), {
    name: key.name,
    version: damaged.version,
    copy: damaged.class,
    from,
  });
  return true;
};

export interface ResealStep {
  /** Records that are under the current KEK now, or wiped. */
  readonly done: number;
  readonly damaged: readonly DamagedRecord[];
  /** Where the next step continues; null after the tenant's last record. */
  readonly next: RecordPosition | null;
}

/**
 * Goes through up to `limit` of a tenant's records under an epoch below this one, those behind
 * `after`.
 */
export const resealStep = async (
  ports: ResealPorts,
  tx: Repositories,
  { tenantId, epoch }: { readonly tenantId: string; readonly epoch: number },
  limit: number,
  after?: RecordPosition,
): Promise<ResealStep> => {
  const { ring } = ports;
  const records = await tx.records.listOlder(tenantId, epoch, limit, after);
  const suspects = new Set(await tx.records.destroyedOwners([...new Set(records.map(({ objectId }) => objectId))]));
  const sealed: StoredRecord[] = [];
  const damaged: DamagedRecord[] = [];
  let wiped = 0;
  let repaired = 0;
  for (const record of records) {
    if (suspects.has(record.objectId) && (await isDestroyed(tx, record))) {
      await tx.records.wipe(record);
      wiped += 1;
      continue;
    }
    try {
      sealed.push(ring.reseal(record));
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'key-tampered') throw error;
      const { objectId, version, class: recordClass } = record;
      if (await repair(ports, tx, record)) repaired += 1;
      else damaged.push({ tenantId, objectId, version, class: recordClass });
    }
  }
  // The sound copy of a repaired record may be among these: it is sealed twice, to the same end.
  await tx.records.replace(sealed);
  return {
    done: sealed.length + wiped + repaired,
    damaged,
    next: records.length < limit ? null : (records.at(-1) ?? null),
  };
};

/** To whom a damaged record belongs, for people. */
export const describeDamage = async (
  from: Repositories,
  damaged: readonly DamagedRecord[],
): Promise<ErasureBlockers['records']> => {
  const described: ErasureBlockers['records'][number][] = [];
  for (const { tenantId, objectId, version, class: copy } of damaged) {
    const key = await from.keys.stored(tenantId, objectId);
    const object = key === undefined ? await from.objects.getById(objectId) : undefined;
    if (key !== undefined) described.push({ kind: 'key', id: objectId, name: key.name, version, copy });
    else if (object !== undefined)
      described.push({ kind: 'object', id: objectId, name: `handle ${object.handle}`, version, copy });
    else if (copy === 'endpoint-secret')
      described.push({ kind: 'credential', id: objectId, name: null, version, copy });
    else described.push({ kind: 'other', id: objectId, name: null, version, copy });
  }
  return described;
};
