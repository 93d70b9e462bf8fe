// The audit log as this process knows it. What is signed is compared with it: a record that was changed in the database before its first checkpoint is found
// as well (operations/audit/compare-written.ts).

import { type GrowingTree, growTree } from '../base/merkle-tree.ts';
import type { ChangeMark } from '../domain/change-protocol.ts';
import type { WrittenRecords } from '../ports/store.ts';

/** Records that a process without checkpoints keeps. */
const most = 100_000;

export const createWrittenRecords = () => {
  const committed = new Map<number, Buffer>();
  /** Of the units of work before the present one in its transaction. */
  let done = new Map<number, Buffer>();
  let unit = new Map<number, Buffer>();
  let tree: GrowingTree | undefined;
  let last: ChangeMark | undefined;
  /** Of others it is known when it is read. */
  const grow = (sequence: number, leaf: Buffer): void => {
    if (tree !== undefined && sequence === tree.size + 1) tree.append(leaf);
  };
  const written: WrittenRecords = {
    get tree() {
      return tree && { size: tree.size, root: tree.root() };
    },
    startFrom: (subtrees) => {
      committed.clear();
      last = undefined;
      tree = growTree();
      for (const { level, hash } of subtrees) tree.appendSubtree(level, hash);
    },
    get last() {
      return last;
    },
    saw: (after, leaves, newest) => {
      last = newest;
      for (const [at, leaf] of leaves.entries()) grow(after + at + 1, committed.get(after + at + 1) ?? leaf);
    },
    hashOf: (sequence) => unit.get(sequence) ?? done.get(sequence) ?? committed.get(sequence),
    first: () => committed.keys().next().value,
    forget: (through) => {
      for (const sequence of committed.keys()) {
        if (sequence > through) break;
        committed.delete(sequence);
      }
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
        committed.set(sequence, leaf);
        grow(sequence, leaf);
      }
      done = new Map();
      if (committed.size > most) written.forget((written.first() ?? 0) + committed.size - most);
    },
  };
};
