// What nodes decide while a new root key is on its way to every node, and the old one is
// overwritten (decision 22). Pure functions on plain data. The nodes run them, and test/model
// explores every order of their steps.

/**
 * A root key on its way. `offered`: every node must take it; `erase`: every node must overwrite the
 * one before.
 */
export interface RootRun {
  readonly epoch: number;
  /** Whose it is. */
  readonly nodeId: string;
  readonly phase: 'offered' | 'erase';
}

/** Which root keys a node has. */
export interface RootKeys {
  readonly rootEpoch: number;
  /**
   * The oldest epoch of the root key that the node has: `rootEpoch`, or the one before it while
   * that is not erased.
   */
  readonly oldestRootEpoch: number;
}

/** What the run asks of a node that does not lead it. */
export const askedOf = (
  run: RootRun | undefined,
  { id, rootEpoch, oldestRootEpoch }: RootKeys & { readonly id: string },
): 'take' | 'erase' | 'nothing' => {
  if (run === undefined || run.nodeId === id) return 'nothing';
  if (run.phase === 'offered') return rootEpoch < run.epoch ? 'take' : 'nothing';
  return rootEpoch === run.epoch && oldestRootEpoch < rootEpoch ? 'erase' : 'nothing';
};

/**
 * Whether a node's row says which root keys it has. It may not: what the node reported was not
 * stored, or was lost in a failover.
 */
export const isTold = (row: RootKeys, own: RootKeys, isProved: boolean): boolean =>
  row.rootEpoch === own.rootEpoch && row.oldestRootEpoch === own.oldestRootEpoch && isProved;

/**
 * Whether a node may lead the run: one that has the newest root key, or is to make it.
 * `start-over`: the one that made it was removed, and no other node has it, so nothing was ever
 * sealed under it.
 */
export const mayLeadRun = (
  run: RootRun | undefined,
  self: { readonly id: string; readonly rootEpoch: number },
  others: readonly { readonly id: string; readonly rootEpoch: number }[],
): 'yes' | 'no' | 'start-over' => {
  // A failover may have lost the run: the node that has the new root key continues it.
  if (others.some(({ rootEpoch }) => rootEpoch > self.rootEpoch)) return 'no';
  if (run === undefined || run.epoch <= self.rootEpoch || run.nodeId === self.id) return 'yes';
  return others.some(({ id }) => id === run.nodeId) ? 'no' : 'start-over';
};

/**
 * Whether a node that has started a run still makes its root key. The answer to the beginning may
 * come late: after a failover that has lost the run, the node may have taken the root key of
 * another one in the meantime, which a third key would replace.
 */
export const mayMakeRootKey = (begun: Pick<RootRun, 'epoch'>, { rootEpoch }: Pick<RootKeys, 'rootEpoch'>): boolean =>
  begun.epoch === rootEpoch + 1;

/**
 * Whether a run has complete on this node and not everywhere, and a failover has lost how far it
 * was. It is brought to its end with the root key that it has made, before another one begins.
 */
export const isLeftOver = (
  run: RootRun | undefined,
  { rootEpoch, oldestRootEpoch }: RootKeys,
  others: readonly Pick<RootKeys, 'oldestRootEpoch'>[],
): boolean =>
  oldestRootEpoch === rootEpoch &&
  ((run !== undefined && run.epoch <= rootEpoch) || others.some((other) => other.oldestRootEpoch < rootEpoch));

/**
 * The run that this node leads. The database may show an earlier one, which a failover has brought
 * back.
 */
export const rootRunOf = (
  { rootEpoch }: Pick<RootKeys, 'rootEpoch'>,
  nodeId: string,
  phase: RootRun['phase'],
): RootRun => ({
  epoch: rootEpoch,
  nodeId,
  phase,
});

/**
 * Whether nothing is sealed under the old root key, and every copy of the database has that: what
 * is left is to overwrite it.
 */
export const isEnding = (run: RootRun | undefined, { rootEpoch }: Pick<RootKeys, 'rootEpoch'>): boolean =>
  run?.phase === 'erase' && run.epoch === rootEpoch;

/**
 * What another node must show before anything is sealed under the new root key. `isProved`: it has
 * shown this by a record under that key.
 */
export const hasNewRoot = (node: RootKeys, run: RootRun, isProved: boolean): boolean =>
  node.rootEpoch >= run.epoch && isProved;

/** What another node must show before the node that leads overwrites its own old root key. */
export const hasErasedOldRoot = (node: RootKeys, run: RootRun, isProved: boolean): boolean =>
  node.oldestRootEpoch >= run.epoch && isProved;

/** A copy of the database, as the database knows it. */
export interface DatabaseCopy {
  readonly name: string;
  /** Whether the copy has not stored everything yet that was sealed again. */
  readonly isBehind: boolean;
}

/**
 * The name of a replication slot begins with this. The database keeps a slot until an operator
 * drops it: one that is gone was given up.
 */
export const slotPrefix = 'slot ';

/**
 * Copies that are waited for before any node overwrites the old root key. `awaited`: those of the
 * last look. A standby that was behind, and is no longer seen, may take over all the same.
 */
export const awaitedCopies = (awaited: ReadonlySet<string>, copies: readonly DatabaseCopy[]): ReadonlySet<string> =>
  new Set([
    ...[...awaited].filter((name) => !name.startsWith(slotPrefix) && !copies.some((copy) => copy.name === name)),
    ...copies.filter(({ isBehind }) => isBehind).map(({ name }) => name),
  ]);
