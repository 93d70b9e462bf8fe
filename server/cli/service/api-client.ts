// The client of the API (server/clients/typescript) as the command uses it: one connection a call,
// because the command makes few. Failures of every kind become a CommandError.

import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { command } from '../../base/command-line.ts';
import { dnsTimeout, lookupWithin } from '../../base/name-lookup.ts';
import type { ServiceErrorCode } from '../../base/service-error.ts';
import { openCalls } from '../../clients/typescript/client.ts';
import {
  ApprovalRequired,
  ConnectionError,
  ProblemError,
  UnexpectedAnswer,
} from '../../clients/typescript/client-errors.ts';
import type { AnswerOf, BodyOf, InputOf, Operation } from '../../clients/typescript/operation.ts';
import { type Answer, mayBeDone, type PendingNodes, passing, type Settings } from '../../clients/typescript/send.ts';
import { CommandError, classOfProblem, type ErrorDetails, type ExitClass } from '../terminal/exit-codes.ts';
import { rememberAnswer, rememberAsked } from './asked.ts';

/** Values of a query come from options, as text. */
export type ApiCall<E extends Operation> = Omit<InputOf<E>, 'query'> & {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
};

export interface ApiClient {
  readonly url: string;
  /** The answer is the service's; an older or newer one may have other members. */
  call<E extends Operation>(operation: E, input?: ApiCall<E>): Promise<AnswerOf<E>>;
  /**
   * Reads, edits what was read and writes it, when it is still what was read. `edit` may be asked
   * more than once.
   */
  change<R extends Operation, W extends Operation>(
    read: R,
    write: W,
    path: Readonly<Record<string, string>>,
    edit: (before: AnswerOf<R>) => BodyOf<W> | Promise<BodyOf<W>>,
  ): Promise<AnswerOf<W>>;
  /** All items of a list, over its pages. */
  every<T>(operation: Operation<object, { readonly items: readonly T[] }>): Promise<readonly T[]>;
  /** The answer's bytes, for one that holds what may not become a string. The caller wipes them. */
  bytes<E extends Operation>(operation: E, input?: ApiCall<E>): Promise<Buffer>;
  /** Posts bytes to an address that wants no token. The caller wipes them. */
  send(path: string, body: Buffer): Promise<void>;
  /** Sends a file of `size` bytes as the body, as it is read. */
  upload<E extends Operation>(
    operation: E,
    input: Omit<ApiCall<E>, 'body'>,
    from: Readable,
    size: number,
  ): Promise<AnswerOf<E>>;
  /** Writes the answer as it comes; `into` stays open. */
  stream<E extends Operation>(operation: E, input: ApiCall<E>, into: NodeJS.WritableStream): Promise<void>;
}

/** Where the service is. */
export interface Address {
  /** `https://HOST:PORT`. */
  readonly url: string;
  /** PEM; the system's authorities when absent. */
  readonly ca: Buffer | undefined;
  /** Without an answer; undefined: as long as the route may take. */
  readonly timeoutMs: number | undefined;
}

export interface ApiClientOptions extends Address {
  /** The headers by which the service knows who calls; asked for at each call. */
  readonly credential: () => Readonly<Record<string, string>>;
  /** Id or name of the tenant to act in; the token's own, or the default one, when absent. */
  readonly tenant: string | undefined;
  /** Told of the nodes that do not show a change yet. */
  readonly onPending?: (pending: PendingNodes) => void;
}

/** What Node calls a certificate that it does not trust. */
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** What a failed call ends the command with, but for what may have been done: `commandError`. */
type Failure = readonly [exitClass: ExitClass, message: string, more?: Omit<ErrorDetails, 'mayBeDone'>];

const connectionFailure = ({ url, code }: ConnectionError): Failure => {
  if (untrusted.has(code))
    return [
      'unreachable',
      `the certificate of ${url} is not trusted`,
      {
        hint: 'pass --ca-file with the certificate of its authority; a self-signed one is tls.crt in the data directory',
      },
    ];
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return [
      'unreachable',
      `the certificate of ${url} is for another name`,
      { hint: 'use a name of the certificate in --server, or add this one to server.public_names' },
    ];
  if (code === 'CERT_HAS_EXPIRED') return ['unreachable', `the certificate of ${url} has expired`];
  if (code === dnsTimeout)
    return [
      'unreachable',
      `DNS does not answer for the name in ${url}`,
      { hint: 'check the DNS servers of this host (/etc/resolv.conf)', passes: true },
    ];
  return [
    'unreachable',
    `${url} does not answer (${code})`,
    { hint: 'check --server (or DKE_SERVER), and that the service runs', passes: passing.has(code) },
  ];
};

const problemFailure = (
  { code, detail, fields, hint, requestId, status }: ProblemError,
  otherwise: ExitHint,
): Failure => {
  const exitClass = classOfProblem[code as ServiceErrorCode] ?? otherwise.exitClass ?? 'internal';
  return [
    exitClass,
    [detail, ...fields.map(({ path, message }) => `${path}: ${message}`)].join('\n  '),
    {
      hint:
        hint ??
        otherwise.hint ??
        (exitClass === 'denied' ? 'check the token in --token-file (or DKE_TOKEN_FILE)' : undefined),
      requestId,
      code: code as ServiceErrorCode,
      passes: passingStatus.has(status),
    },
  ];
};
interface ExitHint {
  readonly exitClass?: 'denied';
  readonly hint?: string;
}

/** Answers of a service that starts, is busy or is away, and of a proxy before it. */
const passingStatus: ReadonlySet<number> = new Set([429, 502, 503]);

/** Undefined: a fault of the command itself. */
const failureOf = (cause: unknown, otherwise: ExitHint): Failure | undefined => {
  if (cause instanceof CommandError) return [cause.exitClass, cause.message, cause];
  if (cause instanceof ConnectionError) return connectionFailure(cause);
  if (cause instanceof ProblemError) return problemFailure(cause, otherwise);
  if (cause instanceof UnexpectedAnswer)
    return [
      'unreachable',
      `the answer (status ${cause.status}) is not from this service's API`,
      { hint: 'check --server (or DKE_SERVER)', passes: passingStatus.has(cause.status) },
    ];
  if (!(cause instanceof ApprovalRequired)) return undefined;
  const { id, missing, expiresAt, state } = cause.approval;
  return [
    'waiting',
    `nothing was changed yet: ${missing === 1 ? 'another person must' : `${missing} others must`} approve it by ${expiresAt}`,
    { hint: `${command`dke approval show ${id}`} (${state}); approvers run ${command`dke approval approve ${id}`}` },
  ];
};

/**
 * What a failed call ends the command with. Each such error is built here, because each says
 * whether what was asked for may be done: the last attempt may fail on this host (the credential's
 * file, a certificate) after an earlier one was carried out.
 */
const commandError = (cause: unknown, otherwise: ExitHint = {}): unknown => {
  const failure = failureOf(cause, otherwise);
  if (failure === undefined) return cause;
  const [exitClass, message, more] = failure;
  return new CommandError(exitClass, message, { ...more, mayBeDone: mayBeDone(cause) });
};

/** Throws a CommandError for a call that failed. */
const orCommandError = async <T>(call: Promise<T>): Promise<T> =>
  call.catch((error: unknown) => {
    throw commandError(error);
  });

/** A service that is not there is not waited for as long as one that works. */
const longestConnectMs = 30_000;

const settingsOf = ({ url, ca, timeoutMs }: Address): Settings => ({
  url,
  ca,
  timeoutMs,
  agent: false,
  retries: 2,
  onAnswer: rememberAnswer,
  lookup: lookupWithin(Math.min(timeoutMs ?? longestConnectMs, longestConnectMs) * 0.8),
});

/** One request with headers of its own, never repeated. */
export const callOnce = async <E extends Operation>(
  address: Address,
  operation: E,
  body: Buffer | undefined,
  headers: Readonly<Record<string, string>>,
  otherwise: ExitHint,
): Promise<Answer<AnswerOf<E>>> => {
  const { call } = openCalls(settingsOf(address));
  rememberAsked(address.url);
  try {
    return (await call<Operation>(operation, { body }, { headers, retries: 0 })) as Answer<AnswerOf<E>>;
  } catch (error) {
    throw commandError(error, otherwise);
  }
};

/** What is at a path, as text, without a token. */
export const readPath = async (address: Address, path: string): Promise<string> => {
  const { bytes } = openCalls(settingsOf(address));
  rememberAsked(address.url);
  return (await orCommandError(bytes({ method: 'get', path }))).body.toString('utf8');
};

export const openClient = ({ credential, tenant, onPending, ...address }: ApiClientOptions): ApiClient => {
  const settings = { ...settingsOf(address), tenant, onPending };
  const { call, bytes, items, change, stream } = openCalls({
    ...settings,
    headers: () => {
      rememberAsked(address.url);
      return credential();
    },
  });
  return {
    url: address.url,
    // The words of a command are the whole new value, which replaces any state; `change` edits the
    // one that it has read.
    call: async (operation, input) =>
      (await orCommandError(call(operation, input, operation.replaces === true ? { ifMatch: '*' } : {}))).body,
    bytes: async (operation, input) => (await orCommandError(bytes(operation, input))).body,
    every: (operation) => {
      const all = async () => {
        const found = [];
        const query = operation.paged === true ? { limit: 1000 } : {};
        for await (const item of items(operation, { query })) found.push(item);
        return found;
      };
      return orCommandError(all());
    },
    change: async (read, write, path, edit) => (await orCommandError(change(read, write, path, edit))).body,
    send: async (path, body) => {
      const operation = { method: 'post', path, takes: 'application/octet-stream' } as const;
      await orCommandError(openCalls(settings).bytes(operation, { body }, { retries: 0 }));
    },
    upload: async (operation, input, from, size) =>
      (await orCommandError(call<Operation>(operation, { ...input, body: { from, size } }))).body,
    stream: async (operation, input, into) => {
      const { body } = await orCommandError(stream(operation, input));
      await orCommandError(pipeline(body, into, { end: false }));
    },
  };
};
