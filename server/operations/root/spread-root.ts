// A new root key on its way to every node, and the old one's end on every node (decision 22).
//
// The node that has the duty makes the new key and seals it to each other node's own X25519 key.
// Which key that is, a node tells in its row, with a proof: a record under the root key that binds
// the node, that key and the root keys it still has. An attacker who can write to the database but
// has no root key therefore gets nothing; and what a node is given is bound to the old root key in
// the same way, so that an attacker cannot insert a root key. A node takes the key into its own
// file, reads it back, and proves that it has it by a record under the new one. Nothing is sealed
// under the new key before every node has it. At the end every node overwrites the old one, and
// says so under the new one, before any key counts as unrecoverable. Nodes that are away are waited
// for, or removed by an operator.

import { command } from '../../base/command-line.ts';
import type { Emitter } from '../../base/events.ts';
import {
  askedOf,
  hasErasedOldRoot,
  hasNewRoot,
  isEnding,
  isLeftOver,
  isTold,
  mayLeadRun,
  mayMakeRootKey,
  type RootKeys,
  type RootRun,
  rootRunOf,
} from '../../domain/root-run.ts';
import type { KekRef } from '../../ports/crypto-core.ts';
import type { NodeLink, NodeRootKeys, RootParcel, SeenNode } from '../../ports/node-link.ts';
import type { Ports } from '../../ports/ports.ts';
import type { RootKey } from '../../ports/root-provider.ts';
import { DutyLost } from '../nodes/node-duties.ts';
import type { RootEvents, RunningFleet } from '../nodes/running-fleet.ts';
import { isProofOf, ofKeys, openParcel, prove, sealParcel } from './root-parcels.ts';

/**
 * How long nodes that are there have before the run is called blocked. It continues on its own in
 * any case.
 */
const waitMs = 6_000;
const lookEveryMs = 100;

export interface RootSpread {
  /** What this node shows of its root keys. */
  nodeKeys(): NodeRootKeys;
  /** Whether this node may lead the run that is under way, if one is. */
  mayLead(run: RootRun | undefined, others: readonly SeenNode[]): Promise<boolean>;
  /**
   * Does what the run asks of this node. `shown`: its row, which may not say which root keys it
   * has: then it tells them again.
   */
  follow(run: RootRun | undefined, shown: SeenNode | undefined): Promise<void>;

  // --- for the node that has the duty ------------------------------------------------------------
  /** Whether a run has come as far as its end: nothing is sealed under the old root. */
  isEnding(): Promise<boolean>;
  /** Whether an earlier run is to be brought to its end, without a new root key. */
  isLeftOver(): Promise<boolean>;
  /** Makes a new root key, once the run has started. */
  begin(): Promise<void>;
  /** Gives it to the others; answers the names of those that do not have it. */
  offer(): Promise<readonly string[]>;
  /**
   * Has the one before that of this epoch overwritten elsewhere; answers the names of those that
   * have not done so.
   */
  erase(epoch: number): Promise<readonly string[]>;
  /** Overwrites the old root key of this node, and shows the others that it has. */
  endOldRoot(): Promise<void>;
  /** The run is over. */
  finish(): Promise<void>;
}

type SpreadPorts = Pick<Ports, 'core' | 'root' | 'ring' | 'store' | 'clock' | 'log'> & {
  readonly events: Emitter<RootEvents>;
  readonly fleet: Pick<RunningFleet, 'id' | 'others' | 'holds' | 'duties'>;
};

const isSameRun = (known: RootRun | undefined, run: RootRun): boolean =>
  known?.epoch === run.epoch && known.nodeId === run.nodeId && known.phase === run.phase;

/** This node's own root keys, and the key pair that another node seals a new root key to. */
const createOwnRoot = ({ core, root, fleet, events }: Pick<SpreadPorts, 'core' | 'root' | 'fleet' | 'events'>) => {
  const own = core.generateHpkeKey();
  const publicKey = core.hpkePublicKey(own);

  const keyOf = (epoch: number): RootKey | undefined => {
    if (root.current.epoch === epoch) return root.current;
    return root.previous?.epoch === epoch ? root.previous : undefined;
  };
  const keys = (): RootKeys => ({
    rootEpoch: root.current.epoch,
    oldestRootEpoch: root.previous?.epoch ?? root.current.epoch,
  });
  return {
    publicKey,
    keys,
    nodeKeys: (): NodeRootKeys => {
      const shown = { ...keys(), publicKey };
      return { ...shown, proof: prove(core, root.current, fleet.id, ofKeys(shown)) };
    },
    /** Whether a node has the root keys that its row names. */
    isProved: (node: SeenNode): boolean => isProofOf(core, keyOf(node.rootEpoch), node.id, ofKeys(node), node.proof),
    open: (parcel: RootParcel): KekRef | undefined =>
      openParcel(core, { id: fleet.id, key: own, current: root.current }, parcel),
    eraseOldRoot: async (): Promise<void> => {
      await root.reach();
      const isRotated = root.previous !== undefined;
      root.erasePrevious();
      if (isRotated) events.emit('rootRotated', { rootEpoch: root.current.epoch });
    },
  };
};
type OwnRoot = ReturnType<typeof createOwnRoot>;

/** A fleet of one: there is no other node. */
const lone: Omit<RootSpread, 'nodeKeys' | 'begin' | 'endOldRoot'> = {
  mayLead: () => Promise.resolve(true),
  follow: () => Promise.resolve(),
  isEnding: () => Promise.resolve(false),
  isLeftOver: () => Promise.resolve(false),
  offer: () => Promise.resolve([]),
  erase: () => Promise.resolve([]),
  finish: () => Promise.resolve(),
};

/** Reports nodes whose root key is another one with the number of this node's. */
const createOtherRootReport = (log: SpreadPorts['log']) => {
  /** Each node and root key that was reported, as `<node id> <key number>`: once is enough. */
  const reported = new Set<string>();
  /**
   * Each of the two nodes has made a root key for the same run, of which a failover has lost a
   * part. Nothing is sealed under either key before every node has it.
   */
  return ({ id, name, rootEpoch }: SeenNode): void => {
    const what = `${id} ${rootEpoch}`;
    if (reported.has(what)) return;
    reported.add(what);
    log.error(
      `a node has made another root key for this erasure run, which waits for it: stop that node, run ${command`dke node remove ${name}`}, and let it join again ` +
        "with a copy of another node's root key file",
      { node: name, rootEpoch },
    );
  };
};

/** Checks repeatedly, until every node that is online has done it. */
const waitForNodes = async (
  { fleet, clock }: Pick<SpreadPorts, 'fleet' | 'clock'>,
  isDone: (node: SeenNode) => Promise<boolean> | boolean,
): Promise<readonly string[]> => {
  const until = clock.monotonic() + waitMs;
  for (;;) {
    const missing: SeenNode[] = [];
    for (const node of await fleet.others()) if (!(await isDone(node))) missing.push(node);
    const here = missing.some(({ state, silentMs }) => state !== 'stopped' && silentMs < waitMs);
    if (!here || clock.monotonic() > until) return missing.map(({ name }) => name);
    await new Promise<void>((resolve) => {
      setTimeout(resolve, lookEveryMs);
    });
  }
};

/** A fleet of several nodes, which learn of each other in the database. */
const createFleetSpread = (
  { core, root, ring, store, clock, log, fleet }: SpreadPorts,
  link: NodeLink,
  own: OwnRoot,
): RootSpread => {
  const { keys, nodeKeys, isProved } = own;
  const reportOther = createOtherRootReport(log);
  const tell = (): Promise<void> => link.tellRoot({ id: fleet.id, ...nodeKeys() });
  const endOldRoot = async (): Promise<void> => {
    await own.eraseOldRoot();
    await tell();
  };
  /**
   * Sets the run as the node that has the duty. A node that has lost the duty changes nothing, and
   * its work ends here.
   */
  const setRootRun = async (before: RootRun | undefined, after: RootRun | undefined): Promise<void> => {
    if (!(await link.setRootRun(before, after, fleet.duties.current())))
      throw new Error('another rotation of the root key is in progress');
  };
  const take = async (run: RootRun): Promise<void> => {
    const parcel = await link.parcel(fleet.id);
    if (parcel === undefined || parcel.epoch !== run.epoch || !parcel.publicKey.equals(own.publicKey)) return;
    const key = own.open(parcel);
    if (key === undefined) {
      log.error('a root key was left for this node that was not sealed by another node: it is ignored');
      return;
    }
    try {
      await root.reach();
      root.addEpoch({ epoch: run.epoch, key });
    } finally {
      core.release(key);
    }
    await tell();
    await link.wipeParcel(fleet.id);
    log.info('this node has the new root key', { rootEpoch: run.epoch });
  };

  return {
    nodeKeys,
    mayLead: async (run, others) => {
      const may = mayLeadRun(run, { id: fleet.id, ...keys() }, others);
      if (may === 'start-over') {
        log.warn('the node that created a new root key was removed before another node had it: the run starts again');
        await link.setRootRun(run, undefined);
      }
      return may !== 'no';
    },
    follow: async (run, shown) => {
      if (shown !== undefined && !isTold(shown, keys(), shown.publicKey.equals(own.publicKey) && isProved(shown)))
        await tell();
      const asked = askedOf(run, { id: fleet.id, ...keys() });
      if (run === undefined || asked === 'nothing') return;
      if (asked === 'take') {
        await take(run);
        return;
      }
      await store.write(
        async (tx) => {
          await ring.refresh(tx);
          await ring.prove(tx);
        },
        { durable: false },
      );
      await endOldRoot();
      log.info('the old root key is overwritten', { rootEpoch: run.epoch });
    },
    isEnding: async () => isEnding(await link.rootRun(), keys()),
    isLeftOver: async () => isLeftOver(await link.rootRun(), keys(), await fleet.others()),
    begin: async () => {
      const next = rootRunOf({ rootEpoch: root.current.epoch + 1 }, fleet.id, 'offered');
      const known = await link.rootRun();
      if (mayLeadRun(known, { id: fleet.id, ...keys() }, await fleet.others()) === 'no') throw new DutyLost('erasure');
      if (!isSameRun(known, next)) await setRootRun(undefined, next);
      await root.reach();
      // This node may have stood still since, and another node may have started a run in the
      // meantime, after a failover that has lost this one.
      if (!fleet.holds('erasure') || !mayMakeRootKey(next, keys())) throw new DutyLost('erasure');
      root.addEpoch();
    },
    offer: async () => {
      const { previous } = root;
      const run = rootRunOf(keys(), fleet.id, 'offered');
      const known = await link.rootRun();
      // A failover may have lost that the run has started. The others may have the new root key or
      // not: they are asked as always.
      if (!isSameRun(known, run)) await setRootRun(known, run);
      const given = new Map<string, string>();
      return waitForNodes({ fleet, clock }, async (node) => {
        const proved = isProved(node);
        if (hasNewRoot(node, run, proved)) return true;
        if (node.rootEpoch === run.epoch) reportOther(node);
        const to = node.publicKey.toString('hex');
        if (previous === undefined || !proved || given.get(node.id) === to) return false;
        await link.putParcel(sealParcel(core, node, root.current, previous));
        given.set(node.id, to);
        return false;
      });
    },
    erase: async (epoch) => {
      // Everything is sealed under that one. It may have taken the key of a later run, which a
      // failover has lost.
      if (root.current.epoch !== epoch) throw new Error('this node has taken a newer root key: the run starts again');
      const run = rootRunOf(keys(), fleet.id, 'erase');
      const known = await link.rootRun();
      if (!isSameRun(known, run)) await setRootRun(known, run);
      return waitForNodes({ fleet, clock }, (node) => hasErasedOldRoot(node, run, isProved(node)));
    },
    endOldRoot,
    finish: async () => {
      await setRootRun(await link.rootRun(), undefined);
    },
  };
};

export const createRootSpread = (ports: SpreadPorts): RootSpread => {
  const { root, store } = ports;
  const own = createOwnRoot(ports);
  const { nodeKeys, eraseOldRoot } = own;
  if (store.link === undefined)
    return {
      nodeKeys,
      ...lone,
      begin: async () => {
        await root.reach();
        root.addEpoch();
      },
      endOldRoot: eraseOldRoot,
    };
  return createFleetSpread(ports, store.link, own);
};
