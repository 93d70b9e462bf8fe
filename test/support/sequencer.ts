// The order of the test files: those of other processes first, because they take longest, and the unit tests last, because they are short.
// So no long file runs alone at the end while other workers are idle. Within these, larger files come first.
import { statSync } from 'node:fs';
import { relative } from 'node:path';
import type { TestSequencer, TestSpecification } from 'vitest/node';

const order = [
  'test/scenario/',
  'test/databases/',
  'test/tde/',
  'test/clients/',
  'test/conformance/',
  'test/contract/',
];

const rankOf = (path: string): number => {
  const at = order.findIndex((folder) => path.startsWith(folder));
  return at < 0 ? order.length : at;
};

export class LongestFirst implements TestSequencer {
  // A run in several parts is not foreseen.
  shard(files: TestSpecification[]): TestSpecification[] {
    return files;
  }
  sort(files: TestSpecification[]): TestSpecification[] {
    const keyed = files.map((file) => {
      const path = relative(file.project.config.root, file.moduleId);
      return { file, rank: rankOf(path), size: statSync(file.moduleId).size };
    });
    return keyed.sort((a, b) => a.rank - b.rank || b.size - a.size).map(({ file }) => file);
  }
}
