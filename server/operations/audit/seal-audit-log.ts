// Checkpoints of the audit log: at every thousandth record, each minute in which there was one, and
// on request. Each checkpoint also names the version of the set of policy rows. It is stored, and
// kept next to the root key, away from the database. At start and before each checkpoint the two
// are compared, and the rows are compared with their set once a minute: a database that was put
// back from an older copy, or changed, is not served.

import { parseCheckpoint, verifyLogNote } from '../../base/checkpoint.ts';
import type { Emitter } from '../../base/events.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { Actor } from '../../domain/actor.ts';
import type { AuditFinding, Unsound } from '../../domain/audit-finding.ts';
import { differencesOf } from '../../domain/difference.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredCheckpoint } from '../../ports/store.ts';
import { acceptDatabase } from './accept-database.ts';
import { auditOrigin } from './audit-origin.ts';
import {
  ChangedDatabase,
  compareAtStart,
  readKept,
  requireContinued,
  restoredFinding,
  restoredSetting,
} from './compare-log.ts';
import { requireWritten, takeLog } from './compare-written.ts';
import { createCheckpoints } from './sign-checkpoint.ts';

const everyRecords = 1_000;
const everyMs = 60_000;
const lookEveryMs = 1_000;
/** Records that a kept checkpoint covers; below every size when there is none. */
const sizeOfNote = (note: string | undefined): number =>
  note === undefined ? -1 : (parseCheckpoint(note)?.size ?? -1);
/** Comparing all policy rows takes at most this part of the time. */
const comparingShare = 0.01;
const mostNamed = 5;

type SealPorts = Pick<Ports, 'store' | 'ring' | 'root' | 'clock' | 'log'> & {
  /** Runs `work` when this server makes checkpoints by the clock; undefined: another one does. */
  readonly perform: <T>(work: () => Promise<T>) => Promise<T | undefined>;
  readonly events: Emitter<SealEvents>;
};

export interface SealEvents {
  /** The database was found to be another one while the service runs: nothing is signed. */
  readonly databaseChanged: Unsound;
}

export interface AuditSealer {
  /** Covers every record; answers the newest checkpoint, also when there was nothing new. */
  checkpoint(): Promise<StoredCheckpoint | undefined>;
  /**
   * Makes one when it is due; where another node does, keeps its newest one next to this node's
   * root key. Called by the clock.
   */
  run(): Promise<void>;
  /** Before anything is served. Names the log at the first start. */
  inspect(): Promise<AuditFinding>;
  /**
   * A new key signs from now on. The former one's last checkpoint names it, and covers the record
   * of the rotation. The former key's record is overwritten, and a rotation of the root key is
   * requested, after which no older copy of the database opens it. Throws 'conflict' while one is
   * under way.
   */
  rotateKey(actor: Actor): Promise<void>;
  /** This node enters quarantine: nothing is signed or kept next to the root key until `accept`. */
  suspend(): void;
  /** An operator takes the database as it is: the log continues under a new name, and says so. */
  accept(finding: AuditFinding, actor?: Actor): Promise<void>;
}

/** All policy rows against their set, in one state. */
const findChangedRows = async (store: SealPorts['store']): Promise<Unsound | undefined> => {
  const { size, older, ...found } = await store.snapshot(async (state) => ({
    ...(await state.whole.compareRowSet()),
    size: await state.audit.size(),
  }));
  const differences = differencesOf(found.differences);
  return differences === undefined
    ? undefined
    : {
        ...{ state: 'rows-changed', size, older: older.slice(0, mostNamed), differences },
        atLeast: { rows: store.rowSet.version() },
      };
};

const inspectLog = async (ports: Pick<SealPorts, 'store' | 'root' | 'ring' | 'clock'>): Promise<AuditFinding> => {
  const { store } = ports;
  const found = await compareAtStart(ports);
  // Where something else is wrong, more is known.
  if (found.state !== 'intact') return found;
  const restored = await store.read.decisions.get(restoredSetting);
  if (restored !== undefined) return restoredFinding(restored, await store.read.audit.size());
  await takeLog({ store });
  return found;
};

export const createAuditSealer = ({ store, ring, root, clock, log, perform, events }: SealPorts): AuditSealer => {
  let lookedAt = clock.monotonic();
  let comparedAt = clock.monotonic();
  let rowsDueAt = clock.monotonic() + everyMs;
  let suspended = false;
  const checkpoints = createCheckpoints({ store, ring, root, clock, log });
  /** The log's name when this node started. */
  let nameAtStart: string | undefined;
  let sealing: Promise<StoredCheckpoint | undefined> | undefined;

  /** One after the other: the later one covers what came in the meantime. */
  const afterOthers = async <T extends StoredCheckpoint | undefined>(work: () => Promise<T>): Promise<T> => {
    await sealing?.catch(() => undefined);
    const own = work();
    sealing = own;
    return tellChanged(own);
  };
  const checkpoint = (accepted = false): Promise<StoredCheckpoint | undefined> =>
    afterOthers(() => checkpoints.seal(accepted));
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
  /**
   * All policy rows against their set. Not awaited by the clock: with many rows it takes seconds.
   */
  const compareRows = async (): Promise<void> => {
    const from = clock.monotonic();
    try {
      const changed = await findChangedRows(store);
      if (changed !== undefined) {
        suspended = true;
        events.emit('databaseChanged', changed);
      }
    } catch (error) {
      log.error('the policy rows could not be compared with their set', { error });
    }
    rowsDueAt = clock.monotonic() + Math.max(everyMs, (clock.monotonic() - from) / comparingShare);
  };
  /**
   * The newest checkpoint that another node has made, when the log is still the one of the
   * checkpoint that is kept here.
   */
  const follow = async (): Promise<void> => {
    const latest = await store.read.audit.latestCheckpoint();
    const kept = readKept(root);
    const isNewer = latest !== undefined && latest.size > sizeOfNote(kept.note);
    const now = clock.monotonic();
    // Where nothing is signed, the log is compared all the same.
    if (!isNewer && now - comparedAt < everyMs) return;
    comparedAt = now;
    const { tree } = store.written;
    await tellChanged(
      store.snapshot(async (state) => {
        await requireContinued(kept, state);
        await requireWritten(store, state, tree);
      }),
    );
    if (!isNewer) return;
    await ring.refreshAuditKey(store);
    if (verifyLogNote(latest.note, await auditOrigin(store.read), ring.auditKeys()) === null) {
      log.error('the newest checkpoint of the audit log is not signed by this service');
      return;
    }
    // This node may have signed a newer one in the meantime.
    if (!suspended && latest.size > sizeOfNote(root.anchor.read())) root.anchor.write(latest.note);
    if (!suspended) store.written.forget(latest.size);
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
        if (size - covered >= everyRecords || (size > covered && now - checkpoints.sealedAt() >= everyMs))
          await checkpoint();
        return true;
      });
      // Another node may have signed one although this node makes them: when an operator has
      // confirmed there.
      if (done === undefined || store.link !== undefined) await follow();
    },

    rotateKey: async (actor) => {
      await afterOthers(() => checkpoints.sealWithNextKey(actor));
    },

    inspect: async () => {
      const found = await inspectLog({ store, root, ring, clock });
      nameAtStart = await auditOrigin(store.read);
      return found;
    },

    suspend: () => {
      suspended = true;
    },

    accept: async (finding, actor) => {
      if (finding.state === 'intact') return;
      await acceptDatabase({ store, root, clock, log }, { finding, actor, nameAtStart });
      await takeLog({ store });
      await checkpoint(true);
      suspended = false;
    },
  };
};
