// The change protocol of several nodes on one database as a model for test/support/explore.ts. The
// nodes' decisions are those of server/domain/change-protocol.ts; the database and the order of
// events are here.
//
// What can happen, in any order: a node makes a change (it disables a key), or repeats one that is
// made; it hears of it, tells the others, asks them, and answers, with the names of nodes that may
// still act on the old state. Each node beats: the database answers at one moment, the node gets
// the answer at a later one, or never. The database forgets rows of changes. A standby copies the
// database at some moment, and takes over: what came later is lost. An operator removes a node,
// confirms a loss, or stops and starts a node; a node crashes. Time passes in ticks, for all alike.
//
// A crash and a stop leave what is on the node's own disk: the last position that it has written,
// and that it is in quarantine. A start compares the position with the database, as
// operations/nodes/compare-position.ts does. A position is written at any moment, and before an
// acknowledgement leaves.
//
// A node that is stopped by a signal, paused, or cut off is one that takes no step for a while.
// Every key is disabled once: key n by change n.
//
// Left out: the check of a request and the use of a key are one moment; clocks that run at
// different rates or jump (the observer's silence of a node is its true silence; heard-nodes.ts
// never measures more, except a node that starts after a failover and has only the database's
// clock); an old primary that still answers; `contact_seconds = 0`; the audit log, by which a node
// finds a loss whose change was pruned since; a disk of a node that is lost; enabling.

import type * as protocol from '../../server/domain/change-protocol.ts';
import type { NodeState } from '../../server/domain/node.ts';
import type { Model } from '../support/explore.ts';

export type Protocol = typeof protocol;

export interface Bounds {
  readonly nodes: number;
  /** How many ticks a node uses keys without contact. */
  readonly contact: number;
  readonly changes: number;
  readonly repeats?: number;
  readonly prunes?: number;
  readonly failovers?: number;
  readonly removals?: number;
  readonly stops?: number;
  readonly crashes?: number;
  /**
   * The answer to a beat comes at a later moment, or never; what a node has applied it tells at a
   * later moment. Else both are one moment: see above.
   */
  readonly late?: boolean;
  /** A defect: the database accepts the number that a node reports, without comparing the id. */
  readonly unchecked?: boolean;
  /**
   * A defect: a request that changes nothing does not look up the change that it has found done.
   */
  readonly unfound?: boolean;
  /** A defect: an acknowledgement does not wait until the position is on the node's disk. */
  readonly unkept?: boolean;
  /** A defect: a start does not read this of what the node has on its disk. */
  readonly unread?: 'quarantine and position' | 'position' | 'quarantine';
}

/**
 * A change: its number, and the one before it. Its place in the list represents its random id, and
 * for the key that it disables.
 */
interface Commit {
  readonly epoch: number;
  readonly parent: number;
  /** All that lead to it, and itself, one bit each. */
  readonly chain: number;
}

interface Row {
  readonly state: NodeState;
  /** The newest change that the node has reported, by its row or by a notification. */
  readonly reported: number;
}

interface Database {
  readonly head: number;
  /** Rows of changes before this number are forgotten. */
  readonly kept: number;
  readonly rows: readonly Row[];
}

interface Beat {
  readonly age: number;
  readonly head: number;
  /** What the node showed when it was sent. */
  readonly before: number;
  readonly removed: boolean;
  readonly era: number;
}

interface Node {
  /**
   * `joining`: it has loaded everything. `joined`: its first beat is under way. `ending`: it serves
   * no longer.
   */
  readonly runs: 'off' | 'joining' | 'joined' | 'on' | 'ending';
  readonly applied: number;
  readonly lost: boolean;
  /** Keys that its memory shows as disabled, one bit each. */
  readonly shows: number;
  /** The change up to which it last read everything, and those that it has applied since. */
  readonly known: number;
  readonly unreported: boolean;
  /** Ticks since the start of its last complete beat, and since its last heartbeat. */
  readonly silent: number;
  readonly heartbeat: number;
  readonly beat: Beat | undefined;
  /** The database that its last complete beat has reached. */
  readonly era: number;
  readonly own: number;
  readonly settled: number;
  /** A request under way. `epoch`: what its answer waits for. */
  readonly request: { readonly key: number; readonly epoch: number | undefined } | undefined;
  /** A failover has lost a change that it shows, and it has not reported that. */
  readonly owes: boolean;
  /** On its disk: the last position that it has written, and that it is in quarantine. */
  readonly kept: number;
  readonly quarantined: boolean;
  /**
   * Keys whose disabling it has acknowledged since it last took a database as it is, one bit each.
   */
  readonly acknowledged: number;
}

export interface State {
  readonly commits: readonly Commit[];
  readonly primary: Database;
  /** The standby as it was when it fell behind permanently; undefined: it is not behind. */
  readonly standby: Database | undefined;
  readonly era: number;
  readonly nodes: readonly Node[];
  /**
   * For each key whose disabling was acknowledged: the remaining ticks for which the answers name
   * each node. Undefined: not acknowledged.
   */
  readonly promises: readonly (readonly number[] | undefined)[];
  readonly left: Readonly<
    Record<'repeats' | 'prunes' | 'failovers' | 'removals' | 'stops' | 'crashes' | 'resumes', number>
  >;
  readonly fault: string | undefined;
}

const none = -1;
/** `reported` of a node that has stopped in order: such a node is behind nothing. */
const all = 9;
const nameOf = (at: number): string => 'ABCDE'[at] ?? '?';
const replace = <T>(list: readonly T[], at: number, value: T): readonly T[] => list.with(at, value);

export const createChangeModel = (protocol: Protocol, bounds: Bounds): Model<State> => {
  const { continuationOf, renewsContact, mayUseKeys, pendingOf, pendingForMs, standingOf } = protocol;
  const noChange: protocol.ChangeMark = { epoch: 0, history: '' };
  const marks = new Map<number, protocol.ChangeMark>();
  const markOf = ({ commits }: Pick<State, 'commits'>, id: number): protocol.ChangeMark => {
    const commit = commits[id];
    if (commit === undefined) return noChange;
    const at = id * 16 + commit.epoch;
    const mark = marks.get(at) ?? { epoch: commit.epoch, history: `change ${id}` };
    marks.set(at, mark);
    return mark;
  };
  const ancestor = ({ commits }: State, id: number, epoch: number): number => {
    for (let each = id; each >= 0; each = commits[each]?.parent ?? none)
      if (commits[each]?.epoch === epoch) return each;
    return none;
  };
  const chainOf = ({ commits }: State, id: number): number => commits[id]?.chain ?? 0;
  const isIn = (state: State, id: number, head: number): boolean => (chainOf(state, head) & (1 << id)) !== 0;
  const epochOf = ({ commits }: State, id: number): number => commits[id]?.epoch ?? 0;

  const withNode = (state: State, at: number, change: Partial<Node>): State => ({
    ...state,
    nodes: replace(state.nodes, at, { ...(state.nodes[at] as Node), ...change }),
  });
  const withPrimary = (state: State, change: Partial<Database>): State => {
    const primary = { ...state.primary, ...change };
    return { ...state, primary };
  };
  const withRow = (state: State, at: number, change: Partial<Row>): State =>
    withPrimary(state, { rows: replace(state.primary.rows, at, { ...(state.primary.rows[at] as Row), ...change }) });
  const viewOf = (state: State, node: Node): protocol.NodeView => ({
    applied: markOf(state, node.applied),
    lost: node.lost,
    idOf: (epoch) => {
      const id = ancestor(state, node.applied, epoch);
      return (node.known & (1 << id)) === 0 ? undefined : markOf(state, id).history;
    },
  });

  /**
   * How the database treats a change that a node reports as shown: it counts when it is in the
   * database's own history.
   */
  const tell = (state: State, at: number): State => {
    const node = state.nodes[at] as Node;
    const counts = bounds.unchecked === true || isIn(state, node.applied, state.primary.head);
    const reported = Math.max(state.primary.rows[at]?.reported ?? 0, counts ? epochOf(state, node.applied) : 0);
    return withNode(withRow(state, at, { reported }), at, { unreported: false });
  };
  /** The number of the first change that the database has kept after this one. */
  const firstAfter = (state: State, id: number): number => Math.max(state.primary.kept, epochOf(state, id) + 1);
  const continuationAfter = (state: State, id: number): protocol.Continuation => {
    const { head } = state.primary;
    const first = firstAfter(state, id);
    const next = first > epochOf(state, head) ? undefined : markOf(state, ancestor(state, head, first - 1));
    return continuationOf(markOf(state, id), { head: markOf(state, head), next });
  };
  /** Reads what has changed, and shows it. */
  const read = (state: State, at: number): State => {
    const node = state.nodes[at] as Node;
    if (node.lost) return state;
    const { head } = state.primary;
    const first = firstAfter(state, node.applied);
    const how = continuationAfter(state, node.applied);
    if (how === 'nothing') return state;
    if (how === 'lost')
      return withNode(state, at, {
        ...{ lost: true, quarantined: true, owes: false, unreported: false, request: undefined },
      });
    const chain = chainOf(state, head);
    if (how === 'reload')
      return withNode(state, at, { applied: head, shows: chain, known: 1 << head, unreported: true, owes: false });
    let bits = 0;
    for (let epoch = first; epoch <= epochOf(state, head); epoch += 1) bits |= 1 << ancestor(state, head, epoch);
    return withNode(state, at, { applied: head, shows: node.shows | bits, known: node.known | bits, unreported: true });
  };
  const catchUp = (state: State, at: number): State => {
    const caught = read(state, at);
    return caught === state || bounds.late === true || caught.nodes[at]?.lost === true ? caught : tell(caught, at);
  };
  /** `reads`: what has changed is read in time. */
  const receive = (state: State, at: number, beat: Beat, reads = true): State => {
    if (beat.removed) return withNode(state, at, off);
    const caught = beat.head === state.nodes[at]?.applied || !reads ? state : catchUp(state, at);
    const node = caught.nodes[at] as Node;
    const renewed = renewsContact(markOf(state, beat.head), markOf(state, beat.before), viewOf(caught, node));
    return withNode(caught, at, {
      beat: undefined,
      ...(renewed ? { silent: beat.age, era: beat.era, runs: node.runs === 'joined' ? 'on' : node.runs } : {}),
    });
  };
  const reach = (state: State, at: number): State => {
    const caught = catchUp(state, at);
    const node = caught.nodes[at] as Node;
    if (node.request === undefined) return caught;
    const settled = markOf(state, node.settled).history;
    const standing = standingOf(markOf(state, node.own), settled, viewOf(caught, node));
    if (standing.state === 'awaited') return caught;
    if (standing.state === 'shown')
      return withNode(caught, at, {
        ...{ settled: node.own, request: { ...node.request, epoch: standing.epoch } },
        ...(bounds.unkept === true ? {} : { kept: node.applied }),
      });
    return withNode(caught, at, { request: undefined });
  };
  const answer = (state: State, at: number): State => {
    const node = state.nodes[at] as Node;
    const { key, epoch } = node.request as { readonly key: number; readonly epoch: number };
    const peers = state.nodes.flatMap(({ heartbeat }, other) => {
      const row = state.primary.rows[other] as Row;
      return other === at ? [] : [{ ...row, other, contactMs: bounds.contact, silentMs: heartbeat }];
    });
    const pending = pendingOf(peers, epoch, ({ reported }) => reported);
    const until = pending.length === 0 ? 0 : (pendingForMs(pending) ?? Number.POSITIVE_INFINITY);
    const named = state.nodes.map((_, other) => (pending.some((peer) => peer.other === other) ? until : 0));
    const acknowledged = node.acknowledged | (1 << key);
    const answered = withNode(state, at, { request: undefined, acknowledged });
    if (!isIn(state, key, state.primary.head))
      return isIn(state, key, node.applied)
        ? answered
        : { ...answered, fault: `${nameOf(at)} acknowledged a change that is lost, and no node will report it` };
    const before = state.promises[key];
    const promise = named.map((ticks, other) => Math.min(ticks, before?.[other] ?? ticks));
    return { ...answered, promises: replace(state.promises, key, promise) };
  };
  const failOver = (state: State, standby: Database): State => {
    const kept = chainOf(state, standby.head);
    return {
      ...state,
      primary: standby,
      standby: undefined,
      era: state.era + 1,
      left: { ...state.left, failovers: state.left.failovers - 1 },
      nodes: state.nodes.map((node) => ({
        ...node,
        owes: node.runs !== 'off' && (kept & (1 << node.applied)) === 0,
      })),
      promises: state.promises.map((promise, key) => ((kept & (1 << key)) === 0 ? undefined : promise)),
    };
  };
  const off: Partial<Node> = {
    ...{
      runs: 'off',
      applied: none,
      lost: false,
      shows: 0,
      known: 0,
      unreported: false,
      silent: bounds.contact,
      beat: undefined,
    },
    ...{ era: 0, own: none, settled: none, request: undefined, owes: false },
  };
  const loaded = (state: State, at: number): State =>
    withNode(state, at, {
      ...{
        applied: state.primary.head,
        shows: chainOf(state, state.primary.head),
        lost: false,
        known: 1 << state.primary.head,
      },
      settled: state.nodes[at]?.own ?? none,
    });
  /** An operator has confirmed: nothing older is on its disk. */
  const accepted = (state: State, at: number): State =>
    withNode(loaded(state, at), at, { kept: state.primary.head, quarantined: false, acknowledged: 0 });
  /** What a start finds on the node's disk, and in the database. */
  const mustWait = (state: State, { kept, quarantined }: Node): boolean => {
    const { unread = '' } = bounds;
    if (quarantined && !unread.includes('quarantine')) return true;
    if (kept === none || unread.includes('position')) return false;
    return continuationAfter(state, kept) === 'lost';
  };
  const spend = (state: State, what: keyof State['left']): State => ({
    ...state,
    left: { ...state.left, [what]: state.left[what] - 1 },
  });
  const sendBeat = (state: State, at: number): State => {
    const { head, rows } = state.primary;
    const beat = {
      age: 0,
      head,
      before: state.nodes[at]?.applied ?? none,
      removed: rows[at]?.state === 'removed',
      era: state.era,
    };
    return withNode(tell(state, at), at, { heartbeat: 0, beat });
  };
  const tick = (state: State): State => ({
    ...state,
    nodes: state.nodes.map((node) => ({
      ...node,
      silent: Math.min(bounds.contact, node.silent + 1),
      heartbeat: Math.min(bounds.contact, node.heartbeat + 1),
      // An answer that is older than that renews nothing.
      beat:
        node.beat === undefined || node.beat.age + 1 >= bounds.contact
          ? undefined
          : { ...node.beat, age: node.beat.age + 1 },
      ...(node.runs === 'joined' && (node.beat?.age ?? 0) + 1 >= bounds.contact ? off : {}),
    })),
    promises: state.promises.map((promise) => promise?.map((ticks) => Math.max(0, ticks - 1))),
  });

  /** What is on a node's disk decides something only at a start after a failover. */
  const keepsMatter = ({ left }: State): boolean => (bounds.failovers ?? 0) > 0 && left.stops + left.crashes > 0;

  function* stepsOf(state: State, at: number): Iterable<readonly [string, State]> {
    const node = state.nodes[at] as Node;
    const name = nameOf(at);
    const { head, rows } = state.primary;
    const row = rows[at] as Row;
    if (node.runs === 'off') {
      if (row.state === 'removed') return;
      if (!mustWait(state, node)) {
        const started = withNode(loaded(state, at), at, { runs: 'joining' });
        const lacks = (node.acknowledged & ~chainOf(state, head)) !== 0;
        const fault = `${name} starts with a database that lacks what it has acknowledged, and is not in quarantine`;
        yield [`${name} starts: it loads everything`, lacks ? { ...started, fault } : started];
      } else if (state.left.resumes > 0)
        yield [
          `${name} starts in quarantine, and an operator confirms`,
          spend(withNode(accepted(state, at), at, { runs: 'joining' }), 'resumes'),
        ];
      return;
    }
    if (node.runs === 'joining') {
      const joined = withRow(state, at, { state: row.state === 'removed' ? 'removed' : 'active', reported: 0 });
      yield [`${name} joins`, sendBeat(withNode(joined, at, { runs: 'joined' }), at)];
      return;
    }
    if (node.runs === 'ending') {
      const left = withRow(state, at, { state: row.state === 'removed' ? 'removed' : 'stopped', reported: all });
      yield [`${name} leaves`, withNode(left, at, off)];
      return;
    }
    if (node.beat !== undefined) {
      yield [`${name} gets the answer to its beat`, receive(state, at, node.beat)];
      if (node.applied !== node.beat.head)
        yield [
          `${name} gets the answer to its beat, and cannot read the changes in time`,
          receive(state, at, node.beat, false),
        ];
    } else {
      const sent = sendBeat(state, at);
      yield [`${name} beats`, bounds.late === true ? sent : receive(sent, at, sent.nodes[at]?.beat as Beat)];
    }
    if (node.runs !== 'on') return;
    if (!node.lost && node.applied !== head) yield [`${name} reads what has changed`, catchUp(state, at)];
    if (node.unreported) yield [`${name} tells what it shows`, tell(state, at)];
    if (!node.lost && node.kept !== node.applied && keepsMatter(state))
      yield [`${name} writes its position`, withNode(state, at, { kept: node.applied })];
    if (node.lost) {
      if (state.left.resumes > 0)
        yield [
          `${name} continues: an operator has confirmed`,
          spend(withNode(accepted(state, at), at, { unreported: true }), 'resumes'),
        ];
    } else if (node.request === undefined) {
      if (state.commits.length <= bounds.changes) {
        const id = state.commits.length;
        const made = {
          ...state,
          commits: [
            ...state.commits,
            { epoch: epochOf(state, head) + 1, parent: head, chain: chainOf(state, head) | (1 << id) },
          ],
        };
        yield [
          `${name} makes change ${id}: it disables key ${id}`,
          withNode(withPrimary(made, { head: id }), at, { own: id, request: { key: id, epoch: undefined } }),
        ];
      }
      if (state.left.repeats > 0)
        for (let key = 1; key < state.commits.length; key += 1)
          if (isIn(state, key, head))
            yield [
              `${name} is asked to disable key ${key}, which is disabled`,
              spend(
                withNode(state, at, {
                  own: bounds.unfound === true ? node.own : head,
                  request: { key, epoch: undefined },
                }),
                'repeats',
              ),
            ];
    } else if (node.request.epoch === undefined) {
      const reached = reach(state, at);
      if (reached.nodes[at]?.request?.epoch !== undefined || reached.nodes[at]?.request === undefined)
        yield [`${name} hears of its own change`, reached];
      yield [`${name} gives up: the change is unconfirmed`, withNode(state, at, { request: undefined })];
    } else yield [`${name} acknowledges the change to key ${node.request.key}`, answer(state, at)];
    if (state.left.stops > 0)
      yield [
        `${name} stops serving`,
        spend(
          withNode(state, at, {
            ...{ runs: 'ending', request: undefined, beat: undefined },
            ...(node.lost ? {} : { kept: node.applied }),
          }),
          'stops',
        ),
      ];
    if (state.left.crashes > 0) yield [`${name} crashes`, spend(withNode(state, at, off), 'crashes')];
  }

  const startsAgain = (state: State, { runs }: Node): boolean =>
    (bounds.failovers ?? 0) > 0 && (keepsMatter(state) || runs === 'off' || runs === 'ending');
  const canUse = (node: Node): boolean =>
    node.runs === 'on' && mayUseKeys(node, { contactMs: bounds.contact, silentMs: node.silent });

  const row: Row = { state: 'active', reported: 1 };
  const node: Node = {
    ...{
      runs: 'on',
      applied: 0,
      lost: false,
      shows: 1,
      known: 1,
      unreported: false,
      silent: 0,
      heartbeat: 0,
      beat: undefined,
    },
    ...{ era: 0, own: none, settled: none, request: undefined, owes: false },
    ...{ kept: 0, quarantined: false, acknowledged: 0 },
  };
  const first: Database = { head: 0, kept: 2, rows: Array.from({ length: bounds.nodes }, () => row) };
  const { repeats = 0, prunes = 0, failovers = 0, removals = 0, stops = 0, crashes = 0 } = bounds;
  return {
    initial: {
      commits: [{ epoch: 1, parent: none, chain: 1 }],
      primary: first,
      standby: undefined,
      era: 0,
      nodes: Array.from({ length: bounds.nodes }, () => node),
      promises: Array.from({ length: bounds.changes + 1 }, () => undefined),
      left: { repeats, prunes, failovers, removals, stops, crashes, resumes: failovers * bounds.nodes },
      fault: undefined,
    },
    *steps(state) {
      const { primary, standby, left } = state;
      yield ['a tick passes', tick(state)];
      if (left.prunes > 0 && primary.kept <= epochOf(state, primary.head))
        yield ['the oldest row of a change is pruned', spend(withPrimary(state, { kept: primary.kept + 1 }), 'prunes')];
      if (standby !== undefined) {
        yield ['the standby takes over', failOver(state, standby)];
      } else if (left.failovers > 0) {
        yield ['the standby falls behind', { ...state, standby: primary }];
      }
      for (let at = 0; at < state.nodes.length; at += 1) {
        if (left.removals > 0 && primary.rows[at]?.state !== 'removed')
          yield [`an operator removes ${nameOf(at)}`, spend(withRow(state, at, { state: 'removed' }), 'removals')];
        yield* stepsOf(state, at);
      }
    },
    broken: (state) => {
      if (state.fault !== undefined) return state.fault;
      for (const [at, each] of state.nodes.entries()) {
        if (each.runs !== 'on') continue;
        if (each.lost) {
          if (canUse(each)) return `${nameOf(at)} uses keys although it has lost track`;
          continue;
        }
        const inHistory = isIn(state, each.applied, state.primary.head);
        if (inHistory && (chainOf(state, each.applied) & ~each.shows) !== 0)
          return `${nameOf(at)} has skipped a change`;
        if (each.owes && (each.era === state.era || inHistory))
          return `${nameOf(at)} shows a change that a failover has lost, is in contact, and does not report the loss`;
        if (!canUse(each)) continue;
        for (const [key, promise] of state.promises.entries())
          if (promise?.[at] === 0 && (each.shows & (1 << key)) === 0)
            return `${nameOf(at)} uses key ${key} after it was acknowledged as disabled, and is not named`;
      }
      return undefined;
    },
    key: (state) => {
      const { commits, primary, standby, left, promises } = state;
      const asks = commits.length <= bounds.changes || left.repeats > 0 || state.nodes.some(({ request }) => request);
      const kept = chainOf(state, primary.head) | (standby === undefined ? 0 : chainOf(state, standby.head));
      // Keys that a node may use too late: those that are acknowledged, or may be. `future`: of
      // later changes.
      const asked = promises.reduce(
        (bits: number, promise, key) => (promise === undefined ? bits : bits | (1 << key)),
        asks ? kept : 0,
      );
      const future = commits.length <= bounds.changes;
      // A node in a few 16-bit words, three or four bits for each number. Numbers that no longer
      // decide anything are omitted.
      const columns = state.nodes.map((each, at) => {
        const { beat, shows, own, settled, request } = each;
        const timed = future || (asked & ~shows) !== 0;
        const flags =
          (each.lost ? 1 : 0) | (each.owes ? 2 : 0) | (each.unreported ? 4 : 0) | (beat?.removed === true ? 8 : 0);
        const age = beat === undefined ? 0 : 1 + (timed || each.runs === 'joined' ? beat.age : 0);
        let word = String.fromCharCode(
          runsCode[each.runs] | ((each.applied + 1) << 3) | (shows << 6) | (timed ? each.silent << 12 : 0),
          age |
            ((beat === undefined ? 0 : beat.head + 1) << 3) |
            (flags << 6) |
            (each.era << 10) |
            ((beat?.era ?? 0) << 12),
          (beat === undefined ? 0 : beat.before + 1) | (beat === undefined && own === settled ? 0 : each.known << 3),
          rowCode(primary.rows[at], asks) | (rowCode(standby?.rows[at], asks) << 7),
          asks ? each.heartbeat | ((request?.key ?? 0) << 3) | (((request?.epoch ?? none) + 1) << 7) : 0,
          own === settled ? 0 : own + 1,
          startsAgain(state, each) ? (each.kept + 1) | (each.quarantined ? 8 : 0) | (each.acknowledged << 4) : 0,
        );
        for (let key = 1; key < promises.length; key += 1) {
          const promise = promises[key];
          if (promise !== undefined && (shows & (1 << key)) === 0)
            word += String.fromCharCode((promise[at] ?? 0) | (key << 4));
        }
        return word;
      });
      columns.sort();
      let parents = 0;
      for (const { parent } of commits) parents = (parents << 3) | (parent + 1);
      let given = 0;
      for (let key = 1; key < promises.length; key += 1) if (promises[key] !== undefined) given |= 1 << key;
      const { repeats, prunes, failovers, removals, stops, crashes, resumes } = left;
      const shared = String.fromCharCode(
        primary.head |
          (primary.kept << 3) |
          (((standby?.head ?? none) + 1) << 6) |
          ((standby?.kept ?? 0) << 9) |
          (state.era << 12),
        parents,
        given | (state.fault === undefined ? 0 : 1),
        repeats | (prunes << 2) | (failovers << 4) | (removals << 6) | (stops << 8) | (crashes << 10) | (resumes << 12),
      );
      return `${shared}${columns.join('|')}`;
    },
  };
};

const rowCode = (row: Row | undefined, asks: boolean): number =>
  row === undefined ? 0 : 1 + stateCode[row.state] + ((asks ? row.reported : 0) << 3);
const runsCode = { off: 0, joining: 1, joined: 2, on: 3, ending: 4 } as const;
const stateCode = { active: 0, draining: 1, stopped: 2, removed: 3 } as const;
