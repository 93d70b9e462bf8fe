// Why the server cannot start or continue, with the exit code of its class. The message is one line that says what is wrong
// and what to do.

export const exitCodes = {
  internal: 1, // a fault of ours
  config: 2, // the configuration file or a command line argument
  permission: 3, // a file or directory has the wrong owner or mode, or cannot be read or written
  listen: 4, // the port is in use or may not be opened
  store: 5, // the database is damaged, locked by another server, newer, or its disk failed
  'root-key': 6, // the root key is missing, damaged, or of another store
  memory: 7, // not enough locked memory for keys
} as const;

export type StartErrorClass = keyof typeof exitCodes;

export class StartError extends Error {
  override readonly name = 'StartError';
  readonly class: StartErrorClass;
  constructor(errorClass: StartErrorClass, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.class = errorClass;
  }
  get exitCode(): number {
    return exitCodes[this.class];
  }
}
