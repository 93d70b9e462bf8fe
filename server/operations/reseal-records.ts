// One pass of an erasure turn over the stored key records: what hangs on an older KEK is sealed anew. What does not open is
// repaired from its other copy when it has one (a master key has two, independent of each other), and counted as damaged when
// not: its key is not given up here. A record that was put back under a destroyed key is wiped: the turn must not carry it on.

import { ServiceError } from '../base/errors.ts';
import { serviceActor } from '../domain/actor.ts';
import type { KeyRef } from '../ports/crypto-core.ts';
import type { ErasureHold } from '../ports/erasure.ts';
import type { RecordClass } from '../ports/key-ring.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories, StoredRecord } from '../ports/store.ts';
import { recordPlace } from './key-records.ts';

type ResealPorts = Pick<Ports, 'ring' | 'log'> & { readonly core: Pick<Ports['core'], 'release'> };

export type DamagedRecord = Pick<StoredRecord, 'tenantId' | 'objectId' | 'version' | 'class'>;

const otherCopy: Partial<Record<RecordClass, RecordClass>> = {
  'vault-copy': 'sealed-copy',
  'sealed-copy': 'vault-copy',
};

/** Whether what the record belongs to is destroyed, as a sound row says. */
const isDestroyed = async (tx: Repositories, record: StoredRecord): Promise<boolean> => {
  if (record.class === 'object-content') {
    const object = await tx.objects.getById(record.objectId);
    return object?.integrity === 'ok' && object.destroyedAt !== null;
  }
  if (otherCopy[record.class] === undefined) return false;
  const key = await tx.keys.get(record.tenantId, record.objectId);
  return key?.integrity === 'ok' && key.state === 'destroyed';
};

/** Seals both copies of a key's version anew from the one that opens. False when there is none. */
const repair = async ({ ring, core, log }: ResealPorts, tx: Repositories, damaged: StoredRecord): Promise<boolean> => {
  const from = otherCopy[damaged.class];
  const key = from === undefined ? undefined : await tx.keys.get(damaged.tenantId, damaged.objectId);
  const record = from === undefined ? undefined : await tx.records.get(damaged.objectId, damaged.version, from);
  if (from === undefined || key === undefined || key.integrity !== 'ok' || record === undefined) return false;
  const place = recordPlace(key, damaged.version, from);
  let reference: KeyRef;
  try {
    reference = ring.open({ ...record, ...place });
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'key-tampered') return false;
    throw error;
  }
  try {
    await tx.records.put(ring.seal(place, reference));
    await tx.records.put(ring.seal(recordPlace(key, damaged.version, damaged.class), reference));
  } finally {
    core.release(reference);
  }
  log.warn('a damaged key record was made anew from its other copy', { keyId: key.id, copy: damaged.class });
  await tx.audit.append({
    kind: 'key.repaired',
    actor: serviceActor('integrity'),
    tenantId: key.tenantId,
    subject: { kind: 'key', id: key.id },
    details: { name: key.name, version: damaged.version, copy: damaged.class, from },
  });
  return true;
};

export interface ResealPass {
  /** Records that hang on the current KEK now, or are gone. */
  readonly done: number;
  readonly damaged: readonly DamagedRecord[];
}

/**
 * Goes through up to `limit` older records, beyond the `passed` damaged ones of each tenant that earlier batches have met. Nothing
 * done and nothing damaged means that there are no more.
 */
export const resealBatch = async (
  ports: ResealPorts,
  tx: Repositories,
  passed: ReadonlyMap<string, number>,
  limit: number,
): Promise<ResealPass> => {
  const { ring } = ports;
  const damaged: DamagedRecord[] = [];
  let done = 0;
  for (const [tenantId, epoch] of ring.epochs()) {
    const left = limit - done - damaged.length;
    if (left <= 0) break;
    for (const record of await tx.records.listOlder(tenantId, epoch, left, passed.get(tenantId) ?? 0)) {
      if (await isDestroyed(tx, record)) {
        await tx.records.wipe(record.objectId, record.version, record.class);
        done += 1;
        continue;
      }
      // Repairing its other copy may have sealed this one already.
      const now = await tx.records.get(record.objectId, record.version, record.class);
      if (now?.epoch === epoch) continue;
      try {
        await tx.records.put(ring.reseal(record));
        done += 1;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'key-tampered') throw error;
        if (await repair(ports, tx, record)) {
          done += 1;
          continue;
        }
        const { objectId, version, class: recordClass } = record;
        damaged.push({ tenantId, objectId, version, class: recordClass });
      }
    }
  }
  return { done, damaged };
};

/** To whom a damaged record belongs, for people. */
export const describeDamage = async (
  from: Repositories,
  damaged: readonly DamagedRecord[],
): Promise<ErasureHold['records']> => {
  const described: ErasureHold['records'][number][] = [];
  for (const { tenantId, objectId, version, class: copy } of damaged) {
    const key = await from.keys.get(tenantId, objectId);
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
