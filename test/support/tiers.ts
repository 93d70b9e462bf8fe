// Which tests run where. `npm test` is the short tier: everything that a change must pass. `npm run test:long` (SLOW=1) runs everything in
// full size, and `npm run test:postgresql` every operation on PostgreSQL. What the short tier leaves out or makes smaller is listed here
// and nowhere else, with its reason: no rule loses its only test in the short tier.

export const isLong = process.env.SLOW === '1';

const noService = 'no service runs';

/** Test files that no run on PostgreSQL includes. Within other files, `onSqlite` of test-store.ts marks single tests. */
export const sqliteOnly: Readonly<Record<string, string>> = {
  'test/conformance/**': 'the library and the front, over the same service: the store does not matter',
  'test/contract/{columns,database-writer,released-schemas,released-services,search,store}.test.ts':
    'runs on both stores on its own',
  'test/contract/request-log.test.ts': 'runs on both stores on its own, or reads the embedded one',
  'test/house/**': noService,
  'test/native/**': noService,
  'test/scenario/aarch64.test.ts': 'the build, over the embedded database',
  'test/scenario/bad-input-files.test.ts': 'damaged files of the embedded database',
  'test/scenario/bad-input-store.test.ts': 'a full disk, file limits and damaged rows of the embedded database',
  'test/scenario/container.test.ts': 'the image, over the embedded database',
  'test/scenario/corrupt-bytes.test.ts': 'damaged files of the embedded database',
  'test/scenario/deleted-database.test.ts': 'the file of the embedded database',
  'test/scenario/locked-database.test.ts': 'a lock on the file of the embedded database',
  'test/scenario/demo.test.ts': 'the demonstration runs as it is shipped, on the embedded database',
  'test/scenario/event-loop.test.ts':
    'long tables of the embedded database, whose statements run in the thread that answers requests',
  'test/scenario/first-commands.test.ts': 'an installation, over the embedded database',
  'test/scenario/fuzz.test.ts': noService,
  'test/scenario/doctor-is-start*.test.ts': 'both stores, each broken in turn',
  'test/scenario/game-day.test.ts': "the embedded database's files",
  'test/scenario/installed-host.test.ts': 'an installation, over the embedded database',
  'test/scenario/hung-disk.test.ts': "the disk of the embedded database's files",
  'test/scenario/killed-server.test.ts': 'the files of a killed server, checked on a copy',
  'test/scenario/nodes*.test.ts': 'PostgreSQL servers of its own',
  'test/scenario/operations-page.test.ts': 'the commands of a page, on the embedded database as it says',
  'test/scenario/old-system.test.ts': 'an installation, over the embedded database',
  'test/scenario/packages.test.ts': 'an installation, over the embedded database',
  'test/scenario/postgresql-store.test.ts': 'a PostgreSQL server of its own',
  'test/scenario/release.test.ts': 'the build: no service runs',
  'test/scenario/quarantine.test.ts': 'a database goes back to an older state by its files',
  'test/scenario/secrets.test.ts': "searches the embedded database's files for secrets",
  'test/scenario/server-start.test.ts': 'files of the data directory, the database among them',
  'test/scenario/small-disk.test.ts': "a full disk under the embedded database's files",
  'test/scenario/stops.test.ts': 'databases of its own',
  'test/scenario/store-migrate.test.ts': 'both stores at once, and a PostgreSQL server of its own',
  'test/scenario/struck-server.test.ts': 'strikes the system calls of the embedded database',
  'test/unit/{addon,api,base,cli,codec,config,domain,roots,web,xks}/**': noService,
  'test/unit/operations/{authorization-rules,base,endpoint-checks}.test.ts': noService,
  'test/unit/operations/compare-written.test.ts': 'records that only the embedded store compares',
  'test/unit/operations/request-minutes.test.ts': 'runs on both stores on its own, or reads the embedded one',
  'test/unit/snapshots/{file,format}.test.ts': noService,
  'test/unit/store/**': 'parts of the embedded store, and of both',
};

/**
 * Tests that a run on `both` repeats on PostgreSQL: operations whose result depends on how the database itself decides (constraints, locks,
 * order, search, plans). All others reach it through the same repositories, which test/contract/store.test.ts runs on both stores, and
 * test/scenario/nodes*.test.ts runs whole services on PostgreSQL.
 */
export const alsoOnPostgresql: readonly string[] = [
  'test/contract/{concurrency,deadline-clock,list-plans,orderly-client,service}.test.ts',
  'test/unit/operations/{approvals,idempotency,key-tags,labels,master-keys,migrations}.test.ts',
  'test/unit/operations/{notifications,people,preconditions,search,tde-once,tokens,xks-latency}.test.ts',
  'test/unit/snapshots/{dual-control,owned,restore,same-values}.test.ts',
];

/** Test files of the long tier only, with the tests that keep their rules in the short tier. */
export const longFiles: Readonly<Record<string, string>> = {
  'test/scenario/aarch64.test.ts':
    'compiles for another machine, builds packages and runs them in an emulator; the same on this one: scenario/packages',
  'test/scenario/fuzz.test.ts':
    'builds everything again with sanitizers; the same inputs: test/unit/addon/frame-fuzz, scenario/agent-frames, unit/agent/any-template',
  'test/conformance/reference-p11-kit-client.test.ts':
    'the reference cases over p11-kit: conformance/reference-p11-kit-server',
  'test/databases/hsqldb.test.ts': 'a second database over the same provider, and the same rules: databases/derby',
  'test/scenario/first-commands.test.ts':
    'creates a Debian system and builds packages; the test of each block of each page: house/page-commands',
  'test/scenario/command-adversity.test.ts':
    'some thousand runs of commands; each situation for some of them: scenario/told-failures, first-commands and login',
  'test/scenario/chaos.test.ts':
    'attacks one after the other beside steady calls; each of them alone: unit/listener, scenario/{listener,foreign-disks,bad-input-requests}',
  'test/scenario/concurrency.test.ts':
    'sixteen processes for a while; the same with fewer: scenario/agent-under-load, scenario/threads',
  'test/scenario/container.test.ts':
    'builds the container image twice and runs it; its settings, and those in the manifests: house/deployments',
  'test/scenario/installed-host.test.ts':
    'boots a Debian with systemd and builds packages; the same commands, with the unit as a script: scenario/operations-page',
  'test/scenario/nodes-under-fire.test.ts':
    'load for minutes; one disturbance at a time: scenario/nodes, nodes-creates, nodes-duties, nodes-lost-changes, postgresql-store',
  'test/scenario/old-system.test.ts':
    'needs an older release from Debian and builds packages; symbols of everything that is shipped: house/shipped-binaries',
  'test/scenario/packages.test.ts':
    'builds packages of both kinds; what they install: scenario/provider-install and house/server-unit',
  'test/scenario/release.test.ts':
    'builds a package with gpg and apt, which not every machine has; what a build contains: scenario/packages',
  'test/scenario/small-disk.test.ts':
    'a disk of each size; a disk that is full: scenario/bad-input-store and scenario/struck-server',
  'test/scenario/stops.test.ts':
    'servers in ten states, each until it has ended; a stop in one of them: scenario/{foreign-disks,hung-disk,postgresql-store,audit-sinks}',
  'test/scenario/stress.test.ts':
    'a part of npm run stress; wrong answers and lost keys: scenario/threads, agent-under-load, agent-restart, conformance/reference',
};

/** Single tests of the long tier only, with the tests that keep their rules in the short tier. Tests call `inLongTier`. */
const longTests = {
  'conformance/large-data: each length':
    'three of seven lengths and one of three overlaps are in the short tier: below, at and above what one message carries',
  'clients, tde, databases/jce, conformance/reference: SoftHSM2':
    'the same programs on the reference token, which no change of ours changes: it shows that the expected values are those of others',
  'contract/insider-matrix: each reach with and without dual control':
    'the short tier has every role, in the whole platform without dual control and in a tenant with it',
  'databases/mariadb-instances: versions of data keys':
    'many restarts of MariaDB; versions of a key file: test/native/mariadb/key-file-test, rotations: databases/mariadb',
  'databases/derby: an agent that is killed': 'the same provider under load while the agent is killed: databases/jce',
  'scenario/game-day: MariaDB and slow faults':
    'minutes, until the jobs of each minute have noticed; one fault at a time: scenario/small-disk, clock-jumps, clock-deadlines, root-backup, deleted-database, databases/mariadb',
  'operations/cut-off-operations: PostgreSQL':
    'hundreds of databases, each dumped and loaded; the same operations on the embedded database are in the short tier',
  'scenario/hung-disk: PostgreSQL':
    'a PostgreSQL that does not answer: scenario/postgresql-store and nodes-unconfirmed; the embedded database is in the short tier',
  'scenario/keys-in-memory: core dumps':
    'writes and searches dumps of some hundred MiB; the same memory, read from the living process, is searched in the short tier',
  'scenario/root-providers: a library that hangs':
    'a library that crashes is in the short tier; what does not answer is ended in the same place',
  'tde/template-family: every combination':
    'thousands of templates for a master key and its metadata; any two values together, and all that are known to be dangerous, are in the short tier',
  'tde/many-containers: 1,000 pluggable databases':
    'minutes of statements, one after the other; 300 pluggable databases are in the short tier',
  'scenario/wire-model: full bounds':
    'two minutes of CPU for a model that no change of code changes: smaller bounds and the defects that show within them are in the short tier',
} as const satisfies Readonly<Record<string, string>>;

/** Whether tests that are listed above run. */
export const inLongTier = (_: keyof typeof longTests): boolean => isLong;

/** Sizes of searches, random histories and sweeps: [short, long], with the unit. */
const sizes = {
  'aborted uploads': [24, 1_000, 'uploads over HTTP/2 of each kind that end abruptly'],
  'agent frames': [10_000, 100_000, 'damaged frames to an agent'],
  'attack search': [2_500, 100_000, 'sequences of calls that try to read a key'],
  'attack search on the token': [40, 4_000, 'sequences with keys of the token'],
  'audit log batches': [4, 40, 'batches of 250 records of an audit log'],
  'changed bytes of each file': [1, 8, 'services that start with one changed byte'],
  'console rows': [1_000, 100_000, 'rows of a list in the console'],
  'concurrent pairs': [20, 1, 'each Nth pair of operations that meet, on each store'],
  'console states': [9, 1, 'each Nth page is shown empty, dark, while loading, out of reach and denied'],
  'cut-off writes': [3, 1, 'each Nth write at which an operation of a service is cut off'],
  'erasure rounds': [10, 100, 'rounds of generate, create, destroy'],
  'fleet histories': [1, 100, 'random histories of nodes with faults and failovers'],
  'frame fuzz': [10_000, 100_000, 'damaged frames to the frame server'],
  'hostile bodies': [3, 1, 'each Nth body that is not valid is sent to the operations of the console'],
  'insider sequences': [1, 40, 'walks of 250 steps'],
  'kills in an erasure run': [4, 6, 'moments of a run at which a node is killed'],
  'kills of a server': [2, 20, 'kills in each of two workloads'],
  'pairs with files': [6, 1, 'each Nth pair in which an adversary brings a file'],
  'replayed calls': [40, 10_000, 'sequences of calls that the agent plans itself'],
  'signature properties': [20, 2_000, 'signed requests for each property'],
  'snapshot bytes': [20, 1, 'each Nth byte of a snapshot is changed, and each Nth length is cut'],
  'snapshot histories': [10, 1_000, 'random histories of a tenant'],
  'rows on PostgreSQL': [
    4,
    1,
    'each Nth table whose old rows are put back in PostgreSQL, too; on the embedded database each',
  ],
  'swapped columns': [1, 100, 'other columns whose value is put into each one'],
  'strikes at a server': [1, 3, 'system calls that are struck, of each operation'],
  templates: [300, 50_000, 'random templates of each call'],
  'swapped values': [60, 2000, 'values that are swapped in a snapshot, spread evenly over all of them'],
  'spoilt backups': [12, 200, 'rows that are changed in a backup'],
  'spoilt rows': [40, 200, 'rows that are changed in the database while everything is tried'],
  'wrapping kills': [2, 5, 'kills while keys are wrapped'],
} as const satisfies Readonly<Record<string, readonly [short: number, long: number, what: string]>>;

export const sizeOf = (search: keyof typeof sizes): number => sizes[search][isLong ? 1 : 0];
