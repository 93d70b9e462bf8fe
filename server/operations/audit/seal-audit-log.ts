// Checkpoints of the audit log: at every thousandth record, each minute in which there was one, and on request. Each checkpoint also
// names the version of the set of policy rows. It is stored, and kept beside the root key, away from the database. At start and before
// each checkpoint the two are compared, and the rows are compared with their set once a minute: a database that was put back from an older
// copy, or changed, is not served.

import { type Checkpoint, parseCheckpoint, signedNote, verifierKey, verifyLogNote } from '../../base/checkpoint.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Emitter } from '../../base/events.ts';
import { newId, serviceTenantId } from '../../base/ids.ts';
import { rootHash } from '../../base/merkle-tree.ts';
import { type Actor, serviceActor } from '../../domain/actor.ts';
import { rotationSetting } from '../../domain/changes.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories, RowSetHead, StoredCheckpoint } from '../../ports/store.ts';

const everyRecords = 1_000;
const everyMs = 60_000;
const lookEveryMs = 1_000;
/** Comparing all policy rows takes at most this part of the time. */
const comparingShare = 0.01;
const mostNamed = 5;
const originSetting = 'audit-origin';
/** JSON of when a backup was made, and how many audit records it has: set by the restore until an operator has confirmed it. */
export const restoredSetting = 'restored';

type SealPorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock' | 'log'> & {
  /** Runs `work` when this server makes checkpoints by the clock; undefined: another one does. */
  readonly perform: <T>(work: () => Promise<T>) => Promise<T | undefined>;
  readonly events: Emitter<SealEvents>;
};

export interface SealEvents {
  /** The database was found to be another one while the service runs: nothing is signed any more. */
  readonly databaseChanged: Unsound;
}

/** The log's name in its checkpoints. */
export const auditOrigin = async (repositories: Repositories): Promise<string> => {
  const origin = await repositories.settings.get(originSetting);
  if (origin === undefined) throw new RangeError('the audit log has no name yet');
  return origin;
};

/** Since when a key of the service is used. The first one: since the first record. Null: there is none yet. */
export const keySince = async (from: Pick<Repositories, 'audit'>, since: number | null): Promise<number | null> =>
  since ?? (await from.audit.list(everyTenant, { order: 'oldest' }, { limit: 1 }))[0]?.at ?? null;

/** What the database was found to be, compared with the checkpoint beside the root key. */
export type AuditFinding =
  | { readonly state: 'sound' }
  /** Records are missing: an older copy was put back, or the end was cut off. */
  | { readonly state: 'older'; readonly size: number; readonly expected: number }
  /** It lacks changes that were confirmed since: its log is damaged or was taken away, or an older copy was put back. */
  | { readonly state: 'incomplete'; readonly size: number; readonly expected: number }
  /** Records are not those that were signed, or the checkpoint beside the root key is not of this log. */
  | { readonly state: 'changed'; readonly size: number }
  /** Policy rows were restored to an older version, removed or added. `older`: some of the restored rows, where they are known. */
  | { readonly state: 'rows-changed'; readonly size: number; readonly older: readonly string[] }
  /** A backup of the whole service was restored: what was changed since is missing, whatever it is. */
  | { readonly state: 'restored'; readonly size: number; readonly at: string }
  /** Changes that this node has already received are missing: the database has gone back while the service ran. */
  | { readonly state: 'lost-changes' };

export type Unsound = Exclude<AuditFinding, { readonly state: 'sound' }>;

/** The database is not the one of the checkpoint beside the root key. */
class ChangedDatabase extends Error {
  override readonly name = 'ChangedDatabase';
  readonly finding: Unsound;
  constructor(finding: Unsound) {
    super('the database does not match the checkpoint next to the root key');
    this.finding = finding;
  }
}

/** How many records there should be, where that is known. */
export const expectedOf = (finding: Unsound): number | null => ('expected' in finding ? finding.expected : null);
/** How many there are, where that matters. */
export const sizeOf = (finding: Unsound): number | null => ('size' in finding ? finding.size : null);

/** Whether these rows may follow those of a checkpoint. */
const continues = ({ rows }: Checkpoint, head: RowSetHead | undefined): boolean =>
  rows === undefined ||
  (head !== undefined && (head.version > rows.version || (head.version === rows.version && head.tag === rows.tag)));

export interface AuditSealer {
  /** Covers every record; answers the newest checkpoint, also when there was nothing new. */
  checkpoint(): Promise<StoredCheckpoint | undefined>;
  /** Makes one when it is due; where another node does, keeps its newest one beside this node's root key. Called by the clock. */
  run(): Promise<void>;
  /** Before anything is served. Names the log at the first start. */
  inspect(): Promise<AuditFinding>;
  /**
   * A new key signs from now on. The former one's last checkpoint names it, and covers the record of the rotation. The former key's record is overwritten,
   * and a rotation of the root key is requested, after which no older copy of the database opens it. Throws 'conflict' while one is under way.
   */
  rotateKey(actor: Actor): Promise<void>;
  /** This node enters quarantine: nothing is signed or kept beside the root key until `accept`. */
  suspend(): void;
  /** An operator takes the database as it is: the log goes on under a new name, and says so. */
  accept(finding: AuditFinding, actor?: Actor): Promise<void>;
}

export const createAuditSealer = ({ store, ring, root, clock, log, perform, events }: SealPorts): AuditSealer => {
  let sealedAt = clock.monotonic();
  let lookedAt = clock.monotonic();
  let comparedAt = clock.monotonic();
  let rowsDueAt = clock.monotonic() + everyMs;
  let suspended = false;
  /** The log's name when this node started. */
  let nameAtStart: string | undefined;
  let sealing: Promise<StoredCheckpoint | undefined> | undefined;

  /**
   * Throws ChangedDatabase when the stored tree does not continue the one that was signed last. Costs what a root costs: some dozen stored hashes, whatever
   * the size. That each record is the one of its hash is what a verification of the log shows.
   */
  const requireContinued = async (
    { audit, whole }: Pick<Repositories, 'audit' | 'whole'>,
    size: number,
  ): Promise<void> => {
    const note = root.anchor.read();
    if (note === undefined) return;
    const kept = parseCheckpoint(note);
    if (kept !== null && kept.size > size) throw new ChangedDatabase({ state: 'older', size, expected: kept.size });
    const found = await rootHash(audit.subtree, kept?.size ?? 0).catch((error: unknown) => {
      // Hashes of the tree are missing.
      if (error instanceof RangeError) return null;
      throw error;
    });
    if (kept === null || found === null || !found.equals(kept.root))
      throw new ChangedDatabase({ state: 'changed', size });
    if (!continues(kept, await whole.rowSet())) throw new ChangedDatabase({ state: 'rows-changed', size, older: [] });
  };

  const signer = { sign: (text: string) => ring.signAudit(text) };
  /** Beside the root key stands nothing that the database does not know: after the commit. */
  const anchor = (note: string): void => {
    try {
      root.anchor.write(note);
    } catch (error) {
      log.error('the checkpoint of the audit log could not be written next to the root key', { error });
    }
  };
  /** `accepted`: an operator takes the log as it is. */
  const seal = async (accepted: boolean): Promise<StoredCheckpoint | undefined> => {
    const made = await store.write(async (tx) => {
      // Another node may have rotated it.
      await ring.refreshAuditKey(tx);
      const size = await tx.audit.size();
      if (!accepted) await requireContinued(tx, size);
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
    sealedAt = clock.monotonic();
    return made.latest;
  };
  const sealWithNextKey = async (actor: Actor): Promise<StoredCheckpoint> => {
    const next = ring.makeAuditKey();
    try {
      const stored = await store.write(async (tx) => {
        await ring.refreshAuditKey(tx);
        if (root.previous !== undefined || (await tx.settings.get(rotationSetting)) !== undefined)
          throw new ServiceError('conflict', 'a rotation is in progress', {
            hint: 'wait until dke root show reports no rotation, then try again',
          });
        await requireContinued(tx, await tx.audit.size());
        const origin = await auditOrigin(tx);
        const former = ring.auditPublicKey();
        await tx.settings.set(rotationSetting, 'root');
        await tx.audit.append({
          kind: 'audit-log.key-rotated',
          actor,
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'audit-log' },
          details: { former: verifierKey(origin, former), next: verifierKey(origin, next.publicKey) },
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
      await ring.refreshAuditKey(store.read);
      return stored;
    } finally {
      next.release();
    }
  };
  /** One after the other: the later one covers what came meanwhile. */
  const inTurn = async <T extends StoredCheckpoint | undefined>(work: () => Promise<T>): Promise<T> => {
    await sealing?.catch(() => undefined);
    const own = work();
    sealing = own;
    return tellChanged(own);
  };
  const checkpoint = (accepted = false): Promise<StoredCheckpoint | undefined> => inTurn(() => seal(accepted));
  /** 'key-tampered', and the service is told, when the log was changed. */
  const tellChanged = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ChangedDatabase)) throw error;
      suspended = true;
      events.emit('databaseChanged', error.finding);
      throw new ServiceError('key-tampered', `${error.message}: nothing was signed`, {
        hint: 'run dke quarantine show for the differences',
        cause: error,
      });
    }
  };
  /** All policy rows against their set. Not awaited by the clock: with many rows it takes seconds. */
  const compareRows = async (): Promise<void> => {
    const from = clock.monotonic();
    try {
      const { isSound, older } = await store.snapshot((state) => state.whole.compareRowSet());
      if (!isSound) {
        suspended = true;
        events.emit('databaseChanged', {
          state: 'rows-changed',
          size: await store.read.audit.size(),
          older: older.slice(0, mostNamed),
        });
      }
    } catch (error) {
      log.error('the policy rows could not be compared with their set', { error });
    }
    rowsDueAt = clock.monotonic() + Math.max(everyMs, (clock.monotonic() - from) / comparingShare);
  };
  /** The newest checkpoint that another node has made, when the log is still the one of the checkpoint that is kept here. */
  const follow = async (): Promise<void> => {
    const latest = await store.read.audit.latestCheckpoint();
    const note = root.anchor.read();
    const kept = note === undefined ? null : parseCheckpoint(note);
    const isNewer = latest !== undefined && (kept === null || latest.size > kept.size);
    const now = clock.monotonic();
    // Where nothing is signed any more, the log is compared all the same.
    if (!isNewer && now - comparedAt < everyMs) return;
    comparedAt = now;
    await tellChanged(requireContinued(store.read, await store.read.audit.size()));
    if (!isNewer) return;
    await ring.refreshAuditKey(store.read);
    if (verifyLogNote(latest.note, await auditOrigin(store.read), ring.auditKeys()) === null) {
      log.error('the newest checkpoint of the audit log is not signed by this service');
      return;
    }
    if (!suspended) root.anchor.write(latest.note);
  };
  /** Another node has taken the database as it is, and named the log, since this node kept its last checkpoint. */
  const isNamedAnew = async (): Promise<boolean> => {
    const note = root.anchor.read();
    const known = note === undefined ? nameAtStart : parseCheckpoint(note)?.origin;
    // Names are made of ids, which have the time.
    return known !== undefined && known < (await auditOrigin(store.read));
  };
  const nameLog = async (tx: Repositories): Promise<void> => {
    await tx.settings.set(originSetting, `dke/audit/${newId(clock.now())}`);
  };

  const compareAtStart = async (): Promise<AuditFinding> => {
    const isNew = (await store.read.settings.get(originSetting)) === undefined;
    const size = await store.read.audit.size();
    const note = root.anchor.read();
    const expected = store.committed?.records ?? 0;
    // What stands beside a new database is of one that was there before it.
    if (isNew && note === undefined) store.committed?.accept();
    if (isNew) await store.write(nameLog);
    nameAtStart = await auditOrigin(store.read);
    const sound: AuditFinding =
      expected > size && !(isNew && note === undefined) ? { state: 'incomplete', size, expected } : { state: 'sound' };
    const rows = await store.rowSet.load();
    /** Rows have versions from now on. */
    const isFirst = rows.head === undefined && (note === undefined || parseCheckpoint(note)?.rows === undefined);
    if (isFirst && rows.rows > 0) await store.rowSet.adopt(0);
    const rowsChanged: AuditFinding = { state: 'rows-changed', size, older: [] };
    if (note === undefined) return rows.isSound || isFirst ? sound : rowsChanged;
    const anchored = verifyLogNote(note, nameAtStart, ring.auditKeys());
    if (anchored === null) {
      // The log has taken another name since, or never had this one: an older copy, if its signature is of our key.
      const other = parseCheckpoint(note);
      const known = other !== null && verifyLogNote(note, other.origin, ring.auditKeys()) !== null;
      return known && other.size > size ? { state: 'older', size, expected: other.size } : { state: 'changed', size };
    }
    if (anchored.size > size) return { state: 'older', size, expected: anchored.size };
    const found = await rootHash(store.read.audit.subtree, anchored.size);
    if (!found.equals(anchored.root)) return { state: 'changed', size };
    if (sound.state !== 'sound' || isFirst) return sound;
    return rows.isSound && continues(anchored, rows.head) ? sound : rowsChanged;
  };

  return {
    checkpoint: () => checkpoint(),

    run: async () => {
      const now = clock.monotonic();
      if (suspended || now - lookedAt < lookEveryMs) return;
      lookedAt = now;
      // Every node compares, whether or not it writes checkpoints.
      if (now >= rowsDueAt) {
        rowsDueAt = Number.POSITIVE_INFINITY;
        void compareRows();
      }
      const done = await perform(async () => {
        const size = await store.read.audit.size();
        const covered = (await store.read.audit.latestCheckpoint())?.size ?? 0;
        if (size - covered >= everyRecords || (size > covered && now - sealedAt >= everyMs)) await checkpoint();
        return true;
      });
      // Another node may have signed one although this node makes them: when an operator has confirmed there.
      if (done === undefined || store.link !== undefined) await follow();
    },

    rotateKey: async (actor) => {
      await inTurn(() => sealWithNextKey(actor));
    },

    inspect: async () => {
      const found = await compareAtStart();
      const restored = await store.read.settings.get(restoredSetting);
      // Where something else is wrong, more is known.
      if (found.state !== 'sound' || restored === undefined) return found;
      const { at } = JSON.parse(restored) as { readonly at: string };
      return { state: 'restored', size: await store.read.audit.size(), at };
    },

    suspend: () => {
      suspended = true;
    },

    accept: async (finding, actor) => {
      if (finding.state === 'sound') return;
      log.warn('the database was accepted although it does not match the checkpoint next to the root key', {
        ...finding,
      });
      store.committed?.accept();
      const note = root.anchor.read();
      // Every node is confirmed. With another name for each, the checkpoints of those before would not be of this log any more.
      const isNamed = ['lost-changes', 'older'].includes(finding.state) && (await isNamedAnew());
      await store.rowSet.adopt((note === undefined ? null : parseCheckpoint(note))?.rows?.version ?? 0);
      await store.write(async (tx) => {
        const former = (await tx.settings.get(originSetting)) ?? null;
        if (!isNamed) {
          await nameLog(tx);
          await tx.audit.dropCheckpoints();
        }
        await tx.settings.set(restoredSetting, null);
        await tx.audit.append({
          kind: 'audit-log.accepted',
          actor: actor ?? serviceActor(newId(clock.now())),
          tenantId: serviceTenantId,
          subject: { kind: 'service', id: 'audit-log' },
          details: { state: finding.state, size: sizeOf(finding), expected: expectedOf(finding), former },
        });
      });
      await checkpoint(true);
      suspended = false;
    },
  };
};
