// The audit records that this process has written since the last checkpoint, as hashes of their content. What is signed is compared with them: a record that
// was changed in the database before its first checkpoint is found as well (operations/audit/compare-written.ts).

import type { WrittenRecords } from '../ports/store.ts';

/** Records that a process without checkpoints keeps. */
const most = 100_000;

export const createWrittenRecords = () => {
  const committed = new Map<number, Buffer>();
  /** Of the units of work before the present one in its transaction. */
  let done = new Map<number, Buffer>();
  let unit = new Map<number, Buffer>();
  const written: WrittenRecords = {
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
      for (const [sequence, leaf] of done) committed.set(sequence, leaf);
      done = new Map();
      if (committed.size > most) written.forget((written.first() ?? 0) + committed.size - most);
    },
  };
};
