// Calls the console API over HTTPS, by the rows of its contract. One connection a call: the command makes few. Failures of
// every kind become a CommandError.

import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ServiceErrorCode } from '../base/errors.ts';
import { dnsTimeout, lookupWithin } from '../base/name-lookup.ts';
import type { approvalRoutes } from '../fronts/contract/api/approvals.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import {
  type AnswerOf,
  type PathParameters,
  type Problem,
  type RequestBody,
  type RouteRow,
  tenantParameter,
} from '../fronts/contract/api/row.ts';
import { type PendingNodes, readPendingNodes } from '../fronts/contract/pending-nodes.ts';
import { CommandError, classOfProblem } from './exit-codes.ts';

export interface ApiCall<R extends RouteRow> {
  readonly path?: PathParameters<R['path']>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: RequestBody<R>;
  /** An ETag: nothing is done when it is no longer that of what would be changed. */
  readonly ifMatch?: string | undefined;
}

export interface ApiClient {
  readonly url: string;
  /** The answer is the service's; an older or newer one may have other members. */
  call<R extends RouteRow>(row: R, input?: ApiCall<R>): Promise<AnswerOf<R>>;
  /**
   * Reads, edits what was read and writes it, when it is still what was read; again when another change came first. `edit` may be asked
   * more than once.
   */
  change<R extends RouteRow, W extends RouteRow>(
    read: R,
    write: W,
    path: PathParameters<R['path']> & PathParameters<W['path']>,
    edit: (before: AnswerOf<R>) => RequestBody<W> | Promise<RequestBody<W>>,
  ): Promise<AnswerOf<W>>;
  /** The answer's bytes, for one that holds what may not become a string. The caller wipes them. */
  bytes<R extends RouteRow>(row: R, input?: ApiCall<R>): Promise<Buffer>;
  /** Posts bytes to an address that wants no token. The caller wipes them. */
  send(path: string, body: Buffer): Promise<void>;
  /** Sends a file of `size` bytes as the body, as it is read. */
  upload<R extends RouteRow>(row: R, input: ApiCall<R>, from: Readable, size: number): Promise<AnswerOf<R>>;
  /** Writes the answer as it comes; `into` stays open. */
  stream<R extends RouteRow>(row: R, input: ApiCall<R>, into: NodeJS.WritableStream): Promise<void>;
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

const pathOf = (
  row: RouteRow,
  { path, query }: { path?: unknown; query?: object },
  tenant: string | undefined,
): string => {
  const named = new Map(Object.entries(path ?? {}).map(([name, value]) => [name, String(value)]));
  const filled = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(named.get(name) ?? ''));
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) asked.set(name, String(value));
  if (tenant !== undefined && row.tenancy !== 'platform' && row.tenancy !== 'itself')
    asked.set(tenantParameter, tenant);
  return asked.size === 0 ? filled : `${filled}?${asked}`;
};

/** What Node calls a certificate that it does not trust. */
const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

export const connectionError = (url: string, error: NodeJS.ErrnoException): CommandError => {
  const code = error.code ?? 'unknown';
  if (untrusted.has(code))
    return new CommandError('unreachable', `the certificate of ${url} is not trusted`, {
      hint: 'give --ca-file with the certificate of its authority; a self-signed one is tls.crt in the data directory',
    });
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return new CommandError('unreachable', `the certificate of ${url} is for another name`, {
      hint: 'use a name of the certificate in --server, or put this one into server.public_names',
    });
  if (code === 'CERT_HAS_EXPIRED') return new CommandError('unreachable', `the certificate of ${url} has expired`);
  if (code === dnsTimeout)
    return new CommandError('unreachable', `DNS does not answer for the name in ${url}`, {
      hint: 'check the DNS servers of this host (/etc/resolv.conf)',
    });
  return new CommandError('unreachable', `${url} does not answer (${code})`, {
    hint: 'check --server (or DKE_SERVER), and that the service runs',
  });
};

const problemError = (status: number, text: string): CommandError => {
  try {
    const problem = JSON.parse(text) as Problem;
    const fields = (problem.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
    const exitClass = classOfProblem[problem.code as keyof typeof classOfProblem] ?? 'internal';
    return new CommandError(exitClass, [problem.detail, ...fields].join('\n  '), {
      hint:
        problem.hint ?? (exitClass === 'denied' ? 'check the token in --token-file (or DKE_TOKEN_FILE)' : undefined),
      requestId: problem.requestId,
      code: problem.code as ServiceErrorCode,
    });
  } catch {
    return new CommandError('unreachable', `the answer (status ${status}) is not from this service's API`, {
      hint: 'check --server (or DKE_SERVER)',
    });
  }
};

/** Dual control: what was asked for was not done. */
const waitingError = (body: Buffer): CommandError => {
  const { id, missing, expiresAt, state } = parse<typeof approvalRoutes.get>(body);
  return new CommandError(
    'waiting',
    `nothing was changed yet: ${missing === 1 ? 'another person must' : `${missing} others must`} agree until ${expiresAt}`,
    { hint: `dke approval show ${id} (${state}); approvers say dke approval approve ${id}` },
  );
};

const parse = <R extends RouteRow>(body: Buffer): AnswerOf<R> => {
  const text = body.toString('utf8');
  try {
    return (text === '' ? undefined : JSON.parse(text)) as AnswerOf<R>;
  } catch {
    throw problemError(200, text);
  }
};

/** To change what others change at the same time. */
const mostAttempts = 5;

const usualMs = 30_000;
const longMs = 3_600_000;
const { requests, snapshots, diagnostics } = apiRoutes;
/** They answer when everything was checked or written, which may take long. */
const checks: ReadonlySet<RouteRow> = new Set<RouteRow>([
  requests.verify,
  snapshots.create,
  snapshots.verify,
  snapshots.verifyOpened,
  snapshots.restore,
  diagnostics.run,
]);
export const isLong = (row: RouteRow): boolean =>
  row.streams !== undefined || row.takes !== undefined || checks.has(row);

/** Sends one request; the body of the answer is still to come. */
export const exchange = (
  { url, ca, timeoutMs = usualMs }: Address,
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>>,
  body?: Buffer | Readable,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void =>
      reject(error instanceof CommandError ? error : connectionError(url, error));
    // A service that is not there is not waited for as long as one that works.
    const connectMs = Math.min(timeoutMs, usualMs);
    const sent = request(
      new URL(path, url),
      {
        method: method.toUpperCase(),
        ...(ca === undefined ? {} : { ca }),
        agent: false,
        timeout: connectMs,
        lookup: lookupWithin(connectMs * 0.8),
        headers: { ...headers, ...(Buffer.isBuffer(body) ? { 'content-length': body.length } : {}) },
      },
      resolve,
    );
    sent.on('socket', (socket) => socket.once('secureConnect', () => socket.setTimeout(timeoutMs)));
    sent.on('timeout', () => sent.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })));
    sent.on('error', fail);
    if (body === undefined || Buffer.isBuffer(body)) sent.end(body);
    else pipeline(body, sent).catch(fail);
  });

export const readAll = async (url: string, answer: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = [];
  try {
    for await (const part of answer) parts.push(part as Buffer);
  } catch (error) {
    throw connectionError(url, error as NodeJS.ErrnoException);
  }
  const all = Buffer.concat(parts);
  for (const part of parts) part.fill(0);
  return all;
};

export const openClient = ({ credential, tenant, onPending, ...address }: ApiClientOptions): ApiClient => {
  const { url } = address;
  const checked = async (answer: IncomingMessage): Promise<IncomingMessage> => {
    const status = answer.statusCode ?? 0;
    const pending = readPendingNodes((name) => answer.headers[name]?.toString());
    if (pending !== undefined) onPending?.(pending);
    if (status === 202) throw waitingError(await readAll(url, answer));
    if (status < 200 || status > 299) throw problemError(status, (await readAll(url, answer)).toString('utf8'));
    return answer;
  };
  /** Resolves with an answer that says that it went well, its body still to come. */
  const ask = async <R extends RouteRow>(
    row: R,
    input: ApiCall<R> = {},
    file?: { readonly from: Readable; readonly size: number },
  ): Promise<IncomingMessage> => {
    const headers = {
      accept: row.streams === undefined ? 'application/json' : '*/*',
      ...credential(),
      ...(input.ifMatch === undefined ? {} : { 'if-match': input.ifMatch }),
      ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(file === undefined || row.takes === undefined
        ? {}
        : { 'content-type': row.takes, 'content-length': file.size }),
    };
    const body = input.body === undefined ? file?.from : Buffer.from(JSON.stringify(input.body));
    const timeoutMs = address.timeoutMs ?? (isLong(row) ? longMs : usualMs);
    return checked(await exchange({ ...address, timeoutMs }, row.method, pathOf(row, input, tenant), headers, body));
  };
  const bytes = async <R extends RouteRow>(row: R, input?: ApiCall<R>): Promise<Buffer> =>
    readAll(url, await ask(row, input));
  return {
    url,
    bytes,
    send: async (path, body) => {
      const headers = { 'content-type': 'application/octet-stream' };
      await readAll(url, await checked(await exchange(address, 'post', path, headers, body)));
    },
    upload: async <R extends RouteRow>(row: R, input: ApiCall<R>, from: Readable, size: number) =>
      parse<R>(await readAll(url, await ask(row, input, { from, size }))),
    stream: async (row, input, into) => {
      const answer = await ask(row, input);
      await pipeline(answer, into, { end: false }).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'EPIPE' ? error : connectionError(url, error);
      });
    },
    call: async <R extends RouteRow>(row: R, input?: ApiCall<R>) => parse<R>(await bytes(row, input)),
    change: async <R extends RouteRow, W extends RouteRow>(
      read: R,
      write: W,
      path: PathParameters<R['path']> & PathParameters<W['path']>,
      edit: (before: AnswerOf<R>) => RequestBody<W> | Promise<RequestBody<W>>,
    ) => {
      for (let attempt = 1; ; attempt += 1) {
        const answer = await ask(read, { path });
        const body = await edit(parse<R>(await readAll(url, answer)));
        try {
          return parse<W>(await bytes(write, { path, body, ifMatch: answer.headers.etag }));
        } catch (error) {
          const overtaken = error instanceof CommandError && error.code === 'precondition-failed';
          if (!overtaken || attempt === mostAttempts) throw error;
        }
      }
    },
  };
};
