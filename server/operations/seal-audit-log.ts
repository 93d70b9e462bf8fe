// Checkpoints of the audit log: at every thousandth record, each minute in which there was one, and when somebody asks. Each is
// stored, and kept beside the root key, away from the database: at start the two are compared, so that a database that
// was put back from an older copy, or changed, does not begin to serve.

import {
  checkpointText,
  parseCheckpoint,
  parseVerifierKey,
  signedNote,
  verifierKey,
  verifyNote,
} from '../base/checkpoint.ts';
import { newId, serviceTenantId } from '../base/ids.ts';
import { rootHash } from '../base/merkle-tree.ts';
import { type Actor, serviceActor } from '../domain/actor.ts';
import type { Ports } from '../ports/ports.ts';
import type { Repositories, StoredCheckpoint } from '../ports/store.ts';

const everyRecords = 1_000;
const everyMs = 60_000;
const lookEveryMs = 1_000;
const originSetting = 'audit-origin';

type SealPorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock' | 'log'> & {
  /** Whether this server makes checkpoints by the clock. */
  readonly isDuty: () => boolean;
};

/** The log's name in its checkpoints. */
export const auditOrigin = async (repositories: Repositories): Promise<string> => {
  const origin = await repositories.settings.get(originSetting);
  if (origin === undefined) throw new RangeError('the audit log has no name yet');
  return origin;
};

/** What the database was found to be, compared with the checkpoint beside the root key. */
export type AuditFinding =
  | { readonly state: 'sound' }
  /** Records are missing: an older copy was put back, or the end was cut off. */
  | { readonly state: 'older'; readonly size: number; readonly expected: number }
  /** It lacks changes that were confirmed since: its log is damaged or was taken away, or an older copy was put back. */
  | { readonly state: 'incomplete'; readonly size: number; readonly expected: number }
  /** Records are not those that were signed, or the checkpoint beside the root key is not of this log. */
  | { readonly state: 'changed'; readonly size: number };

export interface AuditSealer {
  /** Covers every record; answers the newest checkpoint, also when there was nothing new. */
  checkpoint(): Promise<StoredCheckpoint | undefined>;
  /** Makes one when it is due; where another node does, keeps its newest one beside this node's root key. Called by the clock. */
  turn(): Promise<void>;
  /** Before anything is served. Names the log at the first start. */
  inspect(): Promise<AuditFinding>;
  /** An operator takes the database as it is: the log goes on under a new name, and says so. */
  accept(finding: AuditFinding, actor?: Actor): Promise<void>;
}

export const createAuditSealer = ({ store, ring, root, clock, log, isDuty }: SealPorts): AuditSealer => {
  let sealedAt = clock.monotonic();
  let lookedAt = clock.monotonic();
  let sealing: Promise<StoredCheckpoint | undefined> | undefined;

  const seal = async (): Promise<StoredCheckpoint | undefined> => {
    const made = await store.write(async (tx) => {
      const size = await tx.audit.size();
      const latest = await tx.audit.latestCheckpoint();
      if (size === 0 || latest?.size === size) return { latest, fresh: false };
      const checkpoint = { origin: await auditOrigin(tx), size, root: await rootHash(tx.audit.subtree, size) };
      const note = signedNote(checkpoint, ring.auditPublicKey(), ring.signAudit(checkpointText(checkpoint)));
      const stored = { size, at: clock.now(), note };
      await tx.audit.insertCheckpoint(stored);
      return { latest: stored, fresh: true };
    });
    // After the commit: beside the root key stands nothing that the database does not know.
    if (made.fresh && made.latest !== undefined)
      try {
        root.anchor.write(made.latest.note);
      } catch (error) {
        log.error('the checkpoint of the audit log could not be kept beside the root key', { error });
      }
    sealedAt = clock.monotonic();
    return made.latest;
  };
  const checkpoint = async (): Promise<StoredCheckpoint | undefined> => {
    // One after the other: the later one covers what came meanwhile.
    await sealing?.catch(() => undefined);
    sealing = seal();
    return sealing;
  };
  /** The newest checkpoint that another node has made, when the log is still the one of the checkpoint that is kept here. */
  const follow = async (): Promise<void> => {
    const latest = await store.read.audit.latestCheckpoint();
    const note = root.anchor.read();
    const kept = note === undefined ? null : parseCheckpoint(note);
    if (latest === undefined || (kept !== null && kept.size >= latest.size)) return;
    const verifier = parseVerifierKey(verifierKey(await auditOrigin(store.read), ring.auditPublicKey()));
    if (verifier === null || verifyNote(latest.note, verifier) === null) {
      log.error('the newest checkpoint of the audit log is not signed by this service');
      return;
    }
    if (kept !== null && !(await rootHash(store.read.audit.subtree, kept.size)).equals(kept.root)) {
      log.error('the audit log is not the one of the checkpoint beside the root key');
      return;
    }
    root.anchor.write(latest.note);
  };
  const nameLog = async (tx: Repositories): Promise<void> => {
    await tx.settings.set(originSetting, `dke/audit/${newId(clock.now())}`);
  };

  return {
    checkpoint,

    turn: async () => {
      const now = clock.monotonic();
      if (now - lookedAt < lookEveryMs) return;
      lookedAt = now;
      if (!isDuty()) {
        await follow();
        return;
      }
      const size = await store.read.audit.size();
      const covered = (await store.read.audit.latestCheckpoint())?.size ?? 0;
      if (size - covered >= everyRecords || (size > covered && now - sealedAt >= everyMs)) await checkpoint();
    },

    inspect: async () => {
      const isNew = (await store.read.settings.get(originSetting)) === undefined;
      const size = await store.read.audit.size();
      const note = root.anchor.read();
      const expected = store.committed?.records ?? 0;
      // What stands beside a new database is of one that was there before it.
      if (isNew && note === undefined) store.committed?.accept();
      if (isNew) await store.write(nameLog);
      const sound: AuditFinding =
        expected > size && !(isNew && note === undefined)
          ? { state: 'incomplete', size, expected }
          : { state: 'sound' };
      if (note === undefined) return sound;
      const origin = await auditOrigin(store.read);
      const verifier = parseVerifierKey(verifierKey(origin, ring.auditPublicKey()));
      const anchored = verifier === null ? null : verifyNote(note, verifier);
      if (anchored === null) {
        // The log has taken another name since, or never had this one: an older copy, if its signature is of our key.
        const other = parseCheckpoint(note);
        const signer = other === null ? null : parseVerifierKey(verifierKey(other.origin, ring.auditPublicKey()));
        const known = signer !== null && verifyNote(note, signer) !== null;
        return known && other !== null && other.size > size
          ? { state: 'older', size, expected: other.size }
          : { state: 'changed', size };
      }
      if (anchored.size > size) return { state: 'older', size, expected: anchored.size };
      const found = await rootHash(store.read.audit.subtree, anchored.size);
      return found.equals(anchored.root) ? sound : { state: 'changed', size };
    },

    accept: async (finding, actor) => {
      if (finding.state === 'sound') return;
      log.warn('the database was taken although it is not what the checkpoint beside the root key says', {
        ...finding,
      });
      store.committed?.accept();
      await store.write(async (tx) => {
        await nameLog(tx);
        await tx.audit.dropCheckpoints();
        await tx.audit.append({
          kind: 'audit-log.accepted',
          actor: actor ?? serviceActor(newId(clock.now())),
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'audit-log' },
          details: { ...finding, expected: finding.state === 'changed' ? null : finding.expected },
        });
      });
      await checkpoint();
    },
  };
};
