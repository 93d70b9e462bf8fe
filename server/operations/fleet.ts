// This server among others of the same store. Once a second, and whenever something was committed, it reads what has changed and
// shows it; it tells how far it is, and takes over work that one node does for all. A change is answered when every node that can
// hear of it shows it, or after two seconds with the names of those that do not. A node that no longer hears of changes goes on with
// what it has in memory for a bounded time: what was destroyed elsewhere meanwhile must not be used for longer than that.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../base/errors.ts';
import { type Changes, mergeChanges } from '../domain/changes.ts';
import { type Duty, duties, type FleetNode, runOf } from '../domain/node.ts';
import type { Directory } from '../ports/directory.ts';
import type { Fleet, Unconfirmed } from '../ports/fleet.ts';
import type { ChangeMark, NodeLink, RootTurn, SeenNode } from '../ports/node-link.ts';
import type { Ports } from '../ports/ports.ts';
import type { FleetMember } from '../ports/xks-directory.ts';
import { createHeardNodes } from './heard-nodes.ts';
import { allDuties, createNodeDuties, type NodeDuties } from './node-duties.ts';

const beatMs = 1_000;
/** Who has not been heard of for so long is not waited for. */
const silentAfterMs = 3_000;
/** Without a whole beat for so long, this node does not hear of changes: health says so. */
const deafAfterMs = 5_000;
/** A removed node without a bound (`contact_seconds = 0`) is named for so long after it was last heard of. */
const removedNamedMs = 300_000;
/** How long a change waits for the others. */
const acknowledgeMs = 2_000;
/** Changes that are kept for nodes that are behind; who is further behind reads everything again. */
const keepChangesMs = 600_000;
const pruneEveryMs = 60_000;

export interface FleetSelf {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** See NodeRow. */
  readonly contactMs: number;
}

/** What this server shows to others of its root key. */
export interface RootFace {
  readonly rootEpoch: number;
  readonly oldestRootEpoch: number;
  readonly publicKey: Buffer;
  readonly proof: Buffer;
}

export interface RunningFleet extends Fleet {
  /** Which duty's work this is, and a store in which what comes late fails (node-duties.ts). */
  readonly duties: Pick<NodeDuties, 'current' | 'fence'>;
  /** The directory as this server's operations and fronts use it: it waits for the others, and stops when contact is lost. */
  over(directory: Directory): Directory;
  /** Enters the fleet. Everything that was committed before is shown when it resolves. */
  join(face: RootFace): Promise<void>;
  /** Shows what was committed here after its caller was told that nobody knows. */
  show(changes: Changes): Promise<void>;
  /**
   * Undefined at nearly all times. A promise when this host's wall clock has jumped so far that contact seems lost: it resolves when the store was
   * asked, which tells a corrected clock from a host that stood still.
   */
  settle(): Promise<void> | undefined;
  /** Reads everything again: an operator has taken the database as it is. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export interface FleetHooks {
  /** An operator has removed this node. */
  removed(): void;
  /** Changes that this node has heard of are not in the database any more. Until `resume` it uses no keys and has no duties. */
  lost(): void;
  /** An erasure run is due: a key was destroyed, or a rotation requested, on any node. */
  destroyed(): void;
  /** Once a second, and when a root key is on its way. */
  turned(turn: RootTurn | undefined): Promise<void>;
  /** Whether this node may have the duty of the erasure turn. */
  mayLead(turn: RootTurn | undefined): Promise<boolean>;
  /** Whether this node may have duties that look after snapshots. */
  mayTendSnapshots(): Promise<boolean>;
  /** A duty came here. */
  took(duty: Duty): void;
}

const confirmed: Unconfirmed = { pendingNodes: [], pendingUntil: null };

type FleetPorts = Pick<Ports, 'store' | 'ring' | 'clock' | 'log'>;

/** Reads again what was changed, and shows it. */
const take = async (
  store: FleetPorts['store'],
  ring: FleetPorts['ring'],
  directory: Directory,
  changes: Changes,
): Promise<void> => {
  directory.forget(changes);
  if (changes.keks === true || changes.everything === true) await ring.refresh(store.read);
  if (changes.everything === true) await directory.reload();
  else await directory.renew(changes);
};

/** A server with a store of its own. */
const createLoneFleet = (
  { store, ring, clock }: FleetPorts,
  self: FleetSelf,
  hooks: Pick<FleetHooks, 'destroyed'>,
): RunningFleet => {
  let draining = false;
  let root: RootFace | undefined;
  let inner: Directory | undefined;
  const startedAt = clock.now();
  return {
    id: self.id,
    name: self.name,
    holds: () => true,
    perform: allDuties.perform,
    duties: allDuties,
    size: () => 1,
    nodes: async () => [
      {
        id: self.id,
        name: self.name,
        version: self.version,
        state: draining ? 'draining' : 'active',
        startedAt,
        heartbeatAt: clock.now(),
        behind: 0,
        rootEpoch: root?.rootEpoch ?? 1,
        holdsOldRoot: false,
        usesKeysUntil: null,
        duties,
        self: true,
      },
    ],
    draining: () => draining,
    inContact: () => true,
    look: async () => {
      draining = (await store.read.nodes.get(self.id))?.state === 'draining';
    },
    run: () => runOf({ id: self.id, startedAt }),
    hears: () => true,
    settle: () => undefined,
    observe: async (work) => ({ value: await work(), pendingNodes: [], pendingUntil: null }),
    confirm: () => undefined,
    others: () => Promise.resolve([]),
    over: (directory) => {
      inner = directory;
      return directory;
    },
    join: async (face) => {
      await inner?.load();
      root = face;
      const row = {
        ...self,
        ...face,
        epoch: 0,
        clockAheadMs: 0,
        startedAt,
        heartbeatAt: startedAt,
        state: 'active',
      } as const;
      await store.write((tx) => tx.nodes.put(row));
    },
    resume: async () => {
      await ring.refresh(store.read);
      await inner?.reload();
    },
    show: async (changes) => {
      if (inner === undefined) return;
      await take(store, ring, inner, changes);
      if (changes.destroyed === true) hooks.destroyed();
    },
    stop: async () => undefined,
  };
};

export const createFleet = (ports: FleetPorts, self: FleetSelf, hooks: FleetHooks): RunningFleet => {
  const { store, ring, clock, log } = ports;
  if (store.link === undefined) return createLoneFleet(ports, self, hooks);
  const link: NodeLink = store.link;

  let inner: Directory | undefined;
  /** The last change that is shown here. */
  let applied: ChangeMark = { epoch: 0, history: '' };
  /** It is not in the database any more. */
  let lost = false;
  /** What others said that they show. */
  const shown = new Map<string, number>();
  const waiters = new Set<() => void>();
  let seen: readonly SeenNode[] = [];
  let draining = false;
  let stopped = false;
  let joined = false;
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();
  let prunedAt = clock.monotonic();
  let away = false;
  /** The link has not been lost since the last whole beat. */
  let linked = true;
  let settling: Promise<void> | undefined;
  /** When the last beat began that brought everything up to date. Both clocks: one may have stood still. */
  let contact = { monotonic: clock.monotonic(), wall: clock.now() };
  /** What a request under `observe` has to wait for. `unheard`: this node could not ask for it. */
  interface Watch {
    epoch: number | undefined;
    unheard: boolean;
  }
  const watching = new AsyncLocalStorage<Watch>();
  const heardNodes = createHeardNodes(link, clock);
  const ownDuties = createNodeDuties(link, { clock, log }, self.id);

  const silence = (): number => Math.max(clock.monotonic() - contact.monotonic, clock.now() - contact.wall);
  const inContact = (): boolean => !lost && (self.contactMs === 0 || silence() < self.contactMs);
  const requireContact = (): void => {
    if (inContact()) return;
    if (lost)
      throw new ServiceError(
        'unavailable',
        'changes that were confirmed are missing in the database: this node uses no keys',
        {
          hint: 'dke quarantine show tells what to do',
        },
      );
    throw new ServiceError('unavailable', 'this node has not heard of changes for too long: it uses no keys', {
      hint: 'look why it does not reach its database; other nodes may go on',
    });
  };

  /** The database has gone back, as after a failover to a standby that lagged behind. */
  const loseTrack = async (): Promise<void> => {
    if (lost) return;
    lost = true;
    log.error('changes that this node has heard of are missing in the database', { ...applied });
    hooks.lost();
    await ownDuties.giveUpAll();
  };

  let catching: Promise<void> | undefined;
  const readChanges = async (): Promise<void> => {
    // Not before the first load: what is heard until then is part of it.
    if (inner === undefined || applied.epoch === 0 || lost) return;
    for (;;) {
      const found = await link.changesSince(applied);
      if (found === 'lost') {
        await loseTrack();
        return;
      }
      if (found === 'pruned') {
        log.warn('changes were pruned before this node had read them: everything is read again');
        const { last } = await link.beat({ id: self.id, epoch: applied.epoch }, clock.now());
        await ring.refresh(store.read);
        await inner.reload();
        applied = last;
      } else {
        if (found.changes.length === 0) return;
        const changes = mergeChanges(found.changes);
        await take(store, ring, inner, changes);
        applied = found.last;
        if (changes.destroyed === true) hooks.destroyed();
      }
      if (joined) await link.tellApplied(self.id, applied.epoch);
    }
  };
  /** Shows everything that is committed when it is called. */
  const catchUp = async (): Promise<void> => {
    // One that is under way may have read before the commit: it is waited for, then looked once more.
    await catching?.catch(() => undefined);
    catching ??= readChanges().finally(() => {
      catching = undefined;
    });
    await catching;
  };
  /**
   * Shows everything that is committed when it is called; answers the number of the last change. Also one that seems to be shown is looked up: after a
   * failover another one may have had its number.
   */
  const reach = async (): Promise<number> => {
    const epoch = store.epoch();
    do await catchUp();
    while (!lost && applied.epoch < epoch);
    if (lost)
      throw new ServiceError(
        'unavailable',
        'changes that were confirmed are missing in the database: this one may be made',
        {
          hint: 'dke quarantine show tells what to do',
          reason: 'unconfirmed',
        },
      );
    return applied.epoch;
  };
  /** The change is made; this node cannot ask who shows it. */
  const unconfirmed = (cause: unknown): ServiceError =>
    new ServiceError(
      'unavailable',
      'the change is made, but not confirmed: this node does not reach the other nodes, which may act on the old state',
      {
        hint: 'repeat the request at another node, with the same Idempotency-Key if it had one; dke node list shows the nodes',
        reason: 'unconfirmed',
        cause,
      },
    );
  const askOthers = (epoch: number): Promise<Unconfirmed> =>
    waitForOthers(epoch).catch((error: unknown) => {
      throw unconfirmed(error);
    });

  /** How long the node may still act on what it has in memory, from now on; undefined: not any more, or it hears of changes; null: no limit. */
  const actsForMs = ({ state, contactMs, silentMs }: SeenNode): number | null | undefined => {
    if (state === 'stopped') return undefined;
    const bound = contactMs === 0 && state === 'removed' ? removedNamedMs : contactMs;
    if (bound === 0) return null;
    return silentMs < bound ? bound - silentMs : undefined;
  };
  /** Who may act on what was before this change. */
  const waitForOthers = async (epoch: number): Promise<Unconfirmed> => {
    const until = clock.monotonic() + acknowledgeMs;
    const isBehind = (node: SeenNode): boolean => Math.max(node.epoch, shown.get(node.id) ?? 0) < epoch;
    const mayAct = async (): Promise<readonly SeenNode[]> =>
      (await heardNodes()).filter((node) => node.id !== self.id && actsForMs(node) !== undefined && isBehind(node));
    const behind = await mayAct();
    const hearing = behind.filter(({ silentMs }) => silentMs < silentAfterMs);
    while (hearing.some(isBehind)) {
      const left = until - clock.monotonic();
      if (left <= 0) break;
      await new Promise<void>((resolve) => {
        const end = (): void => {
          clearTimeout(late);
          waiters.delete(end);
          resolve();
        };
        const late = setTimeout(end, left);
        waiters.add(end);
      });
    }
    if (!behind.some(isBehind)) return confirmed;
    // Once more: one that has ended meanwhile is behind nothing.
    const pending = await mayAct();
    if (pending.length === 0) return confirmed;
    const pendingNodes = pending.map(({ name }) => name).sort();
    const moments = pending.map(actsForMs).filter((ms) => ms !== undefined);
    const pendingUntil = moments.includes(null) ? null : clock.now() + Math.max(...moments.map(Number));
    log.warn('a change is not yet shown by every node', { epoch, pending: pendingNodes, until: pendingUntil });
    return { pendingNodes, pendingUntil };
  };
  const tend = async (turn: RootTurn | undefined): Promise<void> => {
    const tendsSnapshots = await hooks.mayTendSnapshots();
    const leads = tendsSnapshots && (await hooks.mayLead(turn));
    const mayHave = (duty: Duty): boolean => (duty === 'erasure' ? leads : duty !== 'schedules' || tendsSnapshots);
    for (const duty of await ownDuties.tend((each) => !draining && !stopped && mayHave(each))) hooks.took(duty);
    if (ownDuties.holds('pruning') && clock.monotonic() - prunedAt > pruneEveryMs) {
      prunedAt = clock.monotonic();
      await link.pruneChanges(keepChangesMs);
    }
  };
  const beat = async (): Promise<void> => {
    const began = { monotonic: clock.monotonic(), wall: clock.now() };
    // Others wait for a node that has lost track, until it has read everything again.
    const { state, last, turn } = await link.beat({ id: self.id, epoch: lost ? 0 : applied.epoch }, clock.now());
    if (state === undefined || state === 'removed') {
      hooks.removed();
      return;
    }
    draining = state === 'draining';
    if (last.epoch !== applied.epoch || last.history !== applied.history) await catchUp();
    if (lost) return;
    contact = began;
    if (away) log.info('this node hears of changes again');
    away = false;
    linked = true;
    seen = await heardNodes();
    await hooks.turned(turn);
    await tend(turn);
  };
  const beatNow = (): Promise<void> => {
    beating = beating.then(async () => {
      if (stopped) return;
      try {
        await beat();
      } catch (error) {
        if (!away) log.error('this node does not hear of changes: the store does not answer', { error });
        away = true;
      }
    });
    return beating;
  };
  const next = (): void => {
    timer = setTimeout(() => {
      void beatNow().finally(() => {
        if (!stopped) next();
      });
    }, beatMs);
    timer.unref();
  };

  link.listen({
    changed: () => {
      catchUp().catch(() => undefined);
    },
    applied: (id, epoch) => {
      shown.set(id, Math.max(epoch, shown.get(id) ?? 0));
      for (const wake of [...waiters]) wake();
    },
    turned: () => {
      if (!stopped && joined) void beatNow();
    },
    lost: () => {
      // The next database may be another one, in which these numbers are of other changes.
      shown.clear();
      if (stopped || !joined) return;
      // Health says so at once; the beat makes the link again, or tells why not.
      linked = false;
      void beatNow();
    },
  });

  const size = (): number =>
    Math.max(1, seen.filter(({ state, silentMs }) => state === 'active' && silentMs < silentAfterMs).length);
  const toNode = (node: SeenNode, holders: ReadonlyMap<string, readonly Duty[]>): FleetNode => {
    const runs = node.state === 'active' || node.state === 'draining';
    const isSilent = runs && node.silentMs >= silentAfterMs;
    const removedRuns = node.state === 'removed' && node.epoch < Number.MAX_SAFE_INTEGER;
    const actsFor = actsForMs(node);
    return {
      id: node.id,
      name: node.name,
      version: node.version,
      state: isSilent ? 'silent' : node.state,
      startedAt: node.startedAt,
      heartbeatAt: node.heartbeatAt,
      behind: Math.max(0, applied.epoch - Math.max(node.epoch, shown.get(node.id) ?? 0)),
      rootEpoch: node.rootEpoch,
      holdsOldRoot: node.oldestRootEpoch < node.rootEpoch,
      usesKeysUntil: (isSilent || removedRuns) && actsFor != null ? clock.now() + actsFor : null,
      duties: node.id === self.id ? duties.filter((duty) => ownDuties.holds(duty)) : (holders.get(node.id) ?? []),
      self: node.id === self.id,
    };
  };

  return {
    id: self.id,
    name: self.name,
    holds: (duty) => ownDuties.holds(duty),
    perform: ownDuties.perform,
    duties: ownDuties,
    size,
    nodes: async () => {
      const [found, holders] = await Promise.all([heardNodes(), ownDuties.holders()]).catch((error: unknown) => {
        throw new ServiceError('unavailable', 'the database does not answer', { cause: error });
      });
      return found.map((node) => toNode(node, holders));
    },
    draining: () => draining,
    inContact,
    look: beatNow,
    run: () => {
      const own = seen.find(({ id }) => id === self.id);
      if (own === undefined) throw new ServiceError('unavailable', 'this node is not yet known to the others');
      return runOf(own);
    },
    hears: () => linked && !away && clock.monotonic() - contact.monotonic < deafAfterMs,
    settle: () => {
      if (self.contactMs === 0 || lost || away || !joined || silence() < self.contactMs) return undefined;
      if (clock.monotonic() - contact.monotonic >= self.contactMs) return undefined;
      settling ??= beatNow().finally(() => {
        settling = undefined;
      });
      return settling;
    },
    observe: async (work) => {
      const watch: Watch = { epoch: undefined, unheard: false };
      const outcome = await watching.run(watch, work).then(
        (value) => ({ value }),
        (refusal: unknown) => {
          // It was destroyed before, perhaps a moment ago, by another node.
          if (!(refusal instanceof ServiceError) || refusal.code !== 'key-destroyed') throw refusal;
          watch.unheard = true;
          return { refusal };
        },
      );
      if (watch.unheard)
        watch.epoch = await reach().catch((error: unknown) => {
          throw lost ? error : unconfirmed(error);
        });
      return { ...outcome, ...(watch.epoch === undefined ? confirmed : await askOthers(watch.epoch)) };
    },
    confirm: () => {
      const watch = watching.getStore();
      if (watch !== undefined) watch.unheard = true;
    },
    others: async () => (await heardNodes()).filter(({ id, state }) => id !== self.id && state !== 'removed'),
    over: (directory) => {
      inner = directory;
      return {
        ...directory,
        renew: async (changes) => {
          directory.forget(changes);
          const watch = watching.getStore();
          if (watch === undefined) {
            await askOthers(await reach());
            return;
          }
          try {
            // A change that changed nothing waits, too: the one before it may not be shown yet.
            watch.epoch = await reach();
          } catch (error) {
            if (lost) throw error;
            // It is committed: it is shown here as far as the store can be read, its answer is kept, and its caller is told at the end.
            watch.unheard = true;
            await directory.renew(changes).catch(() => undefined);
          }
        },
        epoch: () => applied.epoch,
        fleetSize: size,
        otherNodes: () =>
          seen.flatMap(({ id, name, version, state, silentMs, contactMs }): FleetMember[] => {
            if (id === self.id || (state !== 'active' && state !== 'draining')) return [];
            if (silentMs < silentAfterMs) return [{ name, version, state }];
            // Afterwards it uses no keys any more: it is no part of the fleet.
            return contactMs === 0 || silentMs < contactMs ? [{ name, version, state: 'gone' }] : [];
          }),
        healthy: () => directory.healthy() && inContact(),
        endpoint: (prefix) => {
          requireContact();
          return directory.endpoint(prefix);
        },
        application: (hash) => {
          requireContact();
          return directory.application(hash);
        },
      };
    },
    join: async (face) => {
      const { last } = await link.beat({ id: self.id, epoch: 0 }, clock.now());
      applied = last;
      await inner?.load();
      const { epoch } = last;
      const row = { id: self.id, name: self.name, version: self.version, contactMs: self.contactMs, epoch, ...face };
      if (!(await link.join(row))) {
        hooks.removed();
        return;
      }
      joined = true;
      await beat();
      next();
    },
    // What was announced is read like any other's.
    show: () => catchUp(),
    resume: async () => {
      const { last } = await link.beat({ id: self.id, epoch: 0 }, clock.now());
      await ring.refresh(store.read);
      await inner?.reload();
      applied = last;
      lost = false;
      await beatNow();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await beating;
      await ownDuties.giveUpAll().catch(() => undefined);
      if (joined) await link.leave(self.id).catch(() => undefined);
    },
  };
};
