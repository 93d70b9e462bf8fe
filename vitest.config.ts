import { join } from 'node:path';
import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { LongestFirst } from './test/support/sequencer.ts';
import { alsoOnPostgresql, isLong, longFiles, sqliteOnly } from './test/support/tiers.ts';

/** Which database the services of a run are on: `sqlite` where nothing is said, `postgresql`, or `both`: SQLite, and some on PostgreSQL, too. */
const store = process.env.DKE_TEST_STORE ?? 'sqlite';
if (!['sqlite', 'postgresql', 'both'].includes(store))
  throw new Error(`DKE_TEST_STORE is ${store}: it is sqlite, postgresql or both`);

const all = ['test/**/*.test.ts'];
/** What the short tier leaves to the long one. */
const left = isLong ? {} : longFiles;

/**
 * Tests within one process. In `npm test`, those of a worker share its modules: loading the service for each file takes longer than most files
 * do. What a file changes of its process, it changes back. The agent's tests do not: they have a process for each file.
 */
const inProcess = [
  'test/unit/*.test.ts',
  'test/unit/!(agent)/**/*.test.ts',
  'test/contract/*.test.ts',
  'test/house/*.test.ts',
];
/**
 * Tests whose services, agents and databases are processes of their own: those of a worker share their tools. The others load the library or
 * parts of the service into their own process, and have one for each file.
 */
const loading =
  'agent-*|audit-sinks|bad-input-agent|deleted-database|erasure-rounds|host-life|keys-in-memory|nodes-marks|notifications|open-id|threads';
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
    // Those that `alsoOnPostgresql` names are tests within one process.
    isolate: store !== 'both' || isLong,
  },
};
for (const [file, why] of Object.entries(left)) console.log(`left to npm run test:long: ${file}: ${why}`);
if (store === 'postgresql')
  for (const [files, why] of Object.entries(sqliteOnly)) console.log(`left out on PostgreSQL: ${files}: ${why}`);

// Tests start some thousand Node processes, with the same programs: each is compiled once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'build/compile-cache');

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, ...Object.keys(left)],
    projects: [...(store === 'postgresql' ? [] : onSqlite), ...(store === 'sqlite' ? [] : [onPostgresql])],
    pool: 'forks',
    // Two cores: two more files run while others wait for a process, a disk or a browser.
    maxWorkers: 4,
    globalSetup: ['test/support/quick-folder.ts', 'test/support/programs.ts', 'test/support/sqlite-template.ts'],
    sequence: { sequencer: LongestFirst },
    // Limits end what hangs, and judge no speed: a machine that is ten times slower passes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // A busy machine is late: what is waited for has its time. Questions use the processors that the answer needs.
    expect: { poll: { timeout: 300_000, interval: 100 } },
    reporters: ['default'],
  },
});
