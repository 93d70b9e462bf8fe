// What nodes that share a database decide about changes: what continues the changes that a node
// shows, whether it may use keys, which nodes a change waits for, and whether a change is in force.
// Pure functions on plain data. The nodes run them, and test/model explores every order of their
// steps.
//
// A change has a number (epoch) and a random id (history), and names the change before it. Numbers
// do not identify histories: after a failover that lost changes, another change may have the number
// of a lost one.

import type { Differences } from './difference.ts';
import type { NodeState } from './node.ts';

/** A change, by its number and its random id. */
export interface ChangeMark {
  readonly epoch: number;
  readonly history: string;
}

/** A state of a database, as a later state of the same one proves that it has it. */
export interface StorePosition {
  readonly last: ChangeMark;
  /** Records of the audit log, and the root of their tree, in hexadecimal. */
  readonly records: number;
  readonly root: string;
  /** Version of the policy rows. */
  readonly rows: number;
}

export const isSameChange = (a: ChangeMark, b: ChangeMark): boolean => a.epoch === b.epoch && a.history === b.history;

/** This change is no longer in the database. */
const markText = ({ epoch, history }: ChangeMark): string => `change ${epoch}, id ${history}`;
export const lostDifferences = (found: ChangeMark, expected: ChangeMark, expectedIn: string): Differences => [
  {
    ...{ what: 'change', found: markText(found), foundIn: 'its table node_head or node_changes' },
    ...{ expected: markText(expected), expectedIn },
  },
];

/**
 * How the database continues after the last change that a node shows. `nothing`: the node shows
 * everything. `changes`: apply them. `reload`: some were pruned, so read everything again. `lost`:
 * the change is no longer in the database, which has returned to an earlier state.
 */
export type Continuation = 'nothing' | 'changes' | 'reload' | 'lost';

/**
 * `next`: the change before the first one that is kept after the applied one; undefined: no such
 * change is kept.
 */
export const continuationOf = (
  applied: ChangeMark,
  { head, next }: { readonly head: ChangeMark; readonly next: ChangeMark | undefined },
): Continuation => {
  if (head.epoch < applied.epoch) return 'lost';
  if (head.epoch === applied.epoch) return isSameChange(head, applied) ? 'nothing' : 'lost';
  if (next === undefined || next.epoch > applied.epoch) return 'reload';
  return isSameChange(next, applied) ? 'changes' : 'lost';
};

/** What a node knows of itself. */
export interface NodeView {
  /** The last change that it shows. */
  readonly applied: ChangeMark;
  /** That change is no longer in the database, and no operator has confirmed this yet. */
  readonly lost: boolean;
  /**
   * The id of a change by its number, if it is the one up to which the node last read everything,
   * or one that it has applied since.
   */
  idOf(epoch: number): string | undefined;
}

/**
 * Whether a beat that has found this head shows that the node has everything that was committed
 * when it began. `before`: the last change that it showed then. A head with a lower number, or with
 * the number of a change that was applied earlier, may be that of a database that has returned to
 * an earlier state: so the head must be that change, or one that the node has applied since.
 */
export const renewsContact = (head: ChangeMark, before: ChangeMark, { lost, idOf }: NodeView): boolean =>
  !lost && (isSameChange(before, head) || (before.epoch < head.epoch && idOf(head.epoch) === head.history));

/**
 * `contactMs`: how long a node uses keys without hearing of changes; 0: without a limit.
 * `silentMs`: since the last whole beat began.
 */
export const mayUseKeys = (
  { lost }: Pick<NodeView, 'lost'>,
  contact: { readonly contactMs: number; readonly silentMs: number },
): boolean => !lost && (contact.contactMs === 0 || contact.silentMs < contact.contactMs);

/** Another node as the node that answers knows it. */
export interface Peer {
  readonly state: NodeState;
  readonly contactMs: number;
  /** Since its last heartbeat. */
  readonly silentMs: number;
}

/**
 * A removed node without a limit (`contact_seconds = 0`) is named for so long after its last
 * heartbeat.
 */
const removedNamedMs = 300_000;

/**
 * How long the node may still use keys without hearing of changes; undefined: no longer; null: no
 * limit.
 */
export const actsForMs = ({ state, contactMs, silentMs }: Peer): number | null | undefined => {
  if (state === 'stopped') return undefined;
  const bound = contactMs === 0 && state === 'removed' ? removedNamedMs : contactMs;
  if (bound === 0) return null;
  return silentMs < bound ? bound - silentMs : undefined;
};

/**
 * Which of these nodes may act on what was before this change. `shownBy`: the last change that a
 * node has said it shows.
 */
export const pendingOf = <P extends Peer>(
  peers: readonly P[],
  epoch: number,
  shownBy: (peer: P) => number,
): readonly P[] => peers.filter((peer) => actsForMs(peer) !== undefined && shownBy(peer) < epoch);

/** How long they may do so, at most; null: without a limit. */
export const pendingForMs = (pending: readonly Peer[]): number | null => {
  const times = pending.map(actsForMs).filter((ms) => ms !== undefined);
  return times.includes(null) ? null : Math.max(0, ...times.map(Number));
};

/**
 * What has become of the last change that a node has made, or that its last unit of work has found.
 * `shown`: it is in force here, and on every node that shows this epoch. `awaited`: this node has
 * not yet received it. `elsewhere`: it is not in the database that this node reads. `lost`: this
 * node has missed changes.
 */
export type Standing =
  | { readonly state: 'shown'; readonly epoch: number }
  | { readonly state: 'awaited' | 'elsewhere' | 'lost' };

/**
 * `settled`: the id of such a change that was shown before. A request that has changed nothing
 * waits for the newest change, too: it may have found the work of another one done, which not every
 * node shows yet, or which a failover loses before this node reads it.
 */
export const standingOf = (own: ChangeMark, settled: string, { applied, lost, idOf }: NodeView): Standing => {
  if (lost) return { state: 'lost' };
  if (own.history !== settled) {
    if (applied.epoch < own.epoch) return { state: 'awaited' };
    if (idOf(own.epoch) !== own.history) return { state: 'elsewhere' };
  }
  return { state: 'shown', epoch: applied.epoch };
};
