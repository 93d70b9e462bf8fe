// This server among others of the same store. Once a second, and whenever something was committed, it reads what has changed and
// shows it; it tells how far it is, and takes over work that one node does for all. A change is answered when every node that can
// hear of it shows it, or after two seconds with the names of those that do not. A node that no longer hears of changes goes on with
// what it has in memory for a bounded time: what was destroyed elsewhere meanwhile must not be used for longer than that.

import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '../../base/errors.ts';
import { within } from '../../base/within.ts';
import { actsForMs, type ChangeMark, isSameChange, mayUseKeys, renewsContact } from '../../domain/change-protocol.ts';
import { type Duty, duties, type FleetNode, runOf } from '../../domain/node.ts';
import type { RootRun } from '../../domain/root-run.ts';
import type { Directory } from '../../ports/directory.ts';
import type { Unconfirmed } from '../../ports/fleet.ts';
import type { NodeLink, SeenNode } from '../../ports/node-link.ts';
import type { FleetMember } from '../../ports/xks-directory.ts';
import { confirmed, createAcknowledgement, silentAfterMs } from './acknowledgement.ts';
import { createHeardNodes } from './heard-nodes.ts';
import { createLoneFleet } from './lone-fleet.ts';
import { createNodeDuties } from './node-duties.ts';
import type { FleetHooks, FleetPorts, FleetSelf, RunningFleet } from './running-fleet.ts';
import { createShownChanges } from './shown-changes.ts';

const beatMs = 1_000;
/** Without a whole beat for so long, this node does not hear of changes: health says so. */
const deafAfterMs = 5_000;
/** How long a beat waits until the changes that it has found are shown. The next one goes on with them: a node that reads slowly is behind, not silent. */
const showMs = 1_000;
/** Changes that are kept for nodes that are behind; who is further behind reads everything again. */
const keepChangesMs = 600_000;
const pruneEveryMs = 60_000;

export const createFleet = (ports: FleetPorts, self: FleetSelf, hooks: FleetHooks): RunningFleet => {
  const { store, clock, log } = ports;
  if (store.link === undefined) return createLoneFleet(ports, self, hooks);
  const link: NodeLink = store.link;

  let inner: Directory | undefined;
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
  /** What a request under `observe` has to wait for. `unheard`: this node could not ask for it. `own`: what the request has found done. `doubt`: its change may be lost. */
  interface Watch {
    epoch: number | undefined;
    unheard: boolean;
    own: ChangeMark | undefined;
    doubt: ServiceError | undefined;
  }
  const watching = new AsyncLocalStorage<Watch>();
  const heardNodes = createHeardNodes(link, clock);
  const ownDuties = createNodeDuties(link, { clock, log }, self.id);
  const acknowledgement = createAcknowledgement(heardNodes, { clock, log }, self.id);
  const changes = createShownChanges(ports, link, {
    head: async () => (await link.beat({ id: self.id, shown: undefined }, clock.now())).last,
    shown: async (last) => {
      if (joined) await link.tellShown(self.id, last);
    },
    destroyed: () => hooks.destroyed(),
    lost: async () => {
      hooks.lost();
      await ownDuties.giveUpAll();
    },
  });

  const silence = (): number => Math.max(clock.monotonic() - contact.monotonic, clock.now() - contact.wall);
  const inContact = (): boolean =>
    mayUseKeys({ lost: changes.isLost() }, { contactMs: self.contactMs, silentMs: silence() });
  const requireContact = (): void => {
    if (inContact()) return;
    if (changes.isLost())
      throw new ServiceError(
        'unavailable',
        'confirmed changes are missing in the database: this node does not use keys',
        {
          hint: 'run dke quarantine show for what to do',
        },
      );
    throw new ServiceError('unavailable', 'this node has received no changes for too long: it does not use keys', {
      hint: 'check why it does not reach its database; other nodes may still work',
    });
  };

  const isDoubt = (error: unknown): error is ServiceError =>
    error instanceof ServiceError && error.reason === 'unconfirmed';
  /** The change is made; this node cannot ask who shows it. */
  const unconfirmed = (cause: unknown): ServiceError => {
    if (isDoubt(cause)) return cause;
    return new ServiceError(
      'unavailable',
      'the change was made but not confirmed: this node cannot reach the other nodes, which may use the old state',
      {
        hint: 'repeat the request at another node, with the same Idempotency-Key if it had one; dke node list shows the nodes',
        reason: 'unconfirmed',
        cause,
      },
    );
  };
  const reach = (own?: ChangeMark): Promise<number> =>
    changes.reach(own).catch((error: unknown) => {
      throw unconfirmed(error);
    });
  const askOthers = (epoch: number): Promise<Unconfirmed> =>
    acknowledgement.wait(epoch).catch((error: unknown) => {
      throw unconfirmed(error);
    });

  const othersOf = (nodes: readonly SeenNode[]): readonly SeenNode[] =>
    nodes.filter(({ id, state }) => id !== self.id && state !== 'removed');
  const tend = async (rootRun: RootRun | undefined): Promise<void> => {
    const tendsSnapshots = await hooks.mayTendSnapshots();
    const leads = tendsSnapshots && (await hooks.mayLead(rootRun, othersOf(seen)));
    const mayHave = (duty: Duty): boolean => (duty === 'erasure' ? leads : duty !== 'schedules' || tendsSnapshots);
    for (const duty of await ownDuties.tend((each) => !draining && !stopped && mayHave(each))) hooks.took(duty);
    if (ownDuties.holds('pruning') && clock.monotonic() - prunedAt > pruneEveryMs) {
      prunedAt = clock.monotonic();
      await link.pruneChanges(keepChangesMs);
    }
  };
  const beat = async (): Promise<void> => {
    const began = { monotonic: clock.monotonic(), wall: clock.now() };
    const before = changes.last();
    const { state, last, rootRun } = await link.beat({ id: self.id, shown: before }, clock.now());
    if (state === undefined || state === 'removed') {
      hooks.removed();
      return;
    }
    draining = state === 'draining';
    // Under a steady stream of changes reading does not end; that everything up to this beat is shown is enough.
    if (!isSameChange(last, changes.last())) await within(showMs, changes.catchUp());
    if (!renewsContact(last, before, changes.view())) return;
    contact = began;
    if (away) log.info('this node is connected again and receives changes');
    away = false;
    linked = true;
    seen = await heardNodes();
    await hooks.rootRunChanged(
      rootRun,
      seen.find(({ id }) => id === self.id),
    );
    await tend(rootRun);
  };
  const beatNow = (): Promise<void> => {
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
      void beatNow().finally(() => {
        if (!stopped) next();
      });
    }, beatMs);
    timer.unref();
  };

  link.listen({
    changed: (newest) => {
      changes.heard(newest).catch(() => undefined);
    },
    applied: acknowledgement.heard,
    rootRunChanged: () => {
      if (!stopped && joined) void beatNow();
    },
    lost: () => {
      acknowledgement.forget();
      if (stopped || !joined) return;
      // Health says so at once; the beat makes the link again, or tells why not.
      linked = false;
      void beatNow();
    },
    copied: () => hooks.copied(),
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
      behind: Math.max(0, changes.last().epoch - acknowledgement.shownBy(node)),
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
      const [found, holders] = await Promise.all([heardNodes(), ownDuties.holders()]);
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
      if (self.contactMs === 0 || changes.isLost() || away || !joined || silence() < self.contactMs) return undefined;
      if (clock.monotonic() - contact.monotonic >= self.contactMs) return undefined;
      settling ??= beatNow().finally(() => {
        settling = undefined;
      });
      return settling;
    },
    observe: async (work) => {
      const watch: Watch = { epoch: undefined, unheard: false, own: undefined, doubt: undefined };
      const outcome = await watching.run(watch, work).then(
        (value) => ({ value }),
        (refusal: unknown) => {
          // It was destroyed before, perhaps a moment ago, by another node.
          if (!(refusal instanceof ServiceError) || refusal.code !== 'key-destroyed') throw refusal;
          watch.unheard = true;
          watch.own = store.mark();
          return { refusal };
        },
      );
      if (watch.doubt !== undefined) throw watch.doubt;
      if (watch.unheard) watch.epoch = await reach(watch.own);
      return { ...outcome, ...(watch.epoch === undefined ? confirmed : await askOthers(watch.epoch)) };
    },
    confirm: () => {
      const watch = watching.getStore();
      if (watch === undefined) return;
      watch.unheard = true;
      watch.own = store.mark();
    },
    others: async () => othersOf(await heardNodes()),
    over: (directory) => {
      inner = directory;
      changes.show(directory);
      return {
        ...directory,
        renew: async (changed) => {
          directory.forget(changed);
          const watch = watching.getStore();
          if (watch === undefined) {
            await askOthers(await reach());
            return;
          }
          try {
            // A change that changed nothing waits, too: the one before it may not be shown yet.
            watch.epoch = await changes.reach();
          } catch (error) {
            if (changes.isLost()) throw error;
            // It is committed: it is shown here as far as the store can be read, its answer is kept, and its caller is told at the end.
            if (isDoubt(error)) watch.doubt = error;
            watch.unheard = true;
            await directory.renew(changed).catch(() => undefined);
          }
        },
        epoch: () => changes.last().epoch,
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
    join: async (keys) => {
      const { last } = await link.beat({ id: self.id, shown: undefined }, clock.now());
      changes.begin(last);
      await inner?.load();
      if (!(await link.join({ ...self, ...keys }))) {
        hooks.removed();
        return;
      }
      joined = true;
      await beat();
      next();
    },
    // What was announced is read like any other's.
    show: () => changes.catchUp(),
    resume: async () => {
      await changes.resume();
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
