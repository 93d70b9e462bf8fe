// The jobs of the row key: what the service authenticates in its own database, and to its other
// nodes. Each job has its own key, which HKDF derives from the row key under the job's name
// (addon/labels.ts), so no value of one job is ever one of another, whatever its text is.

export const rowJobs = [
  'dke row codes 1',
  'dke row set elements 1',
  'dke row set masks 1',
  'dke row set heads 1',
  'dke node changes 1',
  'dke request ids 1',
  'dke request contents 1',
  'dke removed requests 1',
  'dke own probes 1',
] as const;

/**
 * `earlier`: the row key itself, under which everything was written before jobs had keys of their
 * own. Only what is stored is read with it; new values are written under the key of their job.
 */
export type RowJob = (typeof rowJobs)[number] | 'earlier';

/** Computes the authentication code of a text for a job: 64 hexadecimal digits. */
export type RowAuthenticator = (text: string, job: RowJob) => string;
