// A server with a store of its own: a fleet of one.

import { duties, runOf } from '../../domain/node.ts';
import type { Directory } from '../../ports/working-memory.ts';
import { allDuties } from './node-duties.ts';
import type { FleetPorts, FleetSelf, RunningFleet } from './running-fleet.ts';
import { takeChanges } from './shown-changes.ts';

export const createLoneFleet = ({ store, ring, clock, events }: FleetPorts, self: FleetSelf): RunningFleet => {
  let draining = false;
  const { directory: _, ...own } = self.start;
  let rootEpoch = 1;
  let inner: Directory | undefined;
  const startedAt = clock.now();
  events.on('rootRotated', (rotated) => {
    ({ rootEpoch } = rotated);
  });
  return {
    id: self.id,
    name: own.name,
    holds: () => true,
    perform: allDuties.perform,
    duties: allDuties,
    size: () => 1,
    nodes: async () => [
      {
        id: self.id,
        name: own.name,
        version: own.version,
        state: draining ? 'draining' : 'active',
        startedAt,
        heartbeatAt: clock.now(),
        behind: 0,
        rootEpoch,
        hasOldRoot: false,
        usesKeysUntil: null,
        duties,
        self: true,
      },
    ],
    clockAheadMs: () => 0,
    takesRequests: () => !draining,
    inContact: () => true,
    look: async () => {
      draining = (await store.read.nodes.get(self.id))?.state === 'draining';
    },
    run: () => runOf({ id: self.id, startedAt }),
    hears: () => true,
    observe: async (work) => ({ value: await work(), pendingNodes: [], pendingUntil: null }),
    confirm: () => undefined,
    others: () => Promise.resolve([]),
    over: (directory) => {
      inner = directory;
      return { ...directory, healthy: () => directory.healthy() && !draining };
    },
    join: async (keys) => {
      await inner?.load();
      ({ rootEpoch } = keys);
      const row = {
        id: self.id,
        ...own,
        ...keys,
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
      await takeChanges({ store, ring }, inner, changes);
      if (changes.destroyed === true) events.emit('keyDestroyed', undefined);
    },
    stop: async () => undefined,
  };
};
