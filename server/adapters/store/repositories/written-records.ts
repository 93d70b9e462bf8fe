// The audit log as this process knows it. What is signed is compared with it: a record that was
// changed in the database before its first checkpoint is found as well
// (operations/audit/compare-written.ts).

import { type GrowingTree, growTree } from '../../../base/merkle-tree.ts';
import type { ChangeMark } from '../../../domain/change-protocol.ts';
import type { WrittenRecords } from '../../../ports/store.ts';

/** Records that a process without checkpoints keeps. */
const most = 100_000;

interface Own {
  readonly leaf: Buffer;
  readonly lineage: string;
}

/**
 * `lineage`: of a database that other processes use, too. A failover may take back what it has
 * committed before a caller was told: a record of this process is in the tree when it was read
 * again, as those of others are. Undefined: what is committed stays.
 */
export const createWrittenRecords = (lineage: (() => string) | undefined) => {
  const committed = new Map<number, Own>();
  /** Hashes of the records that earlier units of work in this transaction have written. */
  let done = new Map<number, Buffer>();
  let unit = new Map<number, Buffer>();
  let tree: GrowingTree | undefined;
  let last: ChangeMark | undefined;
  const now = (): string => lineage?.() ?? '';
  /** When the tree was read. */
  let from = now();
  const ownOf = (sequence: number): Buffer | undefined => {
    const own = committed.get(sequence);
    return own?.lineage === now() ? own.leaf : undefined;
  };
  const grow = (sequence: number, leaf: Buffer): void => {
    if (tree !== undefined && sequence === tree.size + 1) tree.append(leaf);
  };
  const written: WrittenRecords = {
    get tree() {
      return tree && { size: tree.size, root: tree.root() };
    },
    get last() {
      return last;
    },
    get isMoved() {
      return from !== now();
    },
    startFrom: (subtrees) => {
      committed.clear();
      last = undefined;
      from = now();
      tree = growTree();
      for (const { level, hash } of subtrees) tree.appendSubtree(level, hash);
    },
    saw: (after, leaves, newest) => {
      last = newest;
      for (const [at, leaf] of leaves.entries()) grow(after + at + 1, ownOf(after + at + 1) ?? leaf);
    },
    hashOf: (sequence) => unit.get(sequence) ?? done.get(sequence) ?? ownOf(sequence),
    first: () => committed.keys().next().value,
    forget: (through) => {
      for (const sequence of committed.keys()) {
        if (sequence > through) break;
        committed.delete(sequence);
      }
      // What was compared is in the database as it is now.
      from = now();
    },
  };
  return {
    written,
    append: (sequence: number, leaf: Buffer): void => {
      unit.set(sequence, leaf);
    },
    begin: (): void => {
      [unit, done] = [new Map(), new Map()];
    },
    beginUnit: (): void => {
      unit = new Map();
    },
    endUnit: (): void => {
      for (const [sequence, leaf] of unit) done.set(sequence, leaf);
      unit = new Map();
    },
    commit: (): void => {
      for (const [sequence, leaf] of done) {
        // Under a number that a failover has freed, it is the last one: in the order of numbers.
        committed.delete(sequence);
        committed.set(sequence, { leaf, lineage: now() });
        if (lineage === undefined) grow(sequence, leaf);
      }
      done = new Map();
      if (committed.size > most) written.forget((written.first() ?? 0) + committed.size - most);
    },
  };
};
