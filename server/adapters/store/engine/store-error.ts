// What can be wrong with the store as a whole. Errors of single statements become ServiceError;
// these stop the process.

export type StoreErrorCode =
  | 'corrupt' // the file is not a database of ours, or its structure is broken
  | 'io' // reading, writing or syncing failed: nothing that was written since is certain
  | 'newer' // the schema was written by a newer version of this program
  | 'unreleased' // the schema is of a development version from before the first release
  | 'open'; // the file cannot be opened

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;
  /** What was found, and what to do: where they are told apart (base/start-error.ts). */
  readonly evidence: string;
  readonly fix: string | undefined;
  constructor(
    code: StoreErrorCode,
    evidence: string,
    options: { readonly cause?: unknown; readonly fix?: string | undefined } = {},
  ) {
    super(options.fix === undefined ? evidence : `${evidence}: ${options.fix}`, { cause: options.cause });
    this.code = code;
    this.evidence = evidence;
    this.fix = options.fix;
  }
}
