// What is done with files outside the data directory while the service runs, one row a task: here,
// or in the process of their disk (disks.ts).

import { rootCertificates } from 'node:tls';
import { type FileSink, type FileSinkOptions, openFileSink } from '../../adapters/sinks/file.ts';
import { fileTasks } from '../../base/disk-files.ts';
import { wholeFiles } from '../../base/durable-files.ts';
import { StartError } from '../../base/start-error.ts';
import type { LogSink } from '../../ports/log-sink.ts';
import { openTlsFiles, type PairFiles, type Replacement, type TlsPlace } from '../tls/reload-certificates.ts';

type CertificateTask = readonly [
  files: readonly PairFiles[],
  place: TlsPlace,
  present: readonly string[],
  trusted: readonly string[],
];

export const diskTasks = {
  ...wholeFiles,
  ...fileTasks,
  append: (options: FileSinkOptions, ...given: Parameters<LogSink['send']>): ReturnType<LogSink['send']> =>
    openFileSink(options).send(...given),
  setAside: (options: FileSinkOptions, ...given: Parameters<FileSink['setAside']>): ReturnType<FileSink['setAside']> =>
    openFileSink(options).setAside(...given),
  /** Why the next start could not serve what is in the files, or clients would refuse it. */
  certificateFaults: async (...[files, place, present, trusted]: CertificateTask): Promise<readonly string[]> => {
    const own = openTlsFiles(files, place);
    try {
      return own.faultsOf(present, own.readPairs(), [...rootCertificates, ...trusted]);
    } catch (error) {
      if (error instanceof StartError) return [error.message];
      throw error;
    }
  },
  /** What may replace the certificates that are served. Throws StartError. */
  renewCertificates: async (...[files, place, present, trusted]: CertificateTask): Promise<Replacement> =>
    openTlsFiles(files, place).renewPairs(present, [...rootCertificates, ...trusted]),
};
export type DiskTasks = typeof diskTasks;
