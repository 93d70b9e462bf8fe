// A server among others, as the parts that start it see it, what it tells them, and what it asks
// them. Two implementations: fleet.ts and lone-fleet.ts.

import type { Emitter, Listening } from '../../base/events.ts';
import type { Unsound } from '../../domain/audit-finding.ts';
import type { Changes } from '../../domain/changes.ts';
import type { Duty } from '../../domain/node.ts';
import type { RootRun } from '../../domain/root-run.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { NodeRootKeys, NodeStart, SeenNode } from '../../ports/node-link.ts';
import type { NodeState } from '../../ports/node-state.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory } from '../../ports/working-memory.ts';
import type { NodeDuties } from './node-duties.ts';

export interface FleetSelf {
  readonly id: string;
  /** What this start says of itself. */
  readonly start: Omit<NodeStart, 'startedAt'>;
}

export interface RunningFleet extends Fleet {
  /** Which duty's work this is, and a store in which what comes late fails (node-duties.ts). */
  readonly duties: Pick<NodeDuties, 'current' | 'fence'>;
  /**
   * The directory as this server's operations and fronts use it: it waits for the others, and stops
   * when contact is lost.
   */
  over(directory: Directory): Directory;
  /** Enters the fleet. Everything that was committed before is shown when it resolves. */
  join(keys: NodeRootKeys, work: NodeWork): Promise<void>;
  /** Applies what was committed here after its caller was told that the outcome is unknown. */
  show(changes: Changes): Promise<void>;
  /**
   * Undefined at nearly all times. A promise when this host's wall clock has jumped so far that
   * contact seems lost: it resolves when the store was asked, which tells a corrected clock from a
   * host that stood still.
   */
  settle?(): Promise<void> | undefined;
  /** Whether a change is on its way between nodes, which uses of keys give way to. */
  isPressed?(): boolean;
  /** Reads everything again: an operator has taken the database as it is. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export interface RootEvents {
  /** The root key of this node has a new epoch, and the one before is overwritten here. */
  readonly rootRotated: { readonly rootEpoch: number };
}

export interface FleetEvents {
  /** An erasure run is due: a key was destroyed, or a rotation requested, on any node. */
  readonly keyDestroyed: undefined;
  /** A duty came here. */
  readonly dutyTaken: Duty;
  /**
   * The database has this schema now, which is of another version of the service: this node may not
   * use it.
   */
  readonly schemaChanged: string;
  /** An operator has removed this node. */
  readonly nodeRemoved: undefined;
  /** The database has no row of this node, which has joined: it is in an earlier state. */
  readonly nodeLost: undefined;
  /**
   * While this node had no connection, another process has come to run under its id: one with a
   * copy of the data directory.
   */
  readonly nodeCopied: undefined;
  /**
   * Changes that this node has received are no longer in the database. Until `resume` it uses no
   * keys and has no duties.
   */
  readonly changesLost: Unsound;
}

/** What a node that has joined does for the others, and waits for. */
export interface NodeWork {
  /** Once a second, and when a root key is on its way. `own`: this node's row. */
  followRootRun(rootRun: RootRun | undefined, own: SeenNode | undefined): Promise<void>;
  /** Whether this node may have the duty of the erasure run. */
  mayLead(rootRun: RootRun | undefined, others: readonly SeenNode[]): Promise<boolean>;
  /** Whether this node may have duties that look after snapshots. */
  mayTendSnapshots(): Promise<boolean>;
}

export type FleetPorts = Pick<Ports, 'store' | 'ring' | 'clock' | 'log'> & {
  readonly state: Pick<NodeState, 'note' | 'kept'>;
  readonly events: Emitter<FleetEvents> & Listening<RootEvents>;
};
