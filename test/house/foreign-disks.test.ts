// Who may use files while others wait: a synchronous call waits for the disk, and so does every
// request. Files outside the data directory are used through server/app/open/disks.ts while the
// service runs. What is in this list runs at the start, offline, in a process or thread of its own,
// or on the data directory.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const others: Readonly<Record<string, string>> = {
  'server/app/tls/own-certificate.ts':
    'at the start: whether there is a certificate, and the own one in the data directory',
  'server/app/open/disks.ts': 'at the start: where the program is, and which disk a path is on',
  'server/app/open/fronts.ts': 'at the start: the pages and the document of the API, which are installed',
  'server/app/open/instance-lock.ts': 'at the start: the data directory',
  'server/app/host/offline.ts': 'offline commands',
  'server/app/host/next-certificate.ts': 'an offline command',
  'server/app/open/root.ts': 'at the start: a descriptor with a passphrase',
  'server/app/host/backup-requests.ts': 'the data directory',
  'server/app/host/create-backup.ts': 'a command, and at the start',
  'server/app/host/restore-backup.ts': 'an offline command',
  'server/app/host/restore-journal.ts': 'an offline command',
  'server/app/open/storage.ts': 'at the start: the data directory, the password of the database and its authorities',
  'server/app/start-checks.ts': 'at the start, and in the doctor',
  'server/app/start-errors.ts': 'when a start has failed, and in the doctor',
  'server/app/open/opening-checks.ts': 'in the doctor',
  'server/app/host/host-checks.ts': 'in the doctor',
  'server/app/tls/reload-certificates.ts': 'at the start, and in the process of the disk',
  'server/app/open/observation.ts': 'at the start: the authorities of the receiver',
  'server/base/durable-files.ts': 'what others call; in the process of the disk while the service runs',
  'server/app/config/check-file.ts': 'at the start, and in the process of the disk',
  'server/app/config/config.ts': 'at the start: dke.toml',
  'server/adapters/runbooks/copy.ts': 'in the build',
  'server/adapters/runbooks/read-runbooks.ts': 'at the start: installed files',
  'server/fronts/api/write-openapi.ts': 'in the build',
  'server/fronts/shared/static-files.ts': 'at the start: installed files',
  'server/clients/typescript/generate.ts': 'in the build',
  'server/base/log-file.ts': 'the log, which is written without waiting for its disk',
  'server/app/process.ts': 'at the start: the version, and the first token',
  'server/adapters/host/host-facts.ts': 'at the start: facts of the system',
  'server/adapters/host/process-facts.ts': '/proc of this process',
  'server/app/host/root-way.ts': 'in a start that is refused, and in commands',
  'server/app/open/logs.ts': 'at the start and at SIGHUP: the log',
  'server/adapters/roots/backup.ts': 'offline commands',
  'server/adapters/roots/file-root.ts':
    'the root key, which only the addon reads and writes: at the start, in erasure runs, and behind a call to its disk',
  'server/adapters/roots/durable-files.ts': 'the same',
  'server/adapters/roots/hardware.ts': 'at the start: where the program is',
  'server/adapters/roots/open-root.ts': 'at the start',
  'server/adapters/roots/receipts.ts': 'the data directory, and the folder of the root key',
  'server/adapters/roots/unlock-ways.ts': 'at the start',
  'server/adapters/roots/wrapped-file.ts': 'the root key, as in roots/file.ts',
  'server/adapters/roots/wrapped-root.ts': 'the root key, as in roots/file.ts',
  'server/adapters/sinks/file.ts': 'in the process of the disk',
  'server/adapters/archives/archive.ts': 'at the start: the folder',
};
/** Folders that the rule does not cover: the data directory, the command, and separate programs. */
const elsewhere =
  /^server\/(?:adapters\/(?:store|diagnosis|packages)\/|app\/host\/(?:own-health|support-|unit)|cli\/|clients\/)/;

/**
 * Asynchronous calls wait in one of four threads of the process: four files of a disk that hangs
 * end all others.
 */
const threads: Readonly<Record<string, string>> = {
  'server/base/disk-files.ts': 'in the process of the disk, in commands, and in the data directory',
  'server/base/durable-files.ts': 'in commands, and in the data directory',
  'server/app/host/restore-backup.ts': 'an offline command',
  'server/base/log-file.ts': 'the log, with one write at a time',
  'server/adapters/host/disk-space.ts': 'one place at a time: at most one thread waits',
  'server/adapters/packages/package-folder.ts': 'installed files',
  'server/adapters/archives/backup-file.ts': 'commands',
};

test('the threads of the process wait for no foreign disk either', () => {
  const found = files(['server'], '.ts').filter(
    (path) =>
      !elsewhere.test(path.replace('server/adapters/packages/', 'server/own/')) &&
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
