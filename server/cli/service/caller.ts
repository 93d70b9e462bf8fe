// What every command that calls the service is given: a client, an output, and a way from names to
// identifiers. Where the service is and which token is used comes from options or the environment,
// never from a command line's secrets.

import { fstatSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import type { Command } from 'commander';
import { command } from '../../base/command-line.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { Operation } from '../../clients/typescript/operation.ts';
import type { PendingNodes } from '../../clients/typescript/send.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { type Output, type OutputFormat, secretExists, showingSecret, standardOutput } from '../terminal/output.ts';
import { readFile, readSecretFile, reserveSecretFile } from '../terminal/secret-files.ts';
import { type Address, type ApiClient, openClient } from './api-client.ts';
import { asMayExist, parseSecretAnswer } from './secret-answer.ts';
import { sessionHeaders } from './session-file.ts';

export interface GlobalOptions {
  readonly server: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  readonly tenant?: string;
  readonly context?: string;
  readonly output: OutputFormat;
  readonly timeout?: number;
}

export interface Caller extends ApiClient {
  readonly output: Output;
  /** What --tenant names. */
  readonly tenant: string | undefined;
  /** What --timeout says. */
  readonly timeoutMs: number | undefined;
  /** The authority that the command trusts, PEM; undefined: those of the system. */
  readonly authority: Buffer | undefined;
  /** The identifier of what is named; an identifier goes through as it is. */
  resolve(kind: Nameable, text: string): Promise<string>;
}

interface NameableList {
  readonly row: Operation<object, { readonly items: readonly Named[] }>;
  readonly noun: string;
  readonly what: string;
  /** The state in which another may have the name; `deleted` when absent. */
  readonly gone?: string;
}

/**
 * What can be named instead of giving an id, by the word of a command's argument or option: lists
 * whose items have an id and a name, and the command that lists them.
 */
const nameable = {
  vault: { row: operations.vaults.list, noun: 'vault', what: 'vault' },
  key: { row: operations.keys.list, noun: 'key', what: 'key' },
  group: { row: operations.tdeGroups.list, noun: 'tde group', what: 'TDE group' },
  application: { row: operations.applications.list, noun: 'tde app', what: 'TDE application' },
  endpoint: { row: operations.endpoints.list, noun: 'endpoint', what: 'endpoint' },
  'key-store': { row: operations.externalKeyStores.list, noun: 'key-store', what: 'external key store' },
  token: { row: operations.tokens.list, noun: 'token', what: 'token' },
  user: { row: operations.users.list, noun: 'user', what: 'user' },
  tenant: { row: operations.tenants.list, noun: 'tenant', what: 'tenant', gone: 'purged' },
  node: { row: operations.nodes.list, noun: 'node', what: 'node', gone: 'removed' },
} as const satisfies Record<string, NameableList>;
export type Nameable = keyof typeof nameable;
export const nameableOf = (word: string): Nameable | undefined =>
  Object.hasOwn(nameable, word) ? (word as Nameable) : undefined;

interface Named {
  readonly id: string;
  readonly name: string;
  readonly state?: string;
}

const isIdentifier = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text);

export const checkUrl = (text: string): string => {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' || url.username !== '' || url.pathname !== '/')
    throw new CommandError('config', `${text} is not an address of the service`, {
      hint: 'set --server (or DKE_SERVER) to https://HOST or https://HOST:PORT',
    });
  return url.origin;
};

export const addressOf = ({ server, caFile, timeout }: GlobalOptions): Address => ({
  url: checkUrl(server),
  ca:
    caFile === undefined
      ? undefined
      : readFile(caFile, 'pass --ca-file (or DKE_CA_FILE) with the certificate of a trusted authority'),
  timeoutMs: timeout === undefined ? undefined : timeout * 1000,
});

const readToken = (path: string | undefined): string => {
  if (path === undefined)
    throw new CommandError('denied', 'not signed in', {
      hint: 'run dke login, or pass --token-file (or DKE_TOKEN_FILE) with a file of mode 600 that contains a token; - reads standard input',
    });
  const bytes = readSecretFile(path);
  const token = bytes.toString('latin1').trim();
  bytes.fill(0);
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CommandError('denied', `${path} does not contain exactly one token`);
  return token;
};

const findByName = async (client: ApiClient, kind: Nameable, name: string): Promise<string> => {
  const { row, noun, what, gone = 'deleted' }: NameableList = nameable[kind];
  const all = await client.every(row);
  const found = all.filter((item) => item.name === name.normalize('NFC') && item.state !== gone);
  const [only, ...others] = found;
  if (only === undefined)
    throw new CommandError('not-found', `there is no ${what} named ${name}`, {
      hint: `run dke ${noun} list; names are case-sensitive`,
    });
  if (others.length > 0)
    throw new CommandError('config', `${found.length} are named ${name}`, {
      hint: `use one of the ids ${found.map(({ id }) => id).join(', ')}`,
    });
  return only.id;
};

/** To standard error, whatever the format. */
const printPending = ({ names, until }: PendingNodes): void => {
  const [who, they] = names.length === 1 ? ['a node has', 'it'] : [`${names.length} nodes have`, 'they'];
  process.stderr.write(
    `dke: the change was made, but ${who} not confirmed it: ${names.join(', ')}\n` +
      `  Until ${they} confirm${they === 'it' ? 's' : ''} it, ${they} may still use the old state${until === null ? ', without a time limit' : `, until ${until} at the latest`}: ${command`dke node show ${names[0] ?? 'NAME'}`}\n`,
  );
};

/** Throws CommandError when what was given cannot lead to a service. */
export const openCaller = (options: GlobalOptions): Caller => {
  let token: string | undefined;
  const address = addressOf(options);
  const client = openClient({
    ...address,
    credential: () => {
      // Who has signed in (dke login) needs no token; who names one means it.
      const session = options.tokenFile === undefined ? sessionHeaders(address.url) : undefined;
      if (session !== undefined) return session;
      token ??= readToken(options.tokenFile);
      return { authorization: `Bearer ${token}` };
    },
    tenant: options.tenant,
    onPending: printPending,
  });
  return {
    output: standardOutput(options.output),
    tenant: options.tenant,
    timeoutMs: address.timeoutMs,
    authority: address.ca,
    ...client,
    resolve: async (kind, text) => (isIdentifier(text) ? text : findByName(client, kind, text)),
  };
};

/** The output of a command that calls no service. */
export const outputOf = (command: Command): Output => standardOutput(command.optsWithGlobals<GlobalOptions>().output);

export interface SecretTarget {
  readonly out?: string | undefined;
  readonly force?: boolean | undefined;
}

export interface SecretAnswer {
  /** What may be shown in any case. */
  readonly shown: object;
  /** What is shown next to it when no file is named; the file itself when absent. */
  readonly secret?: object;
  /** What is in the file. Bytes are wiped in the end. */
  readonly file: string | Uint8Array;
}

export interface SecretSource<A> {
  /** Shows the secret once; absent: it is made on this host. */
  readonly operation?: Operation;
  /** What is asked for has no secret. */
  readonly none?: boolean;
  readonly ask: () => Promise<A>;
  readonly read: (answer: A) => SecretAnswer | Promise<SecretAnswer>;
}

/** A shell's `>&-` too: Node opens /dev/null where a descriptor is closed. */
const takesNothing = (): boolean => fstatSync(1).rdev === statSync(devNull).rdev;

/** Calls, and parses the answer. What fails once something may have been created says so. */
const askForSecret = async <A>({ operation, none, ask, read }: SecretSource<A>): Promise<SecretAnswer> => {
  if (operation === undefined) return read(await ask());
  const answer = await ask().catch((error: unknown) => {
    throw error instanceof CommandError && !error.mayBeDone ? error : asMayExist(error);
  });
  try {
    return await read(parseSecretAnswer(operation, answer, none));
  } catch (error) {
    if (answer instanceof Uint8Array) answer.fill(0);
    throw asMayExist(error);
  }
};

/** Asks for something that is shown once, and shows it or writes it into the named file. */
export const showSecret = async <A>(
  output: Output,
  { out, force = false }: SecretTarget,
  source: SecretSource<A>,
): Promise<void> => {
  if (out === undefined && source.none !== true && takesNothing())
    throw new CommandError('permission', 'standard output is closed or /dev/null, and the secret would be lost', {
      hint: 'nothing was created: write the secret into a file with --out FILE',
    });
  const file = out === undefined ? undefined : reserveSecretFile(out, force);
  let answer: SecretAnswer;
  try {
    answer = await askForSecret(source);
  } catch (error) {
    file?.discard();
    throw error;
  }
  const { shown, secret, file: content } = answer;
  try {
    try {
      file?.write(content);
    } catch (error) {
      throw new CommandError('may-exist', `${out} cannot be written (${(error as NodeJS.ErrnoException).code})`, {
        hint: secretExists,
      });
    }
    showingSecret(file === undefined);
    if (file !== undefined) output.record({ ...shown, file: out });
    else if (secret !== undefined) output.record({ ...shown, ...secret });
    else output.bytes(typeof content === 'string' ? Buffer.from(content) : content);
  } finally {
    if (typeof content !== 'string') content.fill(0);
  }
};
