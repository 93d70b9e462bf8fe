// Test files that a run on PostgreSQL leaves out, and why: what they are about is the embedded database's files, or they bring a
// PostgreSQL of their own. Within other files, `onSqlite` of test-store.ts says so of single tests.

export const sqliteOnly: Readonly<Record<string, string>> = {
  'test/conformance/**': 'the library and the front, over the same service: the store does not matter',
  'test/house/**': 'no service runs',
  'test/native/**': 'no service runs',
  'test/scenario/bad-input-files.test.ts': 'damaged files of the embedded database',
  'test/scenario/bad-input-store.test.ts': 'a full disk, file limits and damaged rows of the embedded database',
  'test/scenario/demo.test.ts': 'the demonstration runs as it is shipped, on the embedded database',
  'test/scenario/killed-server.test.ts': 'what a killed server leaves in its files, checked on a copy of them',
  'test/scenario/nodes*.test.ts': 'PostgreSQL servers of its own',
  'test/scenario/packages.test.ts': 'what is installed, over the embedded database',
  'test/scenario/postgresql-store.test.ts': 'a PostgreSQL server of its own',
  'test/scenario/quarantine.test.ts': 'a database goes back to an older state by its files',
  'test/scenario/secrets.test.ts': "searches the embedded database's files for secrets",
  'test/scenario/server-start.test.ts': 'files of the data directory, the database among them',
  'test/scenario/store-migrate.test.ts': 'both stores at once, and a PostgreSQL server of its own',
  'test/scenario/struck-server.test.ts': 'strikes the system calls of the embedded database',
  'test/contract/request-log.test.ts': 'runs on both stores by itself, or looks into the embedded one',
  'test/contract/store.test.ts': 'runs on both stores by itself',
  'test/unit/store/**': 'parts of the embedded store, and of both',
};
