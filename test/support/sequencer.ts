// The order of the test files: those that take longest first, then those of other processes, and
// the unit tests last, because they are short. So no long file runs alone at the end while other
// workers are idle. Otherwise larger files come first.
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { TestSequencer, TestSpecification } from 'vitest/node';

/**
 * More than half a minute each in `npm test` on two cores. Only the order depends on it: a file
 * that is missing here is late, not left out.
 */
const longest = [
  'test/scenario/console-looks.test.ts',
  'test/scenario/provider-install.test.ts',
  'test/scenario/root-providers.test.ts',
  'test/scenario/nodes-erasure.test.ts',
  'test/scenario/command.test.ts',
  'test/scenario/nodes-unconfirmed.test.ts',
  'test/scenario/endpoint-doctor.test.ts',
  'test/scenario/event-loop.test.ts',
  'test/scenario/nodes.test.ts',
  'test/scenario/console-sign-in.test.ts',
  'test/scenario/nodes-creates.test.ts',
  'test/scenario/bad-input-store.test.ts',
  'test/scenario/server-start.test.ts',
  'test/scenario/cloud-faults.test.ts',
  'test/scenario/nodes-connections.test.ts',
  'test/scenario/console-pages.test.ts',
  'test/tde/runbooks.test.ts',
  'test/contract/database-writer.test.ts',
  'test/scenario/groups.test.ts',
  'test/contract/insider-matrix.test.ts',
  'test/scenario/root-backup.test.ts',
  'test/databases/derby.test.ts',
  'test/databases/mariadb-instances.test.ts',
  'test/scenario/provider-log.test.ts',
];
const folders = [
  'test/scenario/',
  'test/databases/',
  'test/tde/',
  'test/clients/',
  'test/conformance/',
  'test/contract/',
];

const rankOf = (path: string): number => {
  const at = longest.indexOf(path);
  if (at >= 0) return at;
  const folder = folders.findIndex((each) => path.startsWith(each));
  return longest.length + (folder < 0 ? folders.length : folder);
};

export class LongestFirst implements TestSequencer {
  // A run in several parts is not foreseen.
  shard(files: TestSpecification[]): TestSpecification[] {
    return files;
  }
  sort(files: TestSpecification[]): TestSpecification[] {
    // A file that was renamed is noticed at once.
    for (const path of longest) statSync(join(import.meta.dirname, '../..', path));
    const keyed = files.map((file) => {
      const path = relative(file.project.config.root, file.moduleId);
      return { file, rank: rankOf(path), size: statSync(file.moduleId).size };
    });
    return keyed.sort((a, b) => a.rank - b.rank || b.size - a.size).map(({ file }) => file);
  }
}
