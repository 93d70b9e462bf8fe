// Why the server cannot start or continue, with the exit code of its class. The message is one line
// that says what is wrong and what to do.

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
  /** What was found. */
  readonly evidence: string;
  /** What to do, where it is told apart from what was found; a command if one is enough. */
  readonly fix: string | undefined;
  constructor(
    errorClass: StartErrorClass,
    evidence: string,
    options: { readonly cause?: unknown; readonly fix?: string | undefined } = {},
  ) {
    super(options.fix === undefined ? evidence : `${evidence}: ${options.fix}`, { cause: options.cause });
    this.class = errorClass;
    this.evidence = evidence;
    this.fix = options.fix;
  }
  get exitCode(): number {
    return exitCodes[this.class];
  }
}

/** What the system calls a failure, in the words of an operator. */
const faults: Readonly<Record<string, readonly [StartErrorClass, string]>> = {
  EACCES: ['permission', 'permission denied: run it as the user whose file this is'],
  EPERM: ['permission', 'not permitted: run it as the user whose file this is'],
  EROFS: ['permission', 'the file system is read-only'],
  ENOSPC: ['permission', 'the disk is full: make space, then run it again'],
  EDQUOT: ['permission', 'the disk quota is used up: make space, then run it again'],
  EIO: ['permission', 'the disk failed'],
  EMFILE: ['permission', 'too many open files: raise LimitNOFILE or ulimit -n'],
  ENFILE: ['permission', 'too many open files on this host'],
  ENOENT: ['config', 'it does not exist'],
  EISDIR: ['config', 'it is a directory, and a file is needed'],
  ENOTDIR: ['config', 'a part of the path is not a directory'],
  ENAMETOOLONG: ['config', 'the name is too long'],
  ELOOP: ['config', 'a symbolic link leads back to itself'],
};

/**
 * Any error as one that is told, in one line without a stack. What the system says of a file has
 * the class of its reason; anything else is a fault of ours, and DKE_DEBUG=1 shows where. `place`:
 * where it was, if the system does not say.
 */
export const toldError = (error: unknown, place?: string): StartError => {
  if (error instanceof StartError) return error;
  const failure: NodeJS.ErrnoException = error instanceof Error ? error : new Error(String(error));
  const { code = '', message, stack, syscall = 'a file' } = failure;
  // A socket has an address; an open file that is written or read has no name.
  const { path = place, address = path } = failure as { readonly path?: string; readonly address?: string };
  const fault = faults[code];
  if (fault !== undefined) {
    const [errorClass, why] = fault;
    return new StartError(errorClass, `${address ?? syscall}: ${why} (${code})`, { cause: error });
  }
  const line = message.split('\n')[0] ?? '';
  return new StartError(
    'internal',
    process.env.DKE_DEBUG === '1'
      ? (stack ?? line)
      : `unexpected: ${line}; report it with what DKE_DEBUG=1 in the environment shows`,
    { cause: error },
  );
};
