// What this node has read of the changes that the nodes of a store commit, and shows. Each change
// has a number and a random id. After a failover that has lost changes, other changes have their
// numbers: so the id of the last change that is shown here is compared each time, and the id of a
// change that was made here is looked for among those that are read.

import { ServiceError } from '../../base/service-error.ts';
import { within } from '../../base/time-limit.ts';
import { type ChangeMark, lostDifferences, type NodeView, standingOf } from '../../domain/change-protocol.ts';
import { type Changes, mergeChanges } from '../../domain/changes.ts';
import type { Differences } from '../../domain/difference.ts';
import type { NodeLink } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory } from '../../ports/working-memory.ts';

/** How long a change that was committed here may take to be shown here. */
const reachMs = 5_000;
const reachAgainMs = 20;
/**
 * Changes whose ids are known, so that one that was made here is told from another one with its
 * number.
 */
const mostMarks = 1_000;

export interface ShownChanges {
  /** The last one. */
  last(): ChangeMark;
  /** The last one is no longer in the database. Until `resume` nothing is read. */
  isLost(): boolean;
  /** What the decisions of the change protocol are made of. */
  view(): NodeView;
  show(directory: Directory): void;
  /** Nothing is shown yet: what is committed up to this change is about to be loaded. */
  begin(last: ChangeMark): void;
  /** Shows everything that is committed when it is called. */
  catchUp(): Promise<void>;
  /** Catches up when this committed change is not shown yet. */
  heard(newest: ChangeMark): Promise<void>;
  /**
   * Catches up until `own` is shown; answers the number of the last change. `own`: the newest
   * change that a request has made, or has found. Throws 'unavailable' with the reason
   * `unconfirmed` when it is not among what is read, and something else when reading fails or takes
   * too long.
   */
  reach(own?: ChangeMark): Promise<number>;
  /** Reads everything again, and takes the database as it is. */
  resume(): Promise<void>;
}

/** Reads again what was changed, and shows it. */
export const takeChanges = async (
  { store, ring }: Pick<Ports, 'store' | 'ring'>,
  directory: Directory,
  changes: Changes,
): Promise<void> => {
  directory.forget(changes);
  const { keks, restored = [] } = changes;
  if (keks === true || restored.length > 0) await ring.refresh(store.read);
  await directory.renew(changes);
};

/** The last change that was read, and the ids of the last changes by their numbers. */
const createReadMarks = () => {
  let last: ChangeMark = { epoch: 0, history: '' };
  const ids = new Map<number, string>();
  const note = (marks: readonly ChangeMark[]): void => {
    for (const { epoch, history } of marks) ids.set(epoch, history);
    for (const epoch of ids.keys()) {
      if (ids.size <= mostMarks) break;
      ids.delete(epoch);
    }
  };
  return {
    last: (): ChangeMark => last,
    idOf: (epoch: number): string | undefined => ids.get(epoch),
    /** Everything up to this change is read. */
    startFrom: (mark: ChangeMark): void => {
      last = mark;
      ids.clear();
      note([mark]);
    },
    /** These changes are read as well. */
    goOn: (read: { readonly last: ChangeMark; readonly marks: readonly ChangeMark[] }): void => {
      ({ last } = read);
      note(read.marks);
    },
  };
};

/** Why everything is read again. */
const whyAgain = {
  pruned: 'changes were pruned before this node had read them: it reads everything again',
  changed: 'what other nodes have changed was written by another program: this node reads everything again',
} as const;

const lostError = (): ServiceError =>
  new ServiceError('unavailable', 'confirmed changes are missing in the database: this change may have been made', {
    hint: 'run dke quarantine show for what to do',
    reason: 'unconfirmed',
  });
const elsewhereError = (): ServiceError =>
  new ServiceError(
    'unavailable',
    'the change is not in the database that this node reads from: a failover may have lost it',
    {
      hint: 'check whether it was made before you repeat it; dke node list shows the nodes',
      reason: 'unconfirmed',
    },
  );

interface Hooks {
  /** The newest change that the database has now. */
  readonly head: () => Promise<ChangeMark>;
  readonly shown: (last: ChangeMark) => Promise<void>;
  /** What was read of the database. */
  readonly noted: (last: ChangeMark, rows: number) => void;
  /**
   * Resolves when the positions that were noted are on this node's disk: a later start asks for
   * them.
   */
  readonly kept: () => Promise<void>;
  readonly destroyed: () => void;
  readonly lost: (differences: Differences, last: ChangeMark) => Promise<void>;
}

export const createShownChanges = (
  ports: Pick<Ports, 'store' | 'ring' | 'clock' | 'log'>,
  link: Pick<NodeLink, 'changesSince'>,
  hooks: Hooks,
): ShownChanges => {
  const { store, ring, clock, log } = ports;
  let directory: Directory | undefined;
  let lost = false;
  const read = createReadMarks();
  /** The id of the last change that was made or found here, once it is shown. */
  let settled = '';
  let catching: Promise<void> | undefined;

  /** The database has gone back, as after a failover to a standby that lagged behind. */
  const loseTrack = async (instead: ChangeMark): Promise<void> => {
    if (lost) return;
    lost = true;
    const differences = lostDifferences(instead, read.last(), 'the memory of this node');
    log.error('changes that this node has received are missing in the database', { ...differences[0] });
    await hooks.lost(differences, read.last());
  };
  /** Before its id is forgotten. */
  const settle = (): void => {
    const { epoch, history } = store.mark();
    if (read.idOf(epoch) === history) settled = history;
  };
  const view = (): NodeView => ({ applied: read.last(), lost, idOf: read.idOf });
  const reloadAll = async (): Promise<void> => {
    const last = await hooks.head();
    await ring.refresh(store.read);
    await directory?.reload();
    read.startFrom(last);
  };
  const readChanges = async (): Promise<void> => {
    // Not before the first load: what is heard until then is part of it.
    if (directory === undefined || read.last().epoch === 0 || lost) return;
    for (let more = true; more; ) {
      settle();
      // While the size of the audit log is not known yet, its records are not read.
      const known = store.written.tree?.size ?? Number.MAX_SAFE_INTEGER;
      const found = await link.changesSince(read.last(), known);
      if (typeof found === 'object' && 'lost' in found) {
        await loseTrack(found.lost);
        return;
      }
      if (typeof found !== 'object') {
        log.warn(whyAgain[found]);
        await reloadAll();
      } else {
        store.written.saw(known, found.leaves, found.last);
        if (found.changes.length === 0) {
          if (found.leaves.length > 0) hooks.noted(read.last(), found.rows);
          return;
        }
        ({ more } = found);
        const changes = mergeChanges(found.changes);
        await takeChanges(ports, directory, changes);
        read.goOn(found);
        hooks.noted(read.last(), found.rows);
        if (changes.destroyed === true) hooks.destroyed();
      }
      await hooks.shown(read.last());
    }
  };
  const catchUp = async (): Promise<void> => {
    // One that is under way may have read before the commit: it is waited for, then looked again.
    await catching?.catch(() => undefined);
    catching ??= readChanges().finally(() => {
      catching = undefined;
    });
    await catching;
  };
  return {
    last: read.last,
    isLost: () => lost,
    view,
    show: (shown) => {
      directory = shown;
    },
    begin: (last) => {
      read.startFrom(last);
      settled = store.mark().history;
    },
    catchUp,
    heard: async ({ epoch, history }) => {
      // The change of a request here has been read for its answer by now.
      await catching?.catch(() => undefined);
      if (read.idOf(epoch) !== history) await catchUp();
    },
    reach: async (own = store.mark()) => {
      const until = clock.monotonic() + reachMs;
      // A change that seems to be shown is looked up, too: after a failover another change may have
      // had its number.
      for (;;) {
        if (!(await within(until - clock.monotonic(), catchUp())))
          throw new Error('the changes could not be read in time');
        const standing = standingOf(own, settled, view());
        if (standing.state === 'lost') throw lostError();
        if (standing.state !== 'awaited' || clock.monotonic() > until) {
          if (standing.state !== 'shown') break;
          if (!(await within(until - clock.monotonic(), hooks.kept())))
            throw new Error('the position of the database could not be kept in time');
          settled = own.history;
          return standing.epoch;
        }
        await new Promise<void>((resolve) => {
          setTimeout(resolve, reachAgainMs);
        });
      }
      // Committed on a primary that is none any longer, it is in no database that counts.
      throw elsewhereError();
    },
    resume: async () => {
      await reloadAll();
      settled = store.mark().history;
      lost = false;
    },
  };
};
