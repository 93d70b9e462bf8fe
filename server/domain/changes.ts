// What a committed change touched of that which servers keep in memory.

import type { DecisionName } from './decisions.ts';

/**
 * The decision with the rotation that was requested: `root`, or `tenant`, its id and the epoch of
 * its key at that time.
 */
export const rotationSetting = 'rotation-asked' satisfies DecisionName;

export interface Changes {
  readonly tenants?: readonly string[];
  readonly vaults?: readonly string[];
  readonly keys?: readonly string[];
  readonly endpoints?: readonly string[];
  readonly applications?: readonly string[];
  /** Handles of token objects. */
  readonly objects?: readonly number[];
  /** Credentials of endpoints that no longer exist. */
  readonly credentials?: readonly string[];
  /** Tenants with restored rows: all of theirs is read again, and nothing of others. */
  readonly restored?: readonly string[];
  /** The set of tenants' KEKs. */
  readonly keks?: boolean;
  /**
   * An erasure run is due: a key or a value was destroyed, or a rotation was requested. The name is
   * the one that older nodes understand.
   */
  readonly destroyed?: boolean;
}

const lists = ['tenants', 'restored', 'vaults', 'keys', 'endpoints', 'applications', 'credentials', 'objects'] as const;
const flags = ['keks', 'destroyed'] as const;

/** All in one, each once. */
export const mergeChanges = (parts: readonly Changes[]): Changes => ({
  ...Object.fromEntries(
    lists.flatMap((name) => {
      const all = [
        ...new Set<string | number>(parts.flatMap((part): readonly (string | number)[] => part[name] ?? [])),
      ];
      return all.length === 0 ? [] : [[name, all]];
    }),
  ),
  ...Object.fromEntries(flags.flatMap((name) => (parts.some((part) => part[name] === true) ? [[name, true]] : []))),
});
