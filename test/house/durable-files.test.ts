// Files are renamed, and written at places within them, by server/base/durable-files.ts only: a
// rename whose folder is not synced may be undone by a power failure, and a write may take a part
// of its bytes.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

/** Why each may do so itself. */
const others: Readonly<Record<string, string>> = {
  'provider/install/owned-files.ts': 'runs on a database host, and syncs the folder itself',
  'server/base/durable-files.ts': 'is the place',
  'server/cli/service/own-file.ts': 'a lock that was left: a rename that is undone leaves it once more',
  'server/base/log-file.ts': 'a rotation that is undone leaves the log under its first name',
};

test('only the helper renames files', () => {
  const found = files(['server', 'provider'], '.ts').filter((path) => {
    const text = withoutComments(read(path));
    return /\brename(Sync)?\b[^;]*from 'node:fs/.test(text);
  });
  expect(found.sort()).toEqual(Object.keys(others).sort());
});

test('each write at a place looks how many bytes were taken', () => {
  const found = files(['server'], '.ts').filter(
    (path) =>
      !path.startsWith('server/clients/web/') &&
      /await [\w.]*(handle|file)\??\.write\([^)]+,[^)]+\)/.test(withoutComments(read(path))),
  );
  expect(found).toEqual(['server/base/durable-files.ts']);
});

/** What writes durably, and the test that lets the power fail at each of its writes. */
const crashTests: Readonly<Record<string, string>> = {
  'server/app/host/backup-requests.ts': 'test/unit/operations/service-backup.test.ts',
  'server/app/tls/own-certificate.ts': 'test/unit/base/crash-writes.test.ts',
  'server/app/host/create-backup.ts': 'test/unit/operations/service-backup.test.ts',
  'server/app/open/instance-lock.ts': 'test/unit/base/crash-writes.test.ts',
  // `dke store migrate`, before anything uses the copy; the record of a restore: the test of its
  // file.
  'server/app/host/offline.ts': 'test/unit/store/node-state-crash.test.ts',
  'server/app/host/next-certificate.ts': 'test/unit/base/crash-writes.test.ts',
  'server/app/host/restore-backup.ts': 'test/unit/operations/service-backup.test.ts',
  'server/app/host/restore-journal.ts': 'test/unit/operations/service-backup.test.ts',
  'server/app/open/storage.ts': 'test/unit/base/crash-writes.test.ts',
  'server/base/disk-files.ts': 'test/scenario/struck-server.test.ts',
  'server/cli/terminal/secret-files.ts': 'test/unit/base/crash-writes.test.ts',
  'server/cli/service/own-file.ts': 'test/unit/base/crash-writes.test.ts',
  // A token that was not written is printed; a start that is cut off there makes another one.
  'server/app/process.ts': 'test/scenario/struck-server.test.ts',
  'server/adapters/roots/durable-files.ts': 'test/scenario/struck-server.test.ts',
  'server/adapters/roots/receipts.ts': 'test/unit/base/crash-writes.test.ts',
  'server/adapters/roots/wrapped-file.ts': 'test/unit/roots/cut-off.test.ts',
  'server/adapters/sinks/file.ts': 'test/unit/base/crash-writes.test.ts',
  'server/adapters/archives/archive.ts': 'test/scenario/struck-server.test.ts',
  'server/adapters/archives/backup-file.ts': 'test/unit/operations/service-backup.test.ts',
  'server/adapters/store/node-state.ts': 'test/unit/store/node-state-crash.test.ts',
  'server/adapters/store/engine/sqlite/sqlite-engine.ts': 'test/scenario/struck-server.test.ts',
  'server/adapters/store/engine/sqlite/own-file.ts': 'test/unit/base/crash-writes.test.ts',
};

test('each durable write has a test of a crash at it', () => {
  const writes = /\b(replaceFile|writeDurably|putInPlace(Soon)?|removeDurably|fsyncSync|fdatasync|datasync|sync)\(/;
  const found = files(['server'], '.ts').filter((path) => {
    const text = withoutComments(read(path));
    return (
      !['server/base/durable-files.ts', 'server/base/log-file.ts'].includes(path) &&
      !path.startsWith('server/clients/web/') &&
      /durable-files|node:fs/.test(text) &&
      writes.test(text)
    );
  });
  expect(found.sort()).toEqual(Object.keys(crashTests).sort());
  const without = [...new Set(Object.values(crashTests))].filter(
    (path) => !/crashPoints\(|struck|a crash|cut off/.test(read(path)),
  );
  expect(without).toEqual([]);
});
