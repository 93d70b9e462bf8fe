// Nodes: the servers that share one store.

export const nodeStates = ['active', 'draining', 'stopped', 'removed'] as const;
export type NodeState = (typeof nodeStates)[number];

/** Work that one node does for all. */
export const duties = ['erasure', 'audit', 'forwarding', 'key-stores', 'pruning', 'schedules'] as const;
export type Duty = (typeof duties)[number];

/** One run of a node: after a restart it does not continue its earlier work. */
export const runOf = ({ id, startedAt }: { readonly id: string; readonly startedAt: number }): string =>
  `${id} ${startedAt}`;

/**
 * How far a clock is from those of the others, in milliseconds; of an even number of others, from
 * the nearer one of the two in the middle.
 */
export const clockDifference = (own: number, others: readonly number[]): number => {
  const sorted = others.toSorted((a, b) => a - b);
  const low = sorted[Math.ceil(sorted.length / 2) - 1] ?? own;
  const high = sorted[Math.floor(sorted.length / 2)] ?? own;
  return own - Math.min(Math.max(own, low), high);
};

/** A node as another one, or itself, sees it. */
export interface FleetNode {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** `offline`: it should run, and has sent no heartbeat for some seconds. */
  readonly state: NodeState | 'offline';
  readonly startedAt: number;
  readonly heartbeatAt: number;
  /** Changes that it does not show yet. */
  readonly behind: number;
  readonly rootEpoch: number;
  /** Whether it still has the previous root key. */
  readonly hasOldRoot: boolean;
  /**
   * When it ends, at the latest, to use keys without hearing of changes; null: it hears of them, or
   * does not run, or never ends.
   */
  readonly usesKeysUntil: number | null;
  readonly duties: readonly Duty[];
  /** The one that answers. */
  readonly self: boolean;
}

/** What a node tells others in a setting of its own; a removed node has none. */
export const nodeSettings = {
  health: (id: string): string => `node-health ${id}`,
  certificates: (id: string): string => `node-certificates ${id}`,
} as const;
export type NodeSetting = keyof typeof nodeSettings;
