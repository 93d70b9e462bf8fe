// This server among others of the same store. Once a second, and whenever something was committed,
// it reads what has changed and shows it; it tells how far it is, and takes over work that one node
// does for all (heartbeat.ts). A change is answered when every node that can hear of it shows it,
// or after two seconds with the names of those that do not (observed-requests.ts,
// acknowledgement.ts). A node that no longer receives changes uses keys for a limited time
// (memory-freshness.ts).

import { ServiceError } from '../../base/service-error.ts';
import { actsForMs, type ChangeMark } from '../../domain/change-protocol.ts';
import { clockDifference, type Duty, duties, type FleetNode, runOf } from '../../domain/node.ts';
import type { NodeStart, SeenNode } from '../../ports/node-link.ts';
import type { Directory } from '../../ports/working-memory.ts';
import type { FleetMember } from '../../ports/xks-directory.ts';
import { type Acknowledgement, createAcknowledgement, silentAfterMs } from './acknowledgement.ts';
import { createHeardNodes } from './heard-nodes.ts';
import { createHeartbeat, type Heartbeat, othersOf } from './heartbeat.ts';
import { createLoneFleet } from './lone-fleet.ts';
import { type Contact, createContact } from './memory-freshness.ts';
import { createNodeDuties, type NodeDuties } from './node-duties.ts';
import { createObservedRequests, type ObservedRequests } from './observed-requests.ts';
import type { FleetPorts, FleetSelf, RunningFleet } from './running-fleet.ts';
import { createShownChanges, type ShownChanges } from './shown-changes.ts';

const sizeOf = (seen: readonly SeenNode[]): number =>
  Math.max(1, seen.filter(({ state, silentMs }) => state === 'active' && silentMs < silentAfterMs).length);

/** The other nodes that run, for the fronts. */
const membersOf = (seen: readonly SeenNode[], selfId: string): readonly FleetMember[] =>
  seen.flatMap(({ id, name, version, state, silentMs, contactMs }): FleetMember[] => {
    if (id === selfId || (state !== 'active' && state !== 'draining')) return [];
    if (silentMs < silentAfterMs) return [{ name, version, state }];
    // Afterwards it no longer uses keys, so it is not part of the fleet.
    return contactMs === 0 || silentMs < contactMs ? [{ name, version, state: 'gone' }] : [];
  });

const clockAheadOf = (seen: readonly SeenNode[], selfId: string): number => {
  const running = seen.filter(({ silentMs }) => silentMs < silentAfterMs);
  const own = running.find(({ id }) => id === selfId);
  if (own === undefined) return 0;
  // The database's own clock is one of them.
  const others = running.filter(({ id }) => id !== selfId).map(({ clockAheadMs }) => clockAheadMs);
  return clockDifference(own.clockAheadMs, [0, ...others]);
};

/** A node as operators see it. */
const toNode = (
  node: SeenNode,
  {
    now,
    isSelf,
    behind,
    nodeDuties,
  }: { readonly now: number; readonly isSelf: boolean; readonly behind: number; readonly nodeDuties: readonly Duty[] },
): FleetNode => {
  const runs = node.state === 'active' || node.state === 'draining';
  const isSilent = runs && node.silentMs >= silentAfterMs;
  const removedRuns = node.state === 'removed' && node.epoch < Number.MAX_SAFE_INTEGER;
  const actsFor = actsForMs(node);
  return {
    id: node.id,
    name: node.name,
    version: node.version,
    state: isSilent ? 'offline' : node.state,
    startedAt: node.startedAt,
    heartbeatAt: node.heartbeatAt,
    behind,
    rootEpoch: node.rootEpoch,
    hasOldRoot: node.oldestRootEpoch < node.rootEpoch,
    usesKeysUntil: (isSilent || removedRuns) && actsFor != null ? now + actsFor : null,
    duties: nodeDuties,
    self: isSelf,
  };
};

const held = (ownDuties: NodeDuties): readonly Duty[] => duties.filter((duty) => ownDuties.holds(duty));

/**
 * The directory as this node's operations and fronts use it: it waits for the other nodes, and
 * stops when contact is lost.
 */
const waitingDirectory = (
  directory: Directory,
  {
    selfId,
    requests,
    changes,
    heartbeat,
    contact,
    takesRequests,
  }: {
    readonly selfId: string;
    readonly requests: ObservedRequests;
    readonly changes: ShownChanges;
    readonly heartbeat: Heartbeat;
    readonly contact: Contact;
    readonly takesRequests: () => boolean;
  },
): Directory => ({
  ...directory,
  renew: (changed) => requests.renew(directory, changed),
  epoch: () => changes.last().epoch,
  fleetSize: () => sizeOf(heartbeat.seen()),
  otherNodes: () => membersOf(heartbeat.seen(), selfId),
  healthy: () => directory.healthy() && takesRequests(),
  endpoint: (prefix) => {
    contact.require();
    return directory.endpoint(prefix);
  },
  application: (hash) => {
    contact.require();
    return directory.application(hash);
  },
});

/**
 * Counts changes that are read for this node, or for others who wait for it, and those that wait
 * for others.
 */
const createPress = () => {
  let count = 0;
  return {
    isOn: (): boolean => count > 0,
    while: async <T>(work: Promise<T>): Promise<T> => {
      count += 1;
      return work.finally(() => {
        count -= 1;
      });
    },
  };
};

/** Uses give way while a request waits for its change. */
const createPressingRequests = (
  store: FleetPorts['store'],
  changes: ShownChanges,
  acknowledgement: Acknowledgement,
  press: ReturnType<typeof createPress>,
): ObservedRequests =>
  createObservedRequests(
    store,
    { ...changes, reach: (own) => press.while(changes.reach(own)) },
    { ...acknowledgement, wait: (epoch) => press.while(acknowledgement.wait(epoch)) },
  );

/** What was read of the database, as this node knows it. */
const notePosition =
  ({ store: { written }, state }: Pick<FleetPorts, 'store' | 'state'>) =>
  (last: ChangeMark, rows: number): void => {
    const { tree } = written;
    if (tree !== undefined) state.note({ last, records: tree.size, root: tree.root.toString('hex'), rows });
  };

export const createFleet = (ports: FleetPorts, self: FleetSelf): RunningFleet => {
  const { store, clock, log, events } = ports;
  const { link } = store;
  if (link === undefined) return createLoneFleet(ports, self);

  let inner: Directory | undefined;
  let run: NodeStart | undefined;
  let settling: Promise<void> | undefined;
  const heardNodes = createHeardNodes(link, clock);
  const ownDuties = createNodeDuties(link, { clock, log }, self.id);
  const acknowledgement = createAcknowledgement(heardNodes, { clock, log }, self.id);
  const changes = createShownChanges(ports, link, {
    head: async () => (await link.beat({ id: self.id, shown: undefined }, clock.now())).last,
    noted: notePosition(ports),
    shown: async (last) => {
      if (run !== undefined) await link.tellShown(self.id, last);
    },
    kept: ports.state.kept,
    destroyed: () => events.emit('keyDestroyed', undefined),
    lost: async (differences, last) => {
      events.emit('changesLost', { state: 'lost-changes', differences, atLeast: { last } });
      await ownDuties.giveUpAll();
    },
  });
  const press = createPress();
  const requests = createPressingRequests(store, changes, acknowledgement, press);
  const { contactMs } = self.start;
  const contact = createContact(clock, contactMs, changes);
  const heartbeat = createHeartbeat(ports, self.id, {
    ...{ link, changes, ownDuties, contact, heardNodes },
    schema: store.schema,
    run: () => run,
  });
  const takesRequests = (): boolean => contact.isFresh() && !heartbeat.draining();

  link.listen({
    changed: (newest) => {
      press.while(changes.heard(newest)).catch(() => undefined);
    },
    applied: acknowledgement.heard,
    rootRunChanged: () => {
      if (heartbeat.isRunning()) void heartbeat.now();
    },
    lost: () => {
      acknowledgement.forget();
      if (heartbeat.isRunning()) heartbeat.linkLost();
    },
    copied: () => events.emit('nodeCopied', undefined),
  });

  return {
    id: self.id,
    name: self.start.name,
    holds: (duty) => ownDuties.holds(duty),
    perform: ownDuties.perform,
    duties: ownDuties,
    size: () => sizeOf(heartbeat.seen()),
    nodes: async () => {
      const [found, holders] = await Promise.all([heardNodes(), ownDuties.holders()]);
      return found.map((node) => {
        const isSelf = node.id === self.id;
        return toNode(node, {
          now: clock.now(),
          isSelf,
          behind: Math.max(0, changes.last().epoch - acknowledgement.shownBy(node)),
          nodeDuties: isSelf ? held(ownDuties) : (holders.get(node.id) ?? []),
        });
      });
    },
    clockAheadMs: () => clockAheadOf(heartbeat.seen(), self.id),
    takesRequests,
    inContact: contact.isFresh,
    look: heartbeat.now,
    run: () => {
      const own = heartbeat.seen().find(({ id }) => id === self.id);
      if (own === undefined) throw new ServiceError('unavailable', 'this node is not yet known to the others');
      return runOf(own);
    },
    hears: heartbeat.hears,
    settle: () => {
      if (contactMs === 0 || changes.isLost() || heartbeat.isAway() || run === undefined) return undefined;
      // The wall clock says that contact is lost, and the other one that it is not.
      if (contact.silentMs() < contactMs || contact.monotonicMs() >= contactMs) return undefined;
      settling ??= heartbeat.now().finally(() => {
        settling = undefined;
      });
      return settling;
    },
    isPressed: press.isOn,
    observe: requests.observe,
    confirm: requests.confirm,
    others: async () => othersOf(await heardNodes(), self.id),
    over: (directory) => {
      inner = directory;
      changes.show(directory);
      return waitingDirectory(directory, { selfId: self.id, requests, changes, heartbeat, contact, takesRequests });
    },
    join: async (keys, work) => {
      const { last } = await link.beat({ id: self.id, shown: undefined }, clock.now());
      changes.begin(last);
      await inner?.load();
      const startedAt = await link.join({ id: self.id, ...self.start, ...keys });
      if (startedAt === undefined) {
        events.emit('nodeRemoved', undefined);
        return;
      }
      run = { ...self.start, startedAt };
      await heartbeat.start(work);
    },
    // What was announced is read like any other's.
    show: () => changes.catchUp(),
    resume: async () => {
      await changes.resume();
      await heartbeat.now();
    },
    stop: async () => {
      await heartbeat.stop();
      await ownDuties.giveUpAll().catch(() => undefined);
      if (run !== undefined) await link.leave(self.id).catch(() => undefined);
    },
  };
};
