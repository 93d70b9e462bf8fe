// An erasure run of several nodes as a model for test/support/explore.ts: a new root key on its way
// to every node, everything sealed under it, the old one overwritten on every node. The nodes'
// decisions are those of server/domain/root-run.ts; the order of the steps of the node with the
// duty is that of server/operations/root/run-erasure.ts.
//
// What can happen, in any order: the node with the duty goes a step further, another one takes the
// duty over at any moment, each node does what the run asks of it and reports it, nodes crash and
// start, an operator removes one, the standby falls behind, catches up, and takes over.
//
// Every write of a duty fails once another node has the duty; what a node does in its own root key
// file does not.
//
// That a run completes is checked, too: from every state there is a way there.
//
// Left out: copies of the database that it does not show (`replica_lag_seconds` is for those: a
// standby without a slot that is disconnected); nodes that join during a run; snapshots; records
// that do not open; who may forge what (the proofs are taken as such).

import type * as rules from '../../server/domain/root-run.ts';
import type { Model } from '../support/explore.ts';

export type Rules = typeof rules;

export interface Bounds {
  readonly nodes: number;
  readonly runs: number;
  readonly takeovers: number;
  readonly crashes?: number;
  readonly removals?: number;
  readonly failovers?: number;
  /**
   * A defect: the run waits for copies although the database that shows them may not be the one in
   * which everything was sealed.
   */
  readonly unproved?: boolean;
  /** A defect: any run that the database shows counts as this one. */
  readonly anyRun?: boolean;
  /** A defect: a run whose row was lost ends without the other nodes. */
  readonly withoutRow?: boolean;
}

interface Row {
  readonly removed: boolean;
  readonly rootEpoch: number;
  readonly oldestRootEpoch: number;
  /** The key under which it has shown this. */
  readonly proof: number;
}

interface Database {
  /** Keys under which something is sealed, one bit each. */
  readonly sealed: number;
  readonly run: rules.RootRun | undefined;
  readonly duty: number;
  readonly rows: readonly Row[];
  /** A root key for each node, and the old one that binds it. */
  readonly parcels: readonly ({ readonly key: number; readonly under: number } | undefined)[];
  /** Runs that are requested. */
  readonly due: number;
}

/** How far the node is with a run: the next thing that it does. */
type Next = 'begin' | 'make' | 'offer' | 'seal' | 'reseal' | 'copies' | 'erase' | 'overwrite' | 'finish';

interface Node {
  readonly runs: boolean;
  /** Its root key file. */
  readonly current: number;
  readonly previous: number;
  readonly next: Next;
  /** The epoch of the run that it leads. */
  readonly begun: number;
  /** An operator has removed it, even if a failover has undone that. */
  readonly gone: boolean;
}

export interface State {
  readonly fault: string | undefined;
  /** The epoch of each created root key. */
  readonly epochs: readonly number[];
  readonly primary: Database;
  /** The standby as it was when it fell behind; undefined: it has everything. */
  readonly standby: Database | undefined;
  readonly nodes: readonly Node[];
  readonly left: {
    readonly takeovers: number;
    readonly crashes: number;
    readonly removals: number;
    readonly failovers: number;
  };
}

const none = -1;
const nameOf = (at: number): string => 'ABCDE'[at] ?? '?';
const nextSteps: readonly Next[] = [
  'begin',
  'make',
  'offer',
  'seal',
  'reseal',
  'copies',
  'erase',
  'overwrite',
  'finish',
];

export const createErasureModel = (
  {
    askedOf,
    isTold,
    mayLeadRun,
    mayMakeRootKey,
    isEnding,
    isLeftOver,
    rootRunOf,
    hasNewRoot,
    hasErasedOldRoot,
    awaitedCopies,
  }: Rules,
  bounds: Bounds,
): Model<State> => {
  const { nodes, runs, takeovers, crashes = 0, removals = 0, failovers = 0 } = bounds;
  const withNode = (state: State, at: number, change: Partial<Node>): State => ({
    ...state,
    nodes: state.nodes.with(at, { ...(state.nodes[at] as Node), ...change }),
  });
  const withPrimary = (state: State, change: Partial<Database>): State => ({
    ...state,
    primary: { ...state.primary, ...change },
  });
  const withRow = (state: State, at: number, change: Partial<Row>): State =>
    withPrimary(state, { rows: state.primary.rows.with(at, { ...(state.primary.rows[at] as Row), ...change }) });
  const spend = (state: State, what: keyof State['left']): State => ({
    ...state,
    left: { ...state.left, [what]: state.left[what] - 1 },
  });
  const epochOf = (state: State, key: number): number => state.epochs[key] ?? 0;
  const keysOf = (state: State, { current, previous }: Node): rules.RootKeys => ({
    rootEpoch: epochOf(state, current),
    oldestRootEpoch: epochOf(state, previous === none ? current : previous),
  });
  const tell = (state: State, at: number): State => {
    const node = state.nodes[at] as Node;
    return withRow(state, at, { ...keysOf(state, node), proof: node.current });
  };
  const isToldBy = (state: State, at: number): boolean => {
    const [node, row] = [state.nodes[at] as Node, state.primary.rows[at] as Row];
    return isTold(row, keysOf(state, node), row.proof === node.current);
  };
  const mayLead = (state: State, at: number): 'yes' | 'no' | 'start-over' => {
    const rootEpoch = epochOf(state, (state.nodes[at] as Node).current);
    return mayLeadRun(state.primary.run, { id: nameOf(at), rootEpoch }, othersOf(state, at));
  };
  /**
   * A duty is taken over after ten seconds, and runs begin later; a node tells which root keys it
   * has each second.
   */
  const haveAllTold = (state: State): boolean => state.nodes.every(({ runs }, at) => !runs || isToldBy(state, at));
  const othersOf = ({ primary }: State, at: number) =>
    primary.rows.flatMap((row, other) =>
      other === at || row.removed ? [] : [{ ...row, id: nameOf(other), at: other }],
    );
  /** Whether the row's proof opens under the key that the node has for its epoch. */
  const isProved = (state: State, { current, previous }: Node, row: Row): boolean => {
    const key = [current, previous].find((each) => each !== none && epochOf(state, each) === row.rootEpoch);
    return key === row.proof;
  };

  /** Gives the new root key to those that do not have it; undefined: another run is under way. */
  const offer = (state: State, at: number): State | undefined => {
    const node = state.nodes[at] as Node;
    const own = rootRunOf(keysOf(state, node), nameOf(at), 'offered');
    const known = bounds.anyRun === true ? state.primary.run : undefined;
    const run = { ...(known ?? own), nodeId: nameOf(at) };
    const others = othersOf(state, at);
    const parcels = state.primary.parcels.map((parcel, other) => {
      const row = others.find((each) => each.at === other);
      if (row === undefined || node.previous === none || !isProved(state, node, row) || hasNewRoot(row, run, true))
        return parcel;
      return { key: node.current, under: node.previous };
    });
    const given = withPrimary(state, { run, parcels });
    const done = others.every((row) => hasNewRoot(row, run, isProved(state, node, row)));
    return withNode(given, at, { next: done ? 'seal' : 'offer', begun: own.epoch });
  };
  const begin = (state: State, at: number): State | undefined => {
    const node = state.nodes[at] as Node;
    const { run, due } = state.primary;
    if (isEnding(run, keysOf(state, node)))
      return withNode(state, at, { next: 'erase', begun: epochOf(state, node.current) });
    if (node.previous !== none || isLeftOver(run, keysOf(state, node), othersOf(state, at)))
      return withNode(state, at, { next: 'offer' });
    if (due === 0) return undefined;
    const wanted = rootRunOf({ rootEpoch: epochOf(state, node.current) + 1 }, nameOf(at), 'offered');
    const same = run?.nodeId === wanted.nodeId && run.epoch === wanted.epoch && run.phase === wanted.phase;
    if (run !== undefined && !same) return undefined;
    if (!haveAllTold(state) || mayLead(state, at) === 'no') return undefined;
    // The files of an earlier run for the other nodes are of another root key.
    const parcels = same ? state.primary.parcels : state.nodes.map(() => undefined);
    return withNode(withPrimary(state, { run: wanted, parcels }), at, { next: 'make', begun: wanted.epoch });
  };
  /** What the node with the duty does next; undefined: it waits. */
  const lead = (state: State, at: number): readonly [string, State] | undefined => {
    const node = state.nodes[at] as Node;
    const { primary } = state;
    const step = (name: string, after: State | undefined) =>
      after === undefined ? undefined : ([name, after] as const);
    switch (node.next) {
      case 'begin':
        return step('begins the run', begin(state, at));
      case 'make': {
        if (!mayMakeRootKey({ epoch: node.begun }, keysOf(state, node)))
          return step('finds that it has a newer root key', withNode(state, at, { next: 'begin' }));
        const epochs = [...state.epochs, epochOf(state, node.current) + 1];
        return step(
          'makes a new root key',
          withNode({ ...state, epochs }, at, { current: epochs.length - 1, previous: node.current, next: 'offer' }),
        );
      }
      case 'offer':
        return step('offers its root key, and looks who has it', offer(state, at));
      case 'seal':
        return step(
          'seals something under its root key',
          withNode(withPrimary(state, { sealed: primary.sealed | (1 << node.current) }), at, { next: 'reseal' }),
        );
      case 'reseal':
        return step(
          'has sealed everything under its root key',
          withNode(withPrimary(state, { sealed: 1 << node.current }), at, { next: 'copies' }),
        );
      case 'copies': {
        // Another database may have taken over since, in which it is not sealed again: then the run
        // starts again.
        if (bounds.unproved !== true && primary.sealed !== 1 << node.current)
          return step('finds that something is sealed under another root key', withNode(state, at, { next: 'begin' }));
        const copy = {
          name: 'standby',
          isBehind: state.standby !== undefined && state.standby.sealed !== primary.sealed,
        };
        const awaited = awaitedCopies(new Set(), state.left.failovers > 0 ? [copy] : []);
        return awaited.size > 0
          ? undefined
          : step('finds that every copy has it', withNode(state, at, { next: 'erase' }));
      }
      case 'erase': {
        if (epochOf(state, node.current) !== node.begun)
          return step('finds that it has a newer root key', withNode(state, at, { next: 'begin' }));
        if (bounds.withoutRow === true && primary.run === undefined)
          return step('finds no run', withNode(state, at, { next: 'overwrite' }));
        const run = rootRunOf(keysOf(state, node), nameOf(at), 'erase');
        const done = othersOf(state, at).every((row) => hasErasedOldRoot(row, run, isProved(state, node, row)));
        return step(
          'has the old root key overwritten, and looks who has done so',
          withNode(withPrimary(state, { run }), at, { next: done ? 'overwrite' : 'erase' }),
        );
      }
      case 'finish': {
        const over = tell(withPrimary(state, { run: undefined, due: Math.max(0, primary.due - 1) }), at);
        const old = state.nodes.findIndex(
          ({ gone, previous }) => !gone && previous !== none && epochOf(state, previous) < node.begun,
        );
        const fault = old < 0 ? undefined : `the run is over, and ${nameOf(old)} still has the old root key`;
        return step('ends the run', withNode({ ...over, fault }, at, { next: 'begin' }));
      }
    }
  };

  const follow = (state: State, at: number): readonly [string, State] | undefined => {
    const node = state.nodes[at] as Node;
    const { run, parcels, sealed } = state.primary;
    const asked = askedOf(run, { id: nameOf(at), ...keysOf(state, node) });
    if (asked === 'take') {
      const parcel = parcels[at];
      if (parcel === undefined || epochOf(state, parcel.key) !== run?.epoch || parcel.under !== node.current)
        return undefined;
      // Its file has room for two.
      if (node.previous !== none) return undefined;
      const taken = withNode(state, at, { current: parcel.key, previous: node.current });
      return ['takes the new root key', withPrimary(taken, { parcels: parcels.with(at, undefined) })];
    }
    // A node overwrites nothing before it has opened everything with the new root key.
    if (asked !== 'erase' || sealed !== 1 << node.current) return undefined;
    return ['overwrites the old root key', withNode(state, at, { previous: none })];
  };

  function* stepsOf(state: State, at: number): Iterable<readonly [string, State]> {
    const node = state.nodes[at] as Node;
    const { primary, left } = state;
    const row = primary.rows[at] as Row;
    const name = nameOf(at);
    if (left.removals > 0 && !row.removed)
      yield [
        `an operator removes ${name}`,
        spend(withNode(withRow(state, at, { removed: true }), at, { gone: true, runs: false }), 'removals'),
      ];
    // Two nodes have made one each: the node with the duty names those that do not have its own,
    // and the operator removes them. This is needed only after a failover together with a crash or
    // a removal.
    const leader = state.nodes[primary.duty];
    const isOther =
      epochOf(state, node.current) === epochOf(state, leader?.current ?? none) && node.current !== leader?.current;
    if (crashes + removals > 0 && leader?.runs === true && leader.next === 'offer' && isOther && !row.removed)
      yield [
        `an operator removes ${name}, which has another root key of the same number`,
        withNode(withRow(state, at, { removed: true }), at, { gone: true, runs: false }),
      ];
    // A failover may have lost that it was removed.
    if (node.gone && !row.removed) yield [`an operator removes ${name} again`, withRow(state, at, { removed: true })];
    if (!node.runs) {
      if (!row.removed && !node.gone) yield [`${name} starts`, tell(withNode(state, at, { runs: true }), at)];
      return;
    }
    if (left.crashes > 0)
      yield [`${name} crashes`, spend(withNode(state, at, { runs: false, next: 'begin' }), 'crashes')];
    if (node.next === 'overwrite') {
      // The overwriting follows directly from the answer of the database: nothing else that the
      // node does comes between.
      yield [`${name} overwrites its own old root key`, withNode(state, at, { previous: none, next: 'finish' })];
      return;
    }
    if (!isTold(row, keysOf(state, node), row.proof === node.current))
      yield [`${name} tells which root keys it has`, tell(state, at)];
    const followed = follow(state, at);
    if (followed !== undefined) yield [`${name} ${followed[0]}`, followed[1]];
    if (primary.duty === at) {
      const led = lead(state, at);
      if (led !== undefined) yield [`${name} ${led[0]}`, led[1]];
    } else if (node.next !== 'begin')
      yield [`${name} finds that another node has the duty`, withNode(state, at, { next: 'begin' })];
    if (primary.duty === at) return;
    const may = mayLead(state, at);
    const isFree = state.nodes[primary.duty]?.runs !== true || mayLead(state, primary.duty) === 'no';
    if (may === 'no' || (left.takeovers === 0 && !isFree)) return;
    if (!haveAllTold(state)) return;
    // What it did when it had the duty before is under way, with an older fencing number: its units
    // of work fail.
    const next = ['seal', 'reseal', 'finish'].includes(node.next) ? 'begin' : node.next;
    const run = may === 'start-over' ? undefined : primary.run;
    const taken = withNode(withPrimary(state, { duty: at, run }), at, { next });
    yield [
      `${name} takes the duty over${may === 'start-over' ? ', and the run starts again' : ''}`,
      isFree ? taken : spend(taken, 'takeovers'),
    ];
  }

  const node: Node = { runs: true, current: 0, previous: none, next: 'begin', begun: 0, gone: false };
  const row: Row = { removed: false, rootEpoch: 1, oldestRootEpoch: 1, proof: 0 };
  return {
    goal: {
      rule: 'from here the run never comes to its end',
      isReached: ({ primary, nodes: all }) =>
        primary.due === 0 && primary.run === undefined && all.every(({ gone, previous }) => gone || previous === none),
    },
    initial: {
      fault: undefined,
      epochs: [1],
      primary: {
        ...{ sealed: 1, run: undefined, duty: 0, due: runs },
        rows: Array.from({ length: nodes }, () => row),
        parcels: Array.from({ length: nodes }, () => undefined),
      },
      standby: undefined,
      nodes: Array.from({ length: nodes }, () => node),
      left: { takeovers, crashes, removals, failovers },
    },
    *steps(state) {
      const { primary, standby, left } = state;
      if (standby !== undefined) {
        yield ['the standby catches up', { ...state, standby: undefined }];
        // Who does not have an answer by now gets none.
        const interrupted = state.nodes.map((each) =>
          each.next === 'make' ? { ...each, next: 'begin' as const } : each,
        );
        yield [
          'the standby takes over',
          spend({ ...state, nodes: interrupted, primary: standby, standby: undefined }, 'failovers'),
        ];
      } else if (left.failovers > 0) yield ['the standby falls behind', { ...state, standby: primary }];
      for (let at = 0; at < state.nodes.length; at += 1) yield* stepsOf(state, at);
    },
    broken: (state) => {
      if (state.fault !== undefined) return state.fault;
      for (const [place, database] of [
        ['database', state.primary],
        ['standby', state.standby],
      ] as const)
        for (let key = 0; key < state.epochs.length; key += 1) {
          if (database === undefined || (database.sealed & (1 << key)) === 0) continue;
          const without = state.nodes.findIndex(
            ({ gone, current, previous }) => !gone && current !== key && previous !== key,
          );
          if (without >= 0) return `${nameOf(without)} does not have a root key under which the ${place} is sealed`;
        }
      return undefined;
    },
    key: (state) => {
      const { primary, standby, left, epochs } = state;
      // In a few 16-bit words, as in changes.ts.
      const of = (database: Database | undefined, at: number): string => {
        const its = database?.rows[at];
        if (database === undefined || its === undefined) return '';
        const leads =
          (database.run?.nodeId === nameOf(at) ? 1 : 0) | (database.duty === at ? 2 : 0) | (its.removed ? 4 : 0);
        const parcel = database.parcels[at];
        return String.fromCharCode(
          leads | (its.rootEpoch << 3) | (its.oldestRootEpoch << 6) | ((its.proof + 1) << 9),
          parcel === undefined ? 0 : 1 + parcel.key + ((parcel.under + 1) << 4),
        );
      };
      const columns = state.nodes.map((each, at) => {
        const flags = (each.runs ? 1 : 0) | (each.gone ? 4 : 0);
        const own =
          flags |
          ((each.current + 1) << 3) |
          ((each.previous + 1) << 6) |
          (nextSteps.indexOf(each.next) << 9) |
          (each.next === 'begin' ? 0 : each.begun << 13);
        return `${String.fromCharCode(own)}${of(primary, at)}/${of(standby, at)}`;
      });
      const runBits = (database: Database | undefined): number => {
        if (database === undefined) return 0;
        const { run } = database;
        return (
          1 |
          (database.due << 1) |
          (database.sealed << 3) |
          ((run === undefined ? 0 : run.phase === 'offered' ? 1 : 2) << 9) |
          ((run?.epoch ?? 0) << 11)
        );
      };
      const spent = left.takeovers | (left.crashes << 3) | (left.removals << 6) | (left.failovers << 9);
      return `${String.fromCharCode(spent, runBits(primary), runBits(standby), ...epochs)}|${columns.sort().join('|')}`;
    },
  };
};
