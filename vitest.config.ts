import { join } from 'node:path';
import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { LongestFirst } from './test/support/sequencer.ts';
import { alsoOnPostgresql, isLong, longFiles, sqliteOnly } from './test/support/tiers.ts';

/**
 * The database of the services in a run: `sqlite` by default, `postgresql`, or `both`: SQLite, with
 * some tests on PostgreSQL as well.
 */
const store = process.env.DKE_TEST_STORE ?? 'sqlite';
if (!['sqlite', 'postgresql', 'both'].includes(store))
  throw new Error(`DKE_TEST_STORE is ${store}: it is sqlite, postgresql or both`);

const all = ['test/**/*.test.ts'];
/** Files that only the long tier runs. */
const longOnly = isLong ? {} : longFiles;

/**
 * Tests within one process. In `npm test`, those of a worker share its modules: loading the service
 * once for each file costs more than most files. Each file restores what it changes in its process.
 * The agent's tests have a process for each file.
 */
const inProcess = [
  'test/unit/*.test.ts',
  'test/unit/!(agent)/**/*.test.ts',
  'test/contract/*.test.ts',
  'test/house/*.test.ts',
];
/**
 * Tests whose services, agents and databases are processes of their own. In `npm test`, those of a
 * worker share its modules, too. Tests that load the library or parts of the service into their own
 * process have one for each file.
 */
const loading =
  'agent-*|audit-sinks|bad-input-agent|deleted-database|due-exchanges|erasure-rounds|host-life|keys-in-memory|nodes-marks|notifications|open-id|threads|unreadable-master-key';
const besideProcesses = [
  `test/scenario/!(${loading}).test.ts`,
  'test/clients/!(graphene).test.ts',
  'test/databases/!(jce).test.ts',
  'test/tde/*.test.ts',
  'test/conformance/xks-*.test.ts',
];
const env = { DKE_TEST_STORE: 'sqlite' };
const onSqlite: readonly TestProjectConfiguration[] =
  store === 'both'
    ? [
        { extends: true, test: { name: 'sqlite', include: all, exclude: [...inProcess, ...besideProcesses], env } },
        { extends: true, test: { name: 'sqlite-in-process', include: inProcess, isolate: false, env } },
        { extends: true, test: { name: 'sqlite-processes', include: besideProcesses, isolate: false, env } },
      ]
    : [{ extends: true, test: { name: 'sqlite', include: all, env } }];
const onPostgresql: TestProjectConfiguration = {
  extends: true,
  test: {
    name: 'postgresql',
    env: { DKE_TEST_STORE: 'postgresql' },
    include: store === 'postgresql' ? all : isLong ? ['test/{contract,unit}/**/*.test.ts'] : [...alsoOnPostgresql],
    exclude: Object.keys(sqliteOnly),
    globalSetup: 'test/support/test-store-server.ts',
    // The files that `alsoOnPostgresql` names are tests within one process, which may share
    // modules.
    isolate: store !== 'both' || isLong,
  },
};
for (const [file, why] of Object.entries(longOnly)) console.log(`only in npm run test:long: ${file}: ${why}`);
if (store === 'postgresql')
  for (const [files, why] of Object.entries(sqliteOnly)) console.log(`not on PostgreSQL: ${files}: ${why}`);

// Tests start thousands of Node processes with the same programs: the cache compiles each program
// once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'build/compile-cache');

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, ...Object.keys(longOnly)],
    projects: [...(store === 'postgresql' ? [] : onSqlite), ...(store === 'sqlite' ? [] : [onPostgresql])],
    pool: 'forks',
    // Four workers on two cores, because files often wait for a process, a disk or a browser.
    maxWorkers: 4,
    globalSetup: ['test/support/quick-folder.ts', 'test/support/programs.ts', 'test/support/sqlite-template.ts'],
    sequence: { sequencer: LongestFirst },
    // Limits end tests that hang. They are long enough for a machine that is ten times slower.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // Long enough for a busy machine; not too often, because questions use the processors that the
    // answer needs.
    expect: { poll: { timeout: 300_000, interval: 100 } },
    reporters: ['default'],
  },
});
