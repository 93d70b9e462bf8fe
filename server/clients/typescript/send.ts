// One call of the API: the request of an operation, its repeats and its answer. What may be
// repeated: a request that never reached the service; one that the service did not take (429, 503
// with Retry-After); and after a lost connection, only what does nothing twice.

import { setTimeout as wait } from 'node:timers/promises';
import { ApprovalRequired, ConnectionError, ProblemError, UnexpectedAnswer } from './client-errors.ts';
import type { Approval, Problem } from './gen/types.ts';
import { type AnswerHeaders, type Connection, readAll, sendOnce, type WireAnswer } from './https.ts';
import type { FileBody, Input, Operation } from './operation.ts';

/** The bytes of a token, or what answers it at each call. */
export type Token = Uint8Array | (() => string | Uint8Array | Promise<string | Uint8Array>);

export interface Settings extends Connection {
  /** `https://HOST:PORT`. */
  readonly url: string;
  readonly token?: Token | undefined;
  /** More headers of each request. */
  readonly headers?: (() => Readonly<Record<string, string>>) | undefined;
  /** Id or name of the tenant to act in; the token's own when absent. */
  readonly tenant?: string | undefined;
  /**
   * How long a call may take until its answer begins, repeats included. 30 seconds; an hour for
   * what may take long.
   */
  readonly timeoutMs?: number | undefined;
  /** How often a call is repeated: 3. */
  readonly retries?: number | undefined;
  /** Told of the nodes that have not confirmed a change yet. */
  readonly onPending?: ((pending: PendingNodes) => void) | undefined;
  /** Told of each answer that is JSON, before anything of it is read. */
  readonly onAnswer?: ((operation: Operation, body: unknown) => void) | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly retries?: number | undefined;
  /** An ETag: nothing is changed when the resource has another one. */
  readonly ifMatch?: string | undefined;
  /**
   * A new one for each call when absent. Give your own to repeat a call after your program was
   * restarted.
   */
  readonly idempotencyKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Nodes that may use the state before a change, and until when; null: there is no limit. */
export interface PendingNodes {
  readonly names: readonly string[];
  readonly until: string | null;
}

export interface Answer<T> {
  readonly body: T;
  readonly status: number;
  readonly headers: Headers;
  /** The id under which the audit log and the server's log have the request. */
  readonly requestId: string | undefined;
  /** For `ifMatch`. */
  readonly etag: string | undefined;
  /** The path of what was created. */
  readonly location: string | undefined;
  /** The answer to an earlier request with the same idempotency key. */
  readonly replayed: boolean;
  readonly pending: PendingNodes | undefined;
}

const usualMs = 30_000;
const longMs = 3_600_000;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const pendingOf = (headers: AnswerHeaders): PendingNodes | undefined => {
  const names = headers.get('x-dke-pending-nodes') ?? '';
  const until = headers.get('x-dke-pending-until') ?? 'never';
  return names === '' ? undefined : { names: names.split(',').map(decoded), until: until === 'never' ? null : until };
};

export const answerWith = <T>({ status, headers }: Omit<WireAnswer, 'body'>, body: T): Answer<T> => ({
  body,
  status,
  get headers() {
    return headers.all;
  },
  requestId: headers.get('x-request-id'),
  etag: headers.get('etag'),
  location: headers.get('location'),
  replayed: headers.get('idempotent-replayed') === 'true',
  pending: pendingOf(headers),
});

const bearer = async (token: Token): Promise<string> => {
  const given = token instanceof Uint8Array ? token : await token();
  const text = (typeof given === 'string' ? given : Buffer.from(given).toString('latin1')).trim();
  if (!/^[\x21-\x7e]+$/.test(text)) throw new TypeError('the token has characters that no token has');
  return `Bearer ${text}`;
};

const addressOf = ({ url, tenant }: Settings, operation: Operation, { path = {}, query = {} }: Input): URL => {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name];
    if (value === undefined) throw new TypeError(`${operation.path}: ${name} is missing`);
    // An address with one of these is another address, of another operation.
    if (value === '' || value === '.' || value === '..')
      throw new TypeError(`${operation.path}: ${JSON.stringify(value)} is no ${name}`);
    return encodeURIComponent(value);
  });
  const address = new URL(filled, url);
  if (address.protocol !== 'https:') throw new TypeError(`${url} is not an address with https`);
  if (tenant !== undefined && operation.inTenant === true) address.searchParams.set('tenant', tenant);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) address.searchParams.set(name, String(value));
  return address;
};

const bodyOf = (operation: Operation, body: unknown): Uint8Array | FileBody | undefined => {
  if (body === undefined || body instanceof Uint8Array) return body;
  return operation.takes === undefined ? Buffer.from(JSON.stringify(body)) : (body as FileBody);
};

export const parse = <T>(status: number, bytes: Buffer): T => {
  try {
    return (bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8'))) as T;
  } catch {
    throw new UnexpectedAnswer(status);
  }
};

const refusalOf = async ({ status, headers, body }: WireAnswer): Promise<Error> => {
  const bytes = await readAll(body);
  if (status === 202) {
    const approval = parse<Approval | null | undefined>(status, bytes);
    return typeof approval?.id === 'string' ? new ApprovalRequired(approval) : new UnexpectedAnswer(status);
  }
  const problem = parse<Problem | undefined>(status, bytes);
  return typeof problem?.code === 'string' && problem.code.length > 0
    ? new ProblemError(status, problem, headers)
    : new UnexpectedAnswer(status);
};

/** Failures of a connection that may be over soon. */
export const passing: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
]);

const secondsOf = (headers: Headers): number | undefined => {
  const text = headers.get('retry-after') ?? '';
  return /^[0-9]{1,6}$/.test(text) ? Number(text) : undefined;
};

/** Errors of calls whose earlier attempt may have been carried out. */
const afterAnother = new WeakSet<object>();

/**
 * Whether what was asked for may have been done although the call failed: in its last attempt, or
 * in one before it whose answer did not come.
 */
export const mayBeDone = (error: unknown): boolean => {
  if (typeof error === 'object' && error !== null && afterAnother.has(error)) return true;
  if (error instanceof ConnectionError) return error.sent;
  if (error instanceof ProblemError)
    return error.reason === 'unconfirmed' || (error.status >= 500 && error.status !== 503);
  return error instanceof UnexpectedAnswer && (error.status < 300 || error.status >= 500);
};

/** How long to wait before the call is repeated; undefined when it may not be. */
export const pauseAfter = (error: unknown, attempt: number, doesNothingTwice: boolean): number | undefined => {
  const usual = 100 * 4 ** attempt;
  if (error instanceof ConnectionError)
    return passing.has(error.code) && (doesNothingTwice || !error.sent) ? usual : undefined;
  if (!(error instanceof ProblemError) || (error.status !== 429 && error.status !== 503)) return undefined;
  if (error.reason === 'unconfirmed' && !doesNothingTwice) return undefined;
  const seconds = secondsOf(error.headers);
  return seconds === undefined ? undefined : Math.max(seconds * 1000, usual);
};

/**
 * Calls an operation, and gives its answer to `use` while it comes. A failure of `use` in the
 * connection is repeated as well.
 */
export const send = async <T>(
  settings: Settings,
  operation: Operation,
  input: Input,
  options: CallOptions,
  use: (answer: WireAnswer) => Promise<T>,
): Promise<T> => {
  const limit = options.timeoutMs ?? settings.timeoutMs;
  const isLong = operation.long === true || operation.streams !== undefined || operation.takes !== undefined;
  const timeoutMs = limit ?? (isLong ? longMs : usualMs);
  const url = addressOf(settings, operation, input);
  const body = bodyOf(operation, input.body);
  const key = operation.creates === true ? (options.idempotencyKey ?? crypto.randomUUID()) : undefined;
  const { ifMatch, signal } = options;
  const headers = {
    accept: operation.streams === undefined ? 'application/json' : '*/*',
    ...(body === undefined ? {} : { 'content-type': operation.takes ?? 'application/json' }),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
  };
  // With If-Match, a repeat of what was done would be refused.
  const doesNothingTwice =
    operation.method === 'get' || key !== undefined || (operation.method !== 'post' && ifMatch === undefined);
  const isOneWay = body !== undefined && !(body instanceof Uint8Array);
  const retries = isOneWay ? 0 : (options.retries ?? settings.retries ?? 3);
  const end = performance.now() + timeoutMs;
  let isMaybeDone = false;
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      const answer = await sendOnce(settings, {
        method: operation.method,
        url,
        headers: {
          ...headers,
          ...(settings.token === undefined ? {} : { authorization: await bearer(settings.token) }),
          ...settings.headers?.(),
          ...options.headers,
        },
        body,
        connectMs: Math.min(timeoutMs, usualMs),
        timeoutMs: Math.max(1, Math.ceil(end - performance.now())),
        signal,
      });
      if (answer.status === 202 || (answer.status >= 300 && answer.status !== 303) || answer.status < 200)
        throw await refusalOf(answer);
      const pending = pendingOf(answer.headers);
      if (pending !== undefined) settings.onPending?.(pending);
      return await use(answer);
    } catch (error) {
      const pause = attempt < retries ? pauseAfter(error, attempt, doesNothingTwice) : undefined;
      isMaybeDone ||= mayBeDone(error);
      if (pause === undefined || performance.now() + pause > end) {
        if (isMaybeDone && error instanceof Error) afterAnother.add(error);
        throw error;
      }
      await wait(pause, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
    }
  }
};
