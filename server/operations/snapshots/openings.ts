// How the service gets to open one snapshot, once: it makes a key pair for the occasion; who has a recovery key opens the snapshot's key
// with it, elsewhere, and sends that key sealed to the pair. The recovery key itself never comes here.

import { parseBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { openingContext } from '../../base/recovery-key.ts';
import type { Actor } from '../../domain/actor.ts';
import type { KeyRef } from '../../ports/crypto-core.ts';
import type { Ports } from '../../ports/ports.ts';
import { findSnapshot } from './find-snapshot.ts';

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
  take(actor: Actor, snapshotId: string, openingId: string, sealedKey: string): KeyRef;
  close(): void;
}

const lifetimeMs = 10 * 60_000;
const most = 20;

export const createOpenings = ({
  store,
  core,
  archive,
  clock,
}: Pick<Ports, 'store' | 'core' | 'archive' | 'clock'>): Openings => {
  const open = new Map<
    string,
    { readonly snapshotId: string; readonly actorId: string; readonly key: KeyRef; readonly until: number }
  >();
  const drop = (id: string): void => {
    const found = open.get(id);
    open.delete(id);
    if (found !== undefined) core.release(found.key);
  };
  const tidy = (): void => {
    for (const [id, { until }] of open) if (until <= clock.monotonic()) drop(id);
    for (const id of open.keys()) {
      if (open.size < most) return;
      drop(id);
    }
  };
  return {
    begin: async (actor, snapshotId, recoveryKeyId) => {
      const snapshot = await findSnapshot(store.read, snapshotId, ['held']);
      const { recipients } = await archive.preface(snapshotId);
      const recipient = recipients.find((each) => recoveryKeyId === undefined || each.recoveryKeyId === recoveryKeyId);
      if (recipient === undefined)
        throw new ServiceError('conflict', 'the snapshot is not sealed to this recovery key', {
          hint: `it is sealed to: ${recipients.map((each) => each.recoveryKeyId).join(', ')}`,
        });
      tidy();
      const id = newId(clock.now());
      const key = core.generateHpkeKey();
      open.set(id, { snapshotId, actorId: actor.id, key, until: clock.monotonic() + lifetimeMs });
      await store.write((tx) =>
        tx.audit.append({
          kind: 'snapshot.opening-begun',
          actor,
          tenantId: snapshot.tenantId,
          subject: { kind: 'snapshot', id: snapshotId },
          details: { recoveryKeyId: recipient.recoveryKeyId },
        }),
      );
      return {
        id,
        snapshotId,
        tenantId: snapshot.tenantId,
        recoveryKeyId: recipient.recoveryKeyId,
        sealedKey: recipient.sealedKey,
        publicKey: core.hpkePublicKey(key).toString('base64'),
        expiresAt: clock.now() + lifetimeMs,
      };
    },
    take: (actor, snapshotId, openingId, sealedKey) => {
      tidy();
      const found = open.get(openingId);
      if (found === undefined || found.snapshotId !== snapshotId || found.actorId !== actor.id)
        throw new ServiceError('conflict', 'there is no such opening, or its time is over', {
          hint: 'begin another one, on the same node of the service: it holds for ten minutes and for one use',
        });
      try {
        const { info, aad } = openingContext(snapshotId, openingId);
        return core.hpkeOpenKey(found.key, info, aad, parseBase64(sealedKey) ?? Buffer.alloc(0), 'generic');
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'invalid-ciphertext') throw error;
        throw new ServiceError('validation', "this is not the snapshot's key, sealed to this opening", {
          cause: error,
        });
      } finally {
        drop(openingId);
      }
    },
    close: () => {
      for (const id of [...open.keys()]) drop(id);
    },
  };
};
