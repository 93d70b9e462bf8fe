// One checkpoint of the audit log: signed over every record and the set of policy rows, stored, and
// kept with the root key. Nothing is signed if the database does not continue the last signed one.

import { signedNote, verifierKey } from '../../base/checkpoint.ts';
import { rootHash } from '../../base/merkle-tree.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredCheckpoint } from '../../ports/store.ts';
import { aboutService, recordEvent } from '../shared/record-event.ts';
import { auditOrigin } from './audit-origin.ts';
import { readKept, requireContinued } from './compare-log.ts';
import { requireWritten } from './compare-written.ts';

export interface Checkpoints {
  /**
   * Covers every record. `accepted`: an operator takes the log as it is. Throws ChangedDatabase.
   */
  seal(accepted: boolean): Promise<StoredCheckpoint | undefined>;
  /**
   * Rotates the signing key: seals a checkpoint that covers the record of the rotation, is signed
   * by the former key, and names the next one.
   */
  sealWithNextKey(actor: Actor): Promise<StoredCheckpoint>;
  /** When the last one was made, by the monotonic clock. */
  sealedAt(): number;
}

export const createCheckpoints = ({
  store,
  ring,
  root,
  clock,
  log,
}: Pick<Ports, 'store' | 'ring' | 'root' | 'clock' | 'log'>): Checkpoints => {
  let sealedAt = clock.monotonic();
  const signer = { sign: (text: string) => ring.signAudit(text) };
  /** Next to the root key is nothing that the database does not know: after the commit. */
  const anchor = (note: string): void => {
    try {
      root.anchor.write(note);
    } catch (error) {
      log.error('the checkpoint of the audit log could not be written next to the root key', { error });
    }
  };
  const seal = async (accepted: boolean): Promise<StoredCheckpoint | undefined> => {
    const made = await store.write(async (tx) => {
      // Another node may have rotated it.
      await ring.followAuditKey(tx);
      const size = await tx.audit.size();
      if (!accepted) {
        await requireContinued(readKept(root), tx);
        await requireWritten(store, tx, store.written.tree);
      }
      const latest = await tx.audit.latestCheckpoint();
      if (size === 0 || latest?.size === size) return { latest, fresh: false };
      const checkpoint = {
        origin: await auditOrigin(tx),
        size,
        root: await rootHash(tx.audit.subtree, size),
        rows: await tx.whole.rowSet(),
      };
      const note = signedNote(checkpoint, { publicKey: ring.auditPublicKey(), ...signer });
      const stored = { size, at: clock.now(), note };
      await tx.audit.insertCheckpoint(stored);
      return { latest: stored, fresh: true };
    });
    if (made.fresh && made.latest !== undefined) anchor(made.latest.note);
    if (made.latest !== undefined) store.written.forget(made.latest.size);
    sealedAt = clock.monotonic();
    return made.latest;
  };
  const sealWithNextKey = async (actor: Actor): Promise<StoredCheckpoint> => {
    const next = ring.makeAuditKey();
    try {
      const stored = await store.write(async (tx) => {
        await ring.followAuditKey(tx);
        if (root.previous !== undefined || (await tx.decisions.get(rotationSetting)) !== undefined)
          throw new ServiceError('conflict', 'a rotation is in progress', {
            hint: 'wait until dke root show reports no rotation, then try again',
          });
        await requireContinued(readKept(root), tx);
        await requireWritten(store, tx, store.written.tree);
        const origin = await auditOrigin(tx);
        const former = ring.auditPublicKey();
        await tx.decisions.set(rotationSetting, 'root');
        await recordEvent(tx, 'audit-log.key-rotated', actor, aboutService('audit-log'), {
          former: verifierKey(origin, former),
          next: verifierKey(origin, next.publicKey),
        });
        const size = await tx.audit.size();
        const note = signedNote(
          {
            ...{ origin, size, root: await rootHash(tx.audit.subtree, size), rows: await tx.whole.rowSet() },
            rotation: { former, next: next.publicKey },
          },
          { publicKey: former, ...signer },
          next,
        );
        const made = { size, at: clock.now(), note };
        await tx.audit.insertCheckpoint(made);
        await next.store(tx, { origin, size }, made.at);
        return made;
      });
      anchor(stored.note);
      store.written.forget(stored.size);
      await ring.refreshAuditKey(store);
      return stored;
    } finally {
      next.release();
    }
  };

  return { seal, sealWithNextKey, sealedAt: () => sealedAt };
};
