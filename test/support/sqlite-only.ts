// Test files that a run on PostgreSQL leaves out, and why. Within other files, `onSqlite` of test-store.ts says so of single tests.

const noService = 'no service runs';

/** What is about the embedded database's files, or has nothing to do with a store, or brings a PostgreSQL of its own. */
export const sqliteOnly: Readonly<Record<string, string>> = {
  'test/conformance/**': 'the library and the front, over the same service: the store does not matter',
  'test/contract/{columns,database-writer,search,store}.test.ts': 'runs on both stores by itself',
  'test/contract/request-log.test.ts': 'runs on both stores by itself, or looks into the embedded one',
  'test/house/**': noService,
  'test/native/**': noService,
  'test/scenario/bad-input-files.test.ts': 'damaged files of the embedded database',
  'test/scenario/bad-input-store.test.ts': 'a full disk, file limits and damaged rows of the embedded database',
  'test/scenario/corrupt-bytes.test.ts': 'damaged files of the embedded database',
  'test/scenario/deleted-database.test.ts': 'the file of the embedded database',
  'test/scenario/demo.test.ts': 'the demonstration runs as it is shipped, on the embedded database',
  'test/scenario/fuzz.test.ts': noService,
  'test/scenario/hung-disk.test.ts': "the disk of the embedded database's files",
  'test/scenario/killed-server.test.ts': 'what a killed server leaves in its files, checked on a copy of them',
  'test/scenario/nodes*.test.ts': 'PostgreSQL servers of its own',
  'test/scenario/packages.test.ts': 'what is installed, over the embedded database',
  'test/scenario/postgresql-store.test.ts': 'a PostgreSQL server of its own',
  'test/scenario/quarantine.test.ts': 'a database goes back to an older state by its files',
  'test/scenario/secrets.test.ts': "searches the embedded database's files for secrets",
  'test/scenario/server-start.test.ts': 'files of the data directory, the database among them',
  'test/scenario/small-disk.test.ts': "a full disk under the embedded database's files",
  'test/scenario/store-migrate.test.ts': 'both stores at once, and a PostgreSQL server of its own',
  'test/scenario/struck-server.test.ts': 'strikes the system calls of the embedded database',
  'test/unit/{addon,api,base,cli,codec,config,domain,roots,web,xks}/**': noService,
  'test/unit/operations/{authorization-rules,base,endpoint-checks}.test.ts': noService,
  'test/unit/operations/request-minutes.test.ts': 'runs on both stores by itself, or looks into the embedded one',
  'test/unit/snapshots/{file,format}.test.ts': noService,
  'test/unit/store/**': 'parts of the embedded store, and of both',
};

/** What a run on `both` leaves out, and `npm run test:postgresql` runs: it comes to the store through operations that run on both. */
export const whenAsked: Readonly<Record<string, string>> = {
  'test/clients/**': 'clients of the library',
  'test/contract/insider-*.test.ts': 'who may do what is decided above the store',
  'test/contract/spoilt-rows.test.ts': 'what is made of odd values in a row, which the repositories read alike',
  'test/databases/**': 'databases over the library',
  'test/scenario/**': 'whole processes',
  'test/tde/**': 'databases over the library',
  'test/unit/agent/**': 'the agent',
  'test/unit/operations/audit-log.test.ts': 'ten thousand records',
  'test/unit/operations/token-keys.test.ts': 'cryptography with keys of the token',
  'test/unit/snapshots/histories.test.ts': 'random histories, which the embedded store runs',
};
