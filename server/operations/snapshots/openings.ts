// How the service gets to open one snapshot, once: it makes a key pair for the occasion; who has a
// recovery key opens the snapshot's key with it, elsewhere, and sends that key sealed to the pair.
// The recovery key itself never comes here. The pair is in the store, as a key record, until it is
// used: the answer may reach another node, or this one after a restart.

import { canonicalJson, parseBase64 } from '../../base/bytes.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { openingContext } from '../../base/recovery-key.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import { type OwnedRecord, RecordOwner } from '../../ports/key-record.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredOpening } from '../../ports/snapshots.ts';
import type { Repositories } from '../../ports/store.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { findSnapshot } from './find-snapshot.ts';
import { isOwnFile } from './own-file.ts';
import { inspectFile } from './verify-snapshot.ts';

export interface Opening {
  readonly id: string;
  readonly snapshotId: string;
  readonly tenantId: string;
  readonly recoveryKeyId: string;
  /** Base64: the snapshot's key, as it is sealed to that recovery key. */
  readonly sealedKey: string;
  /** 32 bytes, Base64: what it is to be sealed to. */
  readonly publicKey: string;
  readonly expiresAt: number;
}

export interface Openings {
  begin(actor: Actor, snapshotId: string, recoveryKeyId: string | undefined): Promise<Opening>;
  /** The snapshot's key, for this one use: the caller releases it. */
  take(actor: Actor, snapshotId: string, openingId: string, sealedKey: string): Promise<KeyRef>;
}

const lifetimeMs = 10 * 60_000;
const recordClass = 'snapshot-opening';

/** Whose it is and of what is bound into the record: a row that was changed opens nothing. */
const ownerOf = ({ id, snapshotId, actorId, expiresAt }: StoredOpening): RecordOwner =>
  new RecordOwner(
    'snapshot_openings',
    { tenantId: serviceTenantId, id, integrity: 'ok' },
    canonicalJson({ algorithm: 'x25519', snapshotId, actorId, expiresAt }),
  );

const remove = async (tx: Repositories, id: string): Promise<void> => {
  await tx.records.wipe({ tenantId: serviceTenantId, objectId: id, version: 1, class: recordClass });
  await tx.openings.remove(id);
};

export const createOpenings = (
  ports: Pick<Ports, 'store' | 'core' | 'ring' | 'archive' | 'clock' | 'exclusion' | 'log'>,
): Openings => {
  const { store, core, ring, archive, clock } = ports;
  /** Returns the stored part, once; an attempt by another caller does not end it. */
  const takeStored = (actor: Actor, snapshotId: string, id: string): Promise<OwnedRecord | undefined> =>
    store.write(async (tx) => {
      const opening = await tx.openings.get(id);
      const isTheirs = opening?.actorId === actor.id && opening.snapshotId === snapshotId;
      if (!isTheirs || opening.expiresAt <= clock.now()) return undefined;
      const record = await tx.records.of(ownerOf(opening)).get(1, recordClass);
      await remove(tx, id);
      return record;
    });

  return {
    begin: async (actor, snapshotId, recoveryKeyId) => {
      const snapshot = await findSnapshot(store.read, snapshotId, ['available']);
      const closing = await inspectFile(ports, actor, snapshot);
      const { recipients } = await archive.preface(snapshotId);
      const recipient = recipients.find((each) => recoveryKeyId === undefined || each.recoveryKeyId === recoveryKeyId);
      if (recipient === undefined)
        throw new ServiceError('conflict', 'the snapshot is not sealed to this recovery key', {
          hint: `it is sealed to: ${recipients.map((each) => each.recoveryKeyId).join(', ')}`,
        });
      // Another service may seal to any key: so the key must be registered here.
      const registered = (await store.read.recoveryKeys.list()).some(
        ({ id, removedAt, integrity }) => id === recipient.recoveryKeyId && removedAt === null && integrity === 'ok',
      );
      if (!registered && !(await isOwnFile(ports, closing)))
        throw new ServiceError('conflict', `the recovery key ${recipient.recoveryKeyId} is not registered here`, {
          hint: 'a snapshot of another service opens only with a registered recovery key: dke recovery-key register',
        });
      const now = clock.now();
      const opening = { id: newId(now), snapshotId, actorId: actor.id, expiresAt: now + lifetimeMs };
      const key = core.generateHpkeKey();
      try {
        const publicKey = core.hpkePublicKey(key).toString('base64');
        await store.write(async (tx) => {
          await tx.openings.insert(opening);
          await tx.records.put(ring.seal(ownerOf(opening), 1, recordClass, key));
          await recordEvent(tx, 'snapshot.opening-started', actor, about('snapshot', snapshot), {
            recoveryKeyId: recipient.recoveryKeyId,
          });
        });
        return {
          id: opening.id,
          snapshotId,
          tenantId: snapshot.tenantId,
          recoveryKeyId: recipient.recoveryKeyId,
          sealedKey: recipient.sealedKey,
          publicKey,
          expiresAt: opening.expiresAt,
        };
      } finally {
        core.release(key);
      }
    },
    take: async (actor, snapshotId, openingId, sealedKey) => {
      const record = await takeStored(actor, snapshotId, openingId);
      if (record === undefined)
        throw new ServiceError('conflict', 'this opening does not exist or has expired', {
          hint: 'start a new one; it is valid for ten minutes and for one use',
        });
      const key = ring.open(record);
      try {
        const { info, aad } = openingContext(snapshotId, openingId);
        return core.hpkeOpenKey(key, info, aad, parseBase64(sealedKey) ?? Buffer.alloc(0), 'generic');
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'invalid-ciphertext') throw error;
        throw new ServiceError('validation', 'the key is not the key of this snapshot, sealed to this opening', {
          cause: error,
        });
      } finally {
        core.release(key);
      }
    },
  };
};
