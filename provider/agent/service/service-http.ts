// The service over HTTPS: one keep-alive pool per configuration, one deadline per call. A call
// whose connection ended before its answer is sent again, perhaps to another node of the service:
// doing it twice is the same as doing it once, because calls that create or change something have a
// key under which they are carried out once (contract/tde.ts). Where the outcome of such a call is
// unknown at its deadline, the call fails and its request is withdrawn (withdrawals.ts).

import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { SecureContext } from 'node:tls';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import { lookupWithin } from '../../../server/base/name-lookup.ts';
import { ServiceError, type ServiceErrorCode, serviceErrorCodes } from '../../../server/base/service-error.ts';
import {
  decodeAnswer,
  envelopeType,
  epochHeader,
  maxEnvelope,
  onceHeader,
  onceRoutes,
  type PendingNodes,
  packEnvelope,
  readPendingNodes,
  tdeRoutes,
  unpackEnvelope,
  type WithdrawalOutcome,
} from '../../../server/contract/tde.ts';
import { type Told, tell, tellNoAnswer, tellRefused } from '../causes.ts';
import { uniqueId } from '../objects/unique-id.ts';
import type { ProviderConfig } from '../settings/config.ts';
import {
  type Answer,
  type Caller,
  type RouteName,
  type ServiceAnswer,
  ServiceCallError,
  type ServiceDoor,
  type ServiceRequest,
} from './service-door.ts';
import { TlsFiles } from './tls.ts';
import { createWithdrawals } from './withdrawals.ts';

// One request over undici's pool and its answer in one piece, by the pool's own interface (undici's
// `dispatch`): a stream, its promises and a signal for each, as `request` has them, are a quarter
// of what such a call costs. Answers may hold secrets: what the pool has read them into is wiped,
// and the memory that they are returned in is not shared.

export interface Whole {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Owned by the receiver. */
  readonly body: Buffer;
}

/** Not from the memory that small buffers share. */
const joined = (parts: readonly Buffer[]): Buffer => {
  const whole = Buffer.allocUnsafeSlow(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
};

export class Exchange implements Dispatcher.DispatchHandler {
  /** Rejects with undici's error, or with what the exchange was cancelled with. */
  readonly answer: Promise<Whole>;
  #resolve: (whole: Whole) => void = () => undefined;
  #reject: (reason: Error) => void = () => undefined;
  #controller: Dispatcher.DispatchController | null = null;
  #cancelled: Error | null = null;
  #isStarted = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #parts: Buffer[] = [];

  constructor(pool: Dispatcher, request: Dispatcher.DispatchOptions) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    pool.dispatch(request, this);
  }

  /** Whether the request may have reached the service. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /**
   * Ends it at once, also while it waits for a connection. Nothing happens when the answer is
   * there.
   */
  cancel(reason: Error): void {
    this.#cancelled = reason;
    this.#controller?.abort(reason);
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#isStarted = true;
    if (this.#cancelled !== null) controller.abort(this.#cancelled);
  }

  /** Called for each informational answer (1xx), too: the last status counts. */
  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#parts.push(joined([chunk]));
    chunk.fill(0);
  }

  onResponseEnd(): void {
    // Mostly one part, which is given away.
    const only = this.#parts.length === 1 ? this.#parts.pop() : undefined;
    const body = only ?? joined(this.#parts);
    this.#wipe();
    this.#controller = null;
    this.#resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#wipe();
    this.#reject(error);
  }

  #wipe(): void {
    for (const part of this.#parts) part.fill(0);
    this.#parts = [];
  }
}

/**
 * How long to wait before a call is sent again whose connection ended before the answer: the kept
 * connections to a node that is gone end at the same moment, and what is in front of the nodes
 * takes a moment to see it. All of it is within the call's deadline.
 */
const pausesMs = [0, 50, 250, 500];
/** Looks for prime numbers, which takes as long as it takes. */
const slow: ReadonlySet<RouteName> = new Set(['generateKeyPair']);
const timesSlow = 10;
/**
 * The library has the same deadline, and its clock started earlier. The agent answers before it: a
 * late answer would not be read, and what the call has created would have no owner.
 */
const aheadOfLibrary = { share: 0.1, mostMs: 250 } as const;
/** The share of the time for a connection that the look-up of the service's name may take. */
export const dnsShare = 0.8;
/** Connections to one service. A database has many processes, but each call is short. */
const maxConnections = 32;
/** Scripts and short programs of one host come again within so long. */
const keptMs = 30_000;

/**
 * Connects with the certificates that the files have now: a database runs for months, and its
 * service's certificate is renewed in the meantime. Files that cannot be used, half written
 * perhaps, change nothing.
 */
const openConnector = (config: ProviderConfig, tls: TlsFiles): buildConnector.connector => {
  let of: SecureContext | null = null;
  let connect: buildConnector.connector | null = null;
  return (options, done) => {
    tls.currentOrLast().then(
      (secureContext) => {
        if (connect === null || of !== secureContext)
          connect = buildConnector({
            timeout: config.connectTimeoutMs,
            secureContext,
            // Before the connection's own time is over: which of the two did not answer is another
            // cause.
            lookup: lookupWithin(config.connectTimeoutMs * dnsShare),
          });
        of = secureContext;
        connect(options, done);
      },
      (error: Error) => done(error, null),
    );
  };
};

/** The service as one configuration describes it. */
interface Way {
  readonly config: ProviderConfig;
  readonly pool: Pool;
}

const openWay = (config: ProviderConfig, tls: TlsFiles): Way => {
  const pool = new Pool(config.origin, {
    connections: maxConnections,
    pipelining: 1,
    connect: openConnector(config, tls),
    // A call has one deadline, below.
    headersTimeout: 0,
    bodyTimeout: 0,
    // A handshake is half of what a short process waits for. The service would keep connections for
    // minutes, and says so; idle ones of a burst are not worth their descriptors for so long.
    keepAliveTimeout: keptMs,
    keepAliveMaxTimeout: keptMs,
    maxResponseSize: maxEnvelope,
  });
  return { config, pool };
};

type Unconfirmed = (requestId: string, route: RouteName, pending: PendingNodes) => void;

/**
 * Sends a request once, by the way that is current then. `started` hears of the exchange before its
 * answer.
 */
const sender = (way: () => Way, unconfirmed: Unconfirmed) => {
  const epochName = epochHeader.toLowerCase();

  return async <R extends RouteName>(
    { route, handle, head, raw }: ServiceRequest<R>,
    { requestId, instance }: Caller,
    started: (exchange: Exchange) => void,
  ): Promise<ServiceAnswer<R>> => {
    const { config, pool } = way();
    const sent = packEnvelope(head, raw ?? undefined);
    try {
      const exchange = new Exchange(pool, {
        method: 'POST',
        path: config.basePath + tdeRoutes[route].path.replace(':handle', String(handle)),
        headers: {
          authorization: `Bearer ${config.accessToken}`,
          'content-type': envelopeType,
          accept: envelopeType,
          'x-request-id': requestId,
          'x-dke-instance': instance,
          ...(onceRoutes.has(route) ? { [onceHeader]: requestId } : {}),
        },
        body: sent,
      });
      started(exchange);
      const { status, headers, body } = await exchange.answer;
      const pending = readPendingNodes((name) => headers[name]?.toString());
      if (pending !== undefined) unconfirmed(requestId, route, pending);
      if (status !== 200) throw problem(status, body, config.origin, requestId, handle);
      const { answer, raw: bytes } = parseAnswer(route, headers['content-type'], body, config.origin, requestId);
      return { answer, raw: bytes, epoch: Number(headers[epochName] ?? 0) };
    } finally {
      sent.fill(0);
    }
  };
};

export interface ServiceEvents {
  /** Hears of each request that was withdrawn, */
  readonly withdrawn?: (requestId: string, outcome: WithdrawalOutcome) => void;
  /** and of each change that some nodes of the service have not confirmed. */
  readonly unconfirmed?: Unconfirmed;
  /**
   * The service refuses the credential. Answers whether there is another one by now (`replace`):
   * then the call is sent again.
   */
  readonly refused?: () => Promise<boolean>;
}

export interface HttpService extends ServiceDoor {
  /**
   * From now on calls go by this configuration, also a call that is sent again. What runs is
   * finished with the old one.
   */
  replace(config: ProviderConfig, tls: TlsFiles): void;
}

export const openHttpService = (
  config: ProviderConfig,
  { withdrawn = () => undefined, unconfirmed = () => undefined, refused = async () => false }: ServiceEvents = {},
  tls: TlsFiles = new TlsFiles(config),
): HttpService => {
  let way = openWay(config, tls);
  const send = sender(() => way, unconfirmed);

  const withdrawals = createWithdrawals(async (caller) => {
    let expire = (): void => undefined;
    const timer = globalThis.setTimeout(() => expire(), way.config.callTimeoutMs);
    try {
      // Under an id of its own: the service logs two requests.
      const asked = { ...caller, requestId: uniqueId() };
      const request = { route: 'withdraw', handle: null, head: { key: caller.requestId }, raw: null } as const;
      const { answer } = await send(request, asked, (exchange) => {
        expire = () => exchange.cancel(new Error('the deadline has passed'));
      });
      return answer.outcome;
    } finally {
      clearTimeout(timer);
    }
  }, withdrawn);

  return {
    async call(request, caller) {
      const full = way.config.callTimeoutMs * (slow.has(request.route) ? timesSlow : 1);
      const waited = caller.waitedMs ?? 0;
      const timeout = Math.max(0, full - waited - Math.min(full * aheadOfLibrary.share, aheadOfLibrary.mostMs));
      const once = onceRoutes.has(request.route);
      const until = performance.now() + full - waited;
      let mayBeDone = false;
      let wasRefused = false;
      let wasLost = false;
      let expired = timeout === 0;
      let expire = (): void => undefined;
      // Cleared at the end: each call would wake the agent again, seconds later.
      const timer = globalThis.setTimeout(() => {
        expired = true;
        expire();
      }, timeout);
      try {
        if (expired) throw new Error('the deadline has passed');
        if (once && !withdrawals.isSettled) {
          const waiting = new AbortController();
          expire = () => waiting.abort(new Error('the deadline has passed'));
          await withdrawals.settled(waiting.signal);
        }
        for (let attempt = 0; ; attempt += 1) {
          let exchange: Exchange | undefined;
          const taken = way;
          try {
            const answered = await send(request, caller, (started) => {
              exchange = started;
              expire = () => started.cancel(new Error('the deadline has passed'));
              if (expired) expire();
            });
            // This process was stopped or starved in the meantime, and the library has given up.
            if (once && performance.now() > until) throw new Error('the answer arrived after the deadline');
            return answered;
          } catch (error) {
            mayBeDone ||= exchange?.isStarted === true;
            if (wasLost && isDestroyed(request.route, error))
              return { answer: {} as Answer<typeof request.route>, raw: new Uint8Array(0), epoch: 0 };
            // Nothing was carried out. The credential may have been replaced, and the old one be
            // refused since.
            if (!wasRefused && error instanceof ServiceCallError && error.code === 'unauthenticated') {
              wasRefused = true;
              if (way !== taken || (await refused())) continue;
            }
            const pause = pausesMs[attempt];
            if (pause === undefined || !wasClosedUnderUs(error)) throw error;
            wasLost = true;
            if (pause > 0) {
              const waiting = new AbortController();
              expire = () => waiting.abort();
              await setTimeout(pause, undefined, { signal: waiting.signal });
            }
          }
        }
      } catch (error) {
        if (once && mayBeDone && isOutcomeUnknown(error)) withdrawals.add(caller);
        throw error instanceof ServiceCallError
          ? error
          : unreachable(error, expired, way.config.origin, caller.requestId, request.handle);
      } finally {
        clearTimeout(timer);
        request.raw?.fill(0);
      }
    },
    withdraw: (caller) => withdrawals.add(caller),
    replace: (next, files) => {
      const { pool } = way;
      way = openWay(next, files);
      void pool.close();
    },
    close: async () => {
      await withdrawals.close();
      await way.pool.destroy();
    },
  };
};

const failure = (
  code: ServiceErrorCode,
  told: Told | null,
  otherwise: string,
  requestId: string,
  handle: number | null,
  reason: string | null = null,
): ServiceCallError =>
  new ServiceCallError(code, told?.line ?? otherwise, requestId, { told: told?.cause ?? null, handle, reason });

/**
 * Anything but a refusal by the service itself: what fails within it, or on the way, may have been
 * carried out.
 */
const isOutcomeUnknown = (error: unknown): boolean =>
  !(error instanceof ServiceCallError) || ['internal', 'unavailable', 'dependency-timeout'].includes(error.code);

const wasClosedUnderUs = (error: unknown): boolean =>
  ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes((error as { code?: string }).code ?? '');

/** The answer to a repeated destruction that has succeeded: the object no longer exists. */
const isDestroyed = (route: RouteName, error: unknown): boolean =>
  route === 'destroyObject' && error instanceof ServiceCallError && error.code === 'key-destroyed';

/** Neither addresses nor header values reach the message: the cause's code is what helps. */
const unreachable = (
  error: unknown,
  expired: boolean,
  origin: string,
  requestId: string,
  handle: number | null,
): ServiceCallError => {
  const { code, name } = error as { readonly code?: unknown; readonly name?: string };
  const reason = expired ? 'TimeoutError' : typeof code === 'string' ? code : (name ?? 'unknown error');
  const told = tellNoAnswer(origin, reason);
  return failure(told.cause === 'service-slow' ? 'dependency-timeout' : 'unavailable', told, '', requestId, handle);
};

/** What a newer service says in a word that is not known here. */
const codeByStatus: Readonly<Record<number, ServiceErrorCode>> = {
  400: 'validation',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  413: 'payload-too-large',
  429: 'rate-limited',
  503: 'unavailable',
  504: 'dependency-timeout',
};
/**
 * What a proxy in between may truly say of the service; anything else from it says nothing about
 * keys or credentials.
 */
const codeByForeignStatus: Readonly<Record<number, ServiceErrorCode>> = {
  429: 'rate-limited',
  504: 'dependency-timeout',
};

/** An RFC 9457 problem document, or whatever a proxy in between has to say. */
const problem = (
  status: number,
  body: Buffer,
  origin: string,
  requestId: string,
  handle: number | null,
): ServiceCallError => {
  const document = parseJson(body);
  const own = serviceErrorCodes.find((each) => each === document?.code);
  // Not the service's words: a proxy's 404 is not a missing key.
  if (own === undefined)
    return failure(
      (typeof document?.code === 'string' ? codeByStatus[status] : codeByForeignStatus[status]) ?? 'unavailable',
      tell('service-failed', { origin, error: `status ${status}, which is not from the service` }),
      '',
      requestId,
      handle,
    );
  const texts = [document?.title, document?.detail].filter((text) => typeof text === 'string');
  const message = texts.join('; ').slice(0, 300) || `status ${status}`;
  const reason = typeof document?.reason === 'string' ? document.reason : null;
  return failure(own, tellRefused({ origin, code: own, reason, message, handle }), message, requestId, handle, reason);
};

const parseJson = (body: Buffer): Record<string, unknown> | null => {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
};

const parseAnswer = <R extends RouteName>(
  route: R,
  contentType: string | string[] | undefined,
  body: Buffer,
  origin: string,
  requestId: string,
): Omit<ServiceAnswer<R>, 'epoch'> => {
  const wrong = (what: string, cause?: unknown): ServiceCallError =>
    new ServiceCallError(
      'internal',
      tell('service-failed', { origin, error: `its answer is invalid: ${what}` }).line,
      requestId,
      { cause, told: 'service-failed' },
    );
  if (typeof contentType !== 'string' || !contentType.startsWith(envelopeType)) throw wrong('media type');
  let unpacked: ReturnType<typeof unpackEnvelope>;
  try {
    unpacked = unpackEnvelope(body);
  } catch {
    throw wrong('envelope');
  }
  try {
    return { answer: decodeAnswer(route, unpacked.head), raw: unpacked.raw };
  } catch (error) {
    throw wrong(error instanceof ServiceError ? error.message : 'head', error);
  }
};
