// The servers that share this one's store, as this one sees them. A server with a store of its own is a fleet of one.

import type { Duty, FleetNode } from '../domain/node.ts';
import type { SeenNode } from './node-link.ts';

export interface Fleet {
  readonly id: string;
  readonly name: string;
  /** Whether this server does that work for all, now. */
  holds(duty: Duty): boolean;
  /** Servers that run and are heard of; at least 1. */
  size(): number;
  nodes(): Promise<readonly FleetNode[]>;
  /** An operator wants requests to go elsewhere. */
  draining(): boolean;
  /** Whether what this server keeps in memory is fresh enough to be used. */
  inContact(): boolean;
  /** Reads its own row again: an operator has changed it, perhaps. */
  look(): Promise<void>;
  /** Runs `work`; answers the names of the servers that do not show yet what it has changed, and may go on with what was before. */
  observe<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly pendingNodes: readonly string[] }>;
  /** The others that are not removed, whether they run or not. */
  others(): Promise<readonly SeenNode[]>;
}
