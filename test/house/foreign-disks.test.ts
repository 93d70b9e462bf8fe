// Who may use files while others wait: a synchronous call waits for the disk, and so does every
// request. Files outside the data directory are used through server/app/disks.ts while the service
// runs. What is in this list runs at the start, offline, in a process or thread of its own, or on
// the data directory.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const others: Readonly<Record<string, string>> = {
  'server/app/certificates.ts': 'at the start: whether there is a certificate, and the own one in the data directory',
  'server/app/disks.ts': 'at the start: where the program is, and which disk a path is on',
  'server/app/fronts.ts': 'at the start: the pages and the document of the API, which are installed',
  'server/app/instance-lock.ts': 'at the start: the data directory',
  'server/app/offline.ts': 'offline commands',
  'server/app/renew-certificate.ts': 'an offline command',
  'server/app/root.ts': 'at the start: a descriptor with a passphrase',
  'server/app/backup-requests.ts': 'the data directory',
  'server/app/create-backup.ts': 'a command, and at the start',
  'server/app/restore-backup.ts': 'an offline command',
  'server/app/restore-journal.ts': 'an offline command',
  'server/app/storage.ts': 'at the start: the data directory, the password of the database and its authorities',
  'server/app/start-checks.ts': 'at the start, and in the doctor',
  'server/app/start-errors.ts': 'when a start has failed, and in the doctor',
  'server/app/opening-checks.ts': 'in the doctor',
  'server/app/host-checks.ts': 'in the doctor',
  'server/app/tls-files.ts': 'at the start, and in the process of the disk',
  'server/app/observation.ts': 'at the start: the authorities of the receiver',
  'server/base/durable-files.ts': 'what others call; in the process of the disk while the service runs',
  'server/config/check-file.ts': 'at the start, and in the process of the disk',
  'server/config/config.ts': 'at the start: dke.toml',
  'server/content/copy.ts': 'in the build',
  'server/content/runbooks.ts': 'at the start: installed files',
  'server/fronts/api/write-openapi.ts': 'in the build',
  'server/fronts/shared/static-files.ts': 'at the start: installed files',
  'server/client/generate.ts': 'in the build',
  'server/log-file.ts': 'the log, which is written without waiting for its disk',
  'server/main.ts': 'at the start: the version, and the first token',
  'server/native/host-facts.ts': 'at the start: facts of the system',
  'server/native/process-facts.ts': '/proc of this process',
  'server/open-logs.ts': 'at the start and at SIGHUP: the log',
  'server/roots/backup.ts': 'offline commands',
  'server/roots/file.ts':
    'the root key, which only the addon reads and writes: at the start, in erasure runs, and behind a call to its disk',
  'server/roots/files.ts': 'the same',
  'server/roots/hardware.ts': 'at the start: where the program is',
  'server/roots/open.ts': 'at the start',
  'server/roots/receipts.ts': 'the data directory, and the folder of the root key',
  'server/roots/ways.ts': 'at the start',
  'server/roots/wrapped-file.ts': 'the root key, as in roots/file.ts',
  'server/roots/wrapped-root.ts': 'the root key, as in roots/file.ts',
  'server/sinks/file.ts': 'in the process of the disk',
  'server/snapshots/archive.ts': 'at the start: the folder',
};
/** Folders that the rule does not cover: the data directory, the command, and separate programs. */
const elsewhere = /^server\/(store|cli|web|diagnostics|cloud-simulator|client|bundle|packages)\//;

/**
 * Asynchronous calls wait in one of four threads of the process: four files of a disk that hangs
 * end all others.
 */
const threads: Readonly<Record<string, string>> = {
  'server/base/disk-files.ts': 'in the process of the disk, in commands, and in the data directory',
  'server/base/durable-files.ts': 'in commands, and in the data directory',
  'server/app/restore-backup.ts': 'an offline command',
  'server/log-file.ts': 'the log, with one write at a time',
  'server/native/disk-space.ts': 'one place at a time: at most one thread waits',
  'server/packages/directory.ts': 'installed files',
  'server/snapshots/backup-file.ts': 'commands',
};

test('the threads of the process wait for no foreign disk either', () => {
  const found = files(['server'], '.ts').filter(
    (path) =>
      !elsewhere.test(path.replace('server/packages/', 'server/own/')) &&
      /from 'node:fs\/promises'|\bcreate(?:Read|Write)Stream\b[^;]*from 'node:fs'|\bpromises\b[^;]*from 'node:fs'/.test(
        withoutComments(read(path)),
      ),
  );
  expect(found.filter((path) => threads[path] === undefined)).toEqual([]);
  expect(Object.keys(threads).filter((path) => !found.includes(path))).toEqual([]);
});

test('files outside the data directory are not waited for by those who serve', () => {
  const found = files(['server'], '.ts').filter(
    (path) => !elsewhere.test(path) && /\b\w+Sync\b[^;]*from 'node:fs'/.test(withoutComments(read(path))),
  );
  expect(found.filter((path) => others[path] === undefined)).toEqual([]);
  expect(Object.keys(others).filter((path) => !found.includes(path) && !elsewhere.test(path))).toEqual([]);
});
