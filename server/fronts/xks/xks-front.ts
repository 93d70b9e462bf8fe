// The XKS proxy on Node's own request and response: raw bytes, raw headers and raw path are what
// SigV4 signs, and Web objects would cost half the throughput (docs/decisions).
//
// Order of the checks: path, method, prefix, load, client certificate, size, signature, rate, body,
// key, rules, cryptography. Every refusal is JSON with an errorName.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { markProven } from '../../base/connection-proof.ts';
import { createOriginRates, probeRate } from '../../base/origin-rates.ts';
import { refusalReasons } from '../../base/refusal-reasons.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { XksCrypto } from '../../ports/xks-crypto.ts';
import type { XksEndpointView } from '../../ports/xks-directory.ts';
import { type Admission, admitByLoad, admitStranger } from '../shared/admission.ts';
import type { RawFront } from '../shared/dispatch.ts';
import { createOutbox } from '../shared/outbox.ts';
import { createClientCertificateCheck } from './client-certificate.ts';
import { getHealthStatus, probeAnswer } from './health.ts';
import {
  decrypt,
  encrypt,
  getKeyMetadata,
  jsonAnswer,
  parseXksBody,
  type XksAnswer,
  type XksCall,
  type XksContext,
} from './key-operations.ts';
import { createRates, createShedder } from './rate.ts';
import { createSigV4 } from './sigv4.ts';
import { createSigningKeys } from './sigv4-caches.ts';
import { createRecorder, createTrace, type RecorderOptions, type Trace } from './trace.ts';
import { XksRefusal } from './xks-refusal.ts';
import { hasBody, isXksPath, parseXksPath, readBody, type XksPath, type XksPathOperation } from './xks-request.ts';

export interface XksFrontOptions extends RecorderOptions {
  readonly core: XksCrypto;
  readonly requestId: () => string;
  readonly product: XksContext['product'];
  /** Milliseconds after which a request is refused rather than answered too late. */
  readonly latestMs?: number;
  /** Told of faults that are ours; the answer says only InternalException. */
  readonly onError?: (error: unknown, requestId: string) => void;
}

/**
 * Two fifths of the 250 ms that the cloud waits: a request may arrive just after the previous
 * iteration of the event loop has started, and then waits as long.
 */
const defaultLatestMs = 100;

export type XksFront = RawFront;

/** Made once, as is its answer: who is refused for the load must cost little. */
const busy = new XksRefusal('ThrottlingException', 'the service is busy', { reason: refusalReasons.load });

const answerOf = ({ errorName, message }: XksRefusal): XksAnswer => jsonAnswer({ errorName, errorMessage: message });
const busyAnswer = answerOf(busy);

const operations = { health: getHealthStatus, metadata: getKeyMetadata, encrypt, decrypt } as const satisfies Record<
  XksPathOperation,
  (context: XksContext, call: XksCall) => XksAnswer
>;

/** The checks before the body is read, and those after it with the operation itself. */
interface Pipeline {
  /** What can be told before the body is there: throws the refusal. */
  checkHead(incoming: IncomingMessage, trace: Trace): Admission;
  /** Throws the refusal. `body`: null when it is too long. */
  answer(incoming: IncomingMessage, trace: Trace, body: Buffer | null): XksAnswer;
}

/**
 * The log keeps the access key id that such a request names: the doctor knows by it which
 * endpoint was meant. Nothing has verified it.
 */
const pathNotFound = ({ headers }: IncomingMessage): XksRefusal => {
  const [, accessKeyId] = /\bCredential=([A-Z2-7]{20,30})\//.exec(headers.authorization?.slice(0, 500) ?? '') ?? [];
  return new XksRefusal('InvalidUriPathException', 'path not found', {
    ...(accessKeyId === undefined ? {} : { reason: `${refusalReasons.unknownPath} ${accessKeyId}` }),
  });
};

const createPipeline = (options: XksFrontOptions): Pipeline => {
  const { core, directory, clock } = options;
  const context: XksContext = { core, directory, product: options.product };
  const sigv4 = createSigV4(core, createSigningKeys(core));
  const checkClientCertificate = createClientCertificateCheck(clock);
  const rates = createRates(() => performance.now());
  const probes = createOriginRates({ monotonic: () => performance.now() }, probeRate);
  const overdue = createShedder(options.latestMs ?? defaultLatestMs);

  const authenticate = (incoming: IncomingMessage, body: Buffer, trace: Trace, endpoint: XksEndpointView): void => {
    const request = {
      method: incoming.method ?? '',
      target: incoming.url ?? '',
      rawHeaders: incoming.rawHeaders,
      body,
    };
    const verification = sigv4.verify(request, endpoint.credentials, clock());
    if (!verification.ok)
      throw new XksRefusal('AuthenticationFailedException', 'the request is not signed as it should be', {
        reason: verification.reason,
      });
    trace.credentialId = verification.credential.id;
    // Only what is signed counts: a stranger does not use up an endpoint's rate.
    if (!rates.admit(endpoint))
      throw new XksRefusal('ThrottlingException', 'more requests than the endpoint takes', {
        reason: refusalReasons.rate,
      });
  };

  /** The endpoint as it is now, and what it asks of the connection: throws the refusal. */
  const lookUp = (incoming: IncomingMessage, trace: Trace, { prefix }: XksPath): XksEndpointView => {
    const endpoint = directory.endpoint(prefix);
    if (endpoint === undefined) throw pathNotFound(incoming);
    trace.endpoint = endpoint;
    const { clientCertificate } = endpoint.settings;
    if (clientCertificate === null) return endpoint;
    const reason = checkClientCertificate(incoming.socket as TLSSocket, clientCertificate);
    if (reason !== undefined)
      throw new XksRefusal('AuthenticationFailedException', 'the client certificate is missing or not accepted', {
        reason,
        closes: true,
      });
    return endpoint;
  };

  const checkHead = (incoming: IncomingMessage, trace: Trace): Admission => {
    const path = parseXksPath(incoming.url ?? '');
    if (path === null) throw pathNotFound(incoming);
    trace.path = path;
    if (incoming.method !== 'POST')
      throw new XksRefusal('InvalidUriPathException', 'this path supports POST', { status: 405 });
    lookUp(incoming, trace, path);
    return admitByLoad(incoming, overdue, busy);
  };

  const answer = (incoming: IncomingMessage, trace: Trace, body: Buffer | null): XksAnswer => {
    const { path } = trace;
    if (path === null) throw new Error('a body was read without an endpoint');
    // A body may come long after its head: what was changed in the meantime counts.
    const endpoint = lookUp(incoming, trace, path);
    if (body === null) throw new XksRefusal('ValidationException', 'the body is longer than 64 KiB', { status: 413 });
    try {
      if (
        path.operation === 'health' &&
        endpoint.settings.operatorProbes &&
        incoming.headers.authorization === undefined
      ) {
        // Nothing authenticates it: its address is counted before its body is parsed.
        admitStranger(probes, incoming.socket.remoteAddress ?? null);
        trace.parsed = parseXksBody(core, 'health', body);
        return probeAnswer(context, endpoint);
      }
      authenticate(incoming, body, trace, endpoint);
      markProven(incoming.socket, endpoint.id, endpoint.tenantId);
      trace.authDone = performance.now();
      const parsed = parseXksBody(core, path.operation, body);
      trace.parsed = parsed;
      const answered = operations[path.operation](context, { endpoint, externalKeyId: path.externalKeyId, parsed });
      trace.usesKey = path.operation === 'encrypt' || path.operation === 'decrypt';
      return answered;
    } finally {
      if (trace.parsed !== null && !trace.usesKey) core.xksRelease(trace.parsed.body);
      core.wipe(body);
    }
  };

  return { checkHead, answer };
};

export const createXksFront = (options: XksFrontOptions): XksFront => {
  const { core } = options;
  const outbox = createOutbox();
  const { checkHead, answer } = createPipeline(options);
  const record = createRecorder(options);

  const refusalOf = (error: unknown, requestId: string): XksRefusal => {
    if (error instanceof XksRefusal) return error;
    if (error instanceof ServiceError && error.code === 'rate-limited') return busy;
    if (error instanceof ServiceError && error.code === 'unavailable')
      return new XksRefusal('DependencyTimeoutException', error.message);
    options.onError?.(error, requestId);
    return new XksRefusal('InternalException', 'internal error');
  };

  const handle = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const started = performance.now();
    const requestId = options.requestId();
    const trace = createTrace();
    let closes = false;
    // Asked now: a connection that is gone no longer has a peer.
    const peer = incoming.socket.remoteAddress ?? null;

    const finish = (status: number, errorName: string | null, body: XksAnswer): void => {
      const headers: (string | number)[] = [
        'Content-Type',
        'application/json',
        'Content-Length',
        Buffer.byteLength(body),
        'X-Request-Id',
        requestId,
      ];
      if (status === 405) headers.push('Allow', 'POST');
      if (status === 429 || status === 503) headers.push('Retry-After', '1');
      // What was not read of a request cannot be told from the next one.
      const isUnread = (): boolean => !incoming.complete && hasBody(incoming);
      const unread = isUnread();
      outbox(() => {
        // Who is refused for the load comes again: a handshake would cost more than the request.
        // Its body came with its head.
        const ends = closes || (status === 429 ? isUnread() : unread);
        if (ends && incoming.httpVersionMajor === 1) headers.push('Connection', 'close');
        outgoing.writeHead(status, headers as string[]);
        // Head and body leave in one piece when the body is text; a plaintext never becomes text.
        if (typeof body === 'string') outgoing.end(body);
        else outgoing.end(body, () => core.wipe(body));
        record(incoming, trace, started, requestId, status, errorName, peer);
      });
    };
    const refuse = (error: unknown): void => {
      const refusal = refusalOf(error, requestId);
      trace.reason = refusal.reason;
      closes = refusal.closes;
      finish(refusal.status, refusal.errorName, refusal === busy ? busyAnswer : answerOf(refusal));
    };

    let admission: Admission;
    try {
      admission = checkHead(incoming, trace);
    } catch (error) {
      refuse(error);
      return;
    }
    readBody(incoming, admission, (body) => {
      if (body instanceof Error) {
        record(incoming, trace, started, requestId, 499, 'ConnectionClosed', peer);
        return;
      }
      trace.readDone = performance.now();
      let answered: XksAnswer;
      try {
        answered = answer(incoming, trace, body);
      } catch (error) {
        refuse(error);
        return;
      }
      finish(200, null, answered);
    });
  };

  return { route: '/xks/*', owns: isXksPath, handle };
};
