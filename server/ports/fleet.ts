// The servers that share this one's store, as this one sees them. A server with a store of its own
// is a fleet of one.

import type { ServiceError } from '../base/service-error.ts';
import type { Duty, FleetNode } from '../domain/node.ts';
import type { SeenNode } from './node-link.ts';

/** Servers that have not confirmed a change in time, by name. */
export interface Unconfirmed {
  readonly pendingNodes: readonly string[];
  /**
   * When the last of them stops using keys unless it hears of the change; null: there is no limit,
   * or there are none.
   */
  readonly pendingUntil: number | null;
}

/** `refusal`: what was to be destroyed is destroyed. */
export type Observed<T> = ({ readonly value: T } | { readonly refusal: ServiceError }) & Unconfirmed;

export interface Fleet {
  readonly id: string;
  readonly name: string;
  /** Whether this server does that work for all, now. */
  holds(duty: Duty): boolean;
  /**
   * Does a part of that work when this server has the duty. What it writes fails when another
   * server has it by then. Undefined: it has not.
   */
  perform<T>(duty: Duty, work: () => Promise<T>): Promise<T | undefined>;
  /** Servers that run and send heartbeats; at least 1. */
  size(): number;
  nodes(): Promise<readonly FleetNode[]>;
  /** This run of this server, as the others know it (domain/node.ts); does not ask the store. */
  run(): string;
  /**
   * How far this host's clock is ahead of those of the database and of the other nodes, in
   * milliseconds; 0: nothing is known of others.
   */
  clockAheadMs(): number;
  /**
   * Whether requests are to come here: it is in contact, and no operator has asked for them to go
   * to other nodes.
   */
  takesRequests(): boolean;
  /** Whether what this server keeps in memory is fresh enough to be used. */
  inContact(): boolean;
  /** Reads its own row again: an operator has changed it, perhaps. */
  look(): Promise<void>;
  /**
   * Whether this server hears of changes now. One that does not may use keys for a while; its
   * confirmations are worth nothing.
   */
  hears(): boolean;
  /**
   * Runs `work`, then waits until the other servers show what was committed by its end, if it has
   * changed something, or found that it need not. Throws 'unavailable' with the reason
   * `unconfirmed` when they cannot be asked: what `work` has changed stays.
   */
  observe<T>(work: () => Promise<T>): Promise<Observed<T>>;
  /**
   * Within `observe`: the request was carried out before, perhaps elsewhere; its answer waits like
   * the first one.
   */
  confirm(): void;
  /** The others that are not removed, whether they run or not. */
  others(): Promise<readonly SeenNode[]>;
}
