// The heartbeat of a node: once a second, and whenever the link to the store was lost or a root key
// is on its way, it tells the others that it runs, shows what they have changed, follows a rotation
// of the root key, and takes over work that one node does for all.

import { within } from '../../base/time-limit.ts';
import { renewsContact } from '../../domain/change-protocol.ts';
import type { Duty } from '../../domain/node.ts';
import type { RootRun } from '../../domain/root-run.ts';
import type { NodeLink, NodeStart, SeenNode } from '../../ports/node-link.ts';
import type { Contact } from './memory-freshness.ts';
import type { NodeDuties } from './node-duties.ts';
import type { FleetPorts, NodeWork } from './running-fleet.ts';
import type { ShownChanges } from './shown-changes.ts';

const beatMs = 1_000;
/** Without a whole beat for so long, this node does not hear of changes: health says so. */
const deafAfterMs = 5_000;
/**
 * How long a beat waits until the changes that it has found are shown. The next beat continues with
 * them: a node that reads slowly is behind, not silent.
 */
const showMs = 1_000;
/**
 * Changes that are kept for nodes that are behind; who is further behind reads everything again.
 */
const keepChangesMs = 600_000;
const pruneEveryMs = 60_000;

export interface Heartbeat {
  /** The first beat; the others follow by the clock. */
  start(work: NodeWork): Promise<void>;
  /** A beat now, after the one that is under way. */
  now(): Promise<void>;
  /** Waits for the beat that is under way; none follows. */
  stop(): Promise<void>;
  isRunning(): boolean;
  /**
   * The link to the store was lost: health says so at once. The next beat makes it again, or tells
   * why not.
   */
  linkLost(): void;
  /** The last beat has failed. */
  isAway(): boolean;
  /** See Fleet. */
  hears(): boolean;
  /** An operator wants requests to go elsewhere. */
  draining(): boolean;
  /** The rows of all nodes, as the last whole beat has seen them. */
  seen(): readonly SeenNode[];
}

/**
 * A row of an earlier start may say that the node has stopped, and others would not wait for it.
 * The beat has put it right.
 */
const noteStart = (log: FleetPorts['log'], { startedAt }: NodeStart, found: number): void => {
  if (startedAt === found) return;
  log.error(
    'the row of this node was of another start: another server has run as this node meanwhile, or the database is in an earlier state',
    { startedAt, found },
  );
};

export const createHeartbeat = (
  { clock, log, events }: Pick<FleetPorts, 'clock' | 'log' | 'events'>,
  selfId: string,
  {
    link,
    changes,
    ownDuties,
    contact,
    heardNodes,
    schema: ownSchema,
    run: ownRun,
  }: {
    readonly link: Pick<NodeLink, 'beat' | 'pruneChanges'>;
    readonly changes: Pick<ShownChanges, 'last' | 'catchUp' | 'view'>;
    readonly ownDuties: Pick<NodeDuties, 'tend' | 'holds'>;
    readonly contact: Contact;
    readonly heardNodes: () => Promise<readonly SeenNode[]>;
    /** The database schema of this version of the service. */
    readonly schema: string;
    /** This start; undefined: the node has not joined. */
    readonly run: () => NodeStart | undefined;
  },
): Heartbeat => {
  let work: NodeWork | undefined;
  let seen: readonly SeenNode[] = [];
  let draining = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();
  let prunedAt = clock.monotonic();
  let away = false;
  /** The link has not been lost since the last whole beat. */
  let linked = true;

  const tend = async (rootRun: RootRun | undefined, { mayTendSnapshots, mayLead }: NodeWork): Promise<void> => {
    const tendsSnapshots = await mayTendSnapshots();
    const leads = tendsSnapshots && (await mayLead(rootRun, othersOf(seen, selfId)));
    const mayHave = (duty: Duty): boolean => (duty === 'erasure' ? leads : duty !== 'schedules' || tendsSnapshots);
    for (const duty of await ownDuties.tend((each) => !draining && !stopped && mayHave(each)))
      events.emit('dutyTaken', duty);
    if (ownDuties.holds('pruning') && clock.monotonic() - prunedAt > pruneEveryMs) {
      prunedAt = clock.monotonic();
      await link.pruneChanges(keepChangesMs);
    }
  };
  const beat = async (): Promise<void> => {
    const began = contact.now();
    const before = changes.last();
    const run = ownRun();
    const { state, startedAt, schema, last, rootRun } = await link.beat(
      { id: selfId, shown: before, run },
      clock.now(),
    );
    if (schema !== ownSchema) {
      events.emit('schemaChanged', schema);
      return;
    }
    if (state === undefined || state === 'removed') {
      events.emit(state === undefined ? 'nodeLost' : 'nodeRemoved', undefined);
      return;
    }
    if (run !== undefined) noteStart(log, run, startedAt);
    draining = state === 'draining';
    // Catching up does not depend on a new change: audit records are read soon after another node
    // has written them. Under a steady stream of changes reading does not end; that everything up
    // to this beat is shown is enough.
    await within(showMs, changes.catchUp());
    if (!renewsContact(last, before, changes.view())) return;
    contact.renew(began);
    if (away) log.info('this node is connected again and receives changes');
    away = false;
    linked = true;
    seen = await heardNodes();
    if (work === undefined) return;
    await work.followRootRun(
      rootRun,
      seen.find(({ id }) => id === selfId),
    );
    await tend(rootRun, work);
  };
  const now = (): Promise<void> => {
    beating = beating.then(async () => {
      if (stopped) return;
      try {
        await beat();
      } catch (error) {
        if (!away) log.error('this node does not receive changes: the store does not answer', { error });
        away = true;
      }
    });
    return beating;
  };
  const next = (): void => {
    timer = setTimeout(() => {
      void now().finally(() => {
        if (!stopped) next();
      });
    }, beatMs);
    timer.unref();
  };

  return {
    start: async (given) => {
      work = given;
      await beat();
      next();
    },
    now,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await beating;
    },
    isRunning: () => work !== undefined && !stopped,
    linkLost: () => {
      linked = false;
      void now();
    },
    isAway: () => away,
    hears: () => linked && !away && contact.monotonicMs() < deafAfterMs,
    draining: () => draining,
    seen: () => seen,
  };
};

/** The nodes that are not removed, without this one. */
export const othersOf = (nodes: readonly SeenNode[], selfId: string): readonly SeenNode[] =>
  nodes.filter(({ id, state }) => id !== selfId && state !== 'removed');
