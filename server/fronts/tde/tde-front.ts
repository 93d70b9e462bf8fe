// The TDE API (contract/tde.ts): what the agent on a database host calls. Envelopes in and out;
// data and key bytes stay buffers, wiped after use. Errors are problem documents. On Node's own
// request and response, as the XKS proxy is: Web objects would cost more than the work itself
// (docs/decisions/0001). Leaves out every decision: those are operations.

import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { markProven } from '../../base/connection-proof.ts';
import { countRefusal, type LimitRefusals } from '../../base/limit-refusals.ts';
import { ServiceError } from '../../base/service-error.ts';
import { pendingHeaders } from '../../contract/pending-nodes.ts';
import {
  type Answers,
  boundTo,
  decodeHead,
  encodeAnswer,
  envelopeType,
  epochHeader,
  type Heads,
  keyForServiceInfo,
  maxEnvelope,
  onceHeader,
  onceRoutes,
  packEnvelope,
  requestKey,
  splitEnvelope,
  type TdeRoute,
  unpackEnvelope,
  unpackSealed,
} from '../../contract/tde.ts';
import { mostValueBytes, packHeldAnswers, packValues, unpackHandles, unpackHeld } from '../../contract/tde-held.ts';
import type { MadeKey, Operations, ShownCertificate, TdeCaller } from '../../operations/index.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { SealedKey } from '../../ports/key-ring.ts';
import type { Log } from '../../ports/log.ts';
import { admitCaller } from '../shared/admission.ts';
import type { RawFront } from '../shared/dispatch.ts';
import { createOutbox, endInPieces, isLongAnswer } from '../shared/outbox.ts';
import { retryAfterOf } from '../shared/problem.ts';
import { readBody } from '../shared/read-body.ts';
import { asServiceError, toProblem } from './tde-problem.ts';
import {
  checkHeadSize,
  createInstances,
  isTdePath,
  parseTdePath,
  type TdePath,
  toDestination,
  toSealTo,
} from './tde-request.ts';

export interface TdeFrontOptions {
  readonly operations: Operations;
  readonly core: Pick<CryptoCore, 'wipe'>;
  readonly log: Log;
  readonly requestId: () => string;
  /**
   * Told of every request when its answer leaves: the route (or `unknown`), the status, and how
   * long it took.
   */
  readonly observe: (route: TdeRoute | 'unknown', status: number, durationMs: number) => void;
  readonly refused?: LimitRefusals['refused'];
  /**
   * Told of each request when it begins; the trace says more when it ends. Absent: it is not
   * observed.
   */
  readonly describe?: ((incoming: IncomingMessage, trace: TdeTrace) => void) | undefined;
  /** What an answer says of the state of the service's objects. */
  readonly epoch: () => number;
}

interface Call<R extends TdeRoute> {
  readonly caller: TdeCaller;
  readonly handle: number;
  readonly head: Heads[R];
  readonly raw: Buffer;
  /** The raw bytes as a key that was sealed for this very request. Throws 'validation'. */
  readonly sealedKey: () => SealedKey;
}
interface Reply<R extends TdeRoute> {
  readonly head: Answers[R];
  readonly raw?: Buffer;
}
type Handlers = { readonly [R in TdeRoute]: (call: Call<R>) => Promise<Reply<R>> };

/** Splits u32 length, signature, data. */
const splitSignature = (raw: Buffer): { readonly signature: Buffer; readonly data: Buffer } => {
  const length = raw.length < 4 ? undefined : raw.readUInt32BE(0);
  if (length === undefined || length > raw.length - 4)
    throw new ServiceError('validation', 'the signature is longer than the body');
  return { signature: raw.subarray(4, 4 + length), data: raw.subarray(4 + length) };
};

const keyInfo = Buffer.from(keyForServiceInfo);

const readSealedKey = (raw: Buffer, bound: Buffer): SealedKey => {
  try {
    return { ...unpackSealed(raw), info: keyInfo, bound };
  } catch (error) {
    throw new ServiceError('validation', 'the body contains no sealed key', { cause: error });
  }
};

const partOf = ({ state, last }: { readonly state: string; readonly last: boolean }, input: Buffer) => ({
  state: Buffer.from(state, 'base64'),
  last,
  input,
});

const createHandlers = (tde: Operations['tde'], core: Pick<CryptoCore, 'wipe'>): Handlers => ({
  info: async ({ caller }) => {
    const { recipient, ...info } = await tde.info(caller);
    const publicKey = Buffer.from(recipient.publicKey).toString('base64');
    return { head: { ...info, recipient: { epoch: recipient.epoch, publicKey } } };
  },
  generateKey: async ({ caller, head }) => ({ head: await tde.generateKey(caller, head) }),
  generateKeyPair: async ({ caller, head }) => ({ head: await tde.generateKeyPair(caller, head) }),
  createObject: async ({ caller, head, raw, sealedKey }) => ({
    head:
      head.class === 'secret-key' || head.class === 'private-key'
        ? await tde.importKey(caller, head, sealedKey())
        : await tde.createObject(caller, head, raw),
  }),
  findObjects: async ({ caller, head }) => ({ head: await tde.findObjects(caller, head) }),
  getObject: async ({ caller, handle }) => ({ head: await tde.getObject(caller, handle) }),
  readValue: async ({ caller, handle, head: { recipient } }) => ({
    head: {},
    raw: await tde.readValue(caller, handle, recipient === undefined ? undefined : toSealTo(recipient)),
  }),
  updateObject: async ({ caller, handle, head: { replacesValue, ...change }, raw }) => ({
    head: await tde.updateObject(caller, handle, change, replacesValue === true ? raw : undefined),
  }),
  destroyObject: async ({ caller, handle }) => {
    await tde.destroyObject(caller, handle);
    return { head: {} };
  },
  withdraw: async ({ caller, head }) => ({ head: { outcome: await tde.withdraw(caller, head.key) } }),
  checkUse: async ({ caller, handle, head }) => {
    await tde.checkUse(caller, handle, head.usage);
    return { head: {} };
  },
  refresh: async ({ caller, raw }) => ({
    head: {},
    raw: packHeldAnswers(await tde.refresh(caller, unpackHeld(raw))),
  }),
  readValues: async ({ caller, raw }) => {
    const values = await tde.readValues(caller, unpackHandles(raw), mostValueBytes);
    const packed = packValues(values);
    for (const { value } of values) core.wipe(value);
    return { head: {}, raw: packed };
  },
  encrypt: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw: await tde.encrypt(caller, handle, head, raw),
  }),
  decrypt: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw:
      'padding' in head
        ? await tde.decryptWithPrivateKey(caller, handle, head, raw)
        : await tde.decrypt(caller, handle, head, raw),
  }),
  cipherPart: async ({ caller, handle, head: { use, cipher, ...part }, raw }) => {
    const { state, output } = await tde.cipherPart(caller, handle, use, cipher, partOf(part, raw));
    return { head: { state: state.toString('base64') }, raw: output };
  },
  sign: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw:
      head.algorithm === 'hmac' || head.algorithm === 'aes-cmac'
        ? await tde.sign(caller, handle, head, raw)
        : await tde.signWithPrivateKey(caller, handle, head, raw),
  }),
  verify: async ({ caller, handle, head: { length, ...mac }, raw }) => {
    const { signature, data } = splitSignature(raw);
    await tde.verify(caller, handle, mac, data, signature, length);
    return { head: {} };
  },
  macPart: async ({ caller, handle, head: { use, mac, length, ...part }, raw }) => {
    if (use === 'sign') {
      const answer = await tde.signPart(caller, handle, mac, partOf(part, raw));
      return part.last ? { head: { state: '' }, raw: answer } : { head: { state: answer.toString('base64') } };
    }
    const { signature, data } = part.last ? splitSignature(raw) : { signature: null, data: raw };
    const state = await tde.verifyPart(caller, handle, mac, partOf(part, data), signature, length);
    return { head: { state: state.toString('base64') } };
  },
  wrap: async ({ caller, handle, head: { mechanism, key }, sealedKey }) => ({
    head: {},
    raw: await tde.wrap(caller, handle, mechanism, key.from === 'token' ? key : { ...key, key: sealedKey() }),
  }),
  unwrap: async ({ caller, handle, head: { mechanism, into }, raw }) =>
    made(await tde.unwrap(caller, handle, mechanism, raw, toDestination(into))),
  derive: async ({ caller, handle, head: { mechanism, into }, raw }) =>
    made(
      await tde.derive(
        caller,
        handle,
        mechanism.way === 'encryption' ? { ...mechanism, data: raw } : mechanism,
        toDestination(into),
      ),
    ),
});

const made = ({ object, sealed }: MadeKey): Reply<'unwrap'> & Reply<'derive'> => {
  const head = { object };
  return sealed === null ? { head } : { head, raw: sealed };
};

const parseHandle = (text: string | undefined): number => {
  if (text === undefined) return 0;
  const handle = /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : 0;
  if (handle < 1 || handle > 0x7fffffff) throw new ServiceError('key-not-found', 'object not found');
  return handle;
};

/** Routes whose raw answer is not secret. */
const open: ReadonlySet<TdeRoute> = new Set(['encrypt', 'sign', 'wrap', 'refresh']);

/** Routes that change what other nodes have in memory. */
const changing: ReadonlySet<TdeRoute> = new Set([...onceRoutes, 'destroyObject', 'withdraw', 'wrap']);

export interface TdeTrace {
  readonly requestId: string;
  readonly started: number;
  /** Asked before the state that the answer tells: a change in between is newer than the number. */
  readonly epoch: number;
  /** The id of the application, once it is known. */
  caller: string | null;
  route: TdeRoute | 'unknown';
  /** Headers that name the nodes that have not confirmed the change, or say when to ask again. */
  pending: ReturnType<typeof pendingHeaders>;
}

/** The certificate that the connection has shown, read once. Without TLS there is none. */
const createShownCertificates = (): ((socket: Socket) => ShownCertificate | null) => {
  const known = new WeakMap<Socket, ShownCertificate | null>();
  return (socket) => {
    let shown = known.get(socket);
    if (shown === undefined) {
      const certificate = (socket as Partial<TLSSocket>).getPeerX509Certificate?.();
      shown =
        certificate === undefined
          ? null
          : {
              fingerprint: certificate.fingerprint256,
              beginsAt: Date.parse(certificate.validFrom),
              endsAt: Date.parse(certificate.validTo),
            };
      known.set(socket, shown);
    }
    return shown;
  };
};

/** Finds out who calls. Throws 'unauthenticated'. */
const authenticator = (tde: Operations['tde']) => {
  const instances = createInstances();
  const certificateOf = createShownCertificates();
  return ({ headers, socket }: IncomingMessage, { accessGuid, appId }: TdePath, id: string): Promise<TdeCaller> => {
    const bearer = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? '')?.[1];
    if (bearer === undefined || bearer !== accessGuid)
      throw new ServiceError('unauthenticated', 'the access token is not valid', {
        hint: 'write the same access_guid into access_token and server_url of pkcs11.toml',
      });
    const instance = instances.parse(headers['x-dke-instance']);
    return tde.authenticate({
      accessGuid: bearer,
      appId,
      instance,
      requestId: id,
      peer: socket.remoteAddress ?? null,
      certificate: () => certificateOf(socket),
    });
  };
};

const unpack = (body: Buffer): ReturnType<typeof unpackEnvelope> => {
  try {
    checkHeadSize(splitEnvelope(body).json);
    return unpackEnvelope(body);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('validation', 'the body is not an envelope', { cause: error });
  }
};

/**
 * What a repeat must ask for, too. The raw bytes may be a key's value: no digest of them is kept.
 */
const fingerprint = (route: TdeRoute, handle: number, body: Buffer, raw: Buffer): string =>
  createHash('sha256')
    .update(`${route}\n${handle}\n${raw.length}\n`)
    .update(body.subarray(0, body.length - raw.length))
    .digest('base64url');

/** Checks a request's body and headers, and carries it out. */
const runner = (tde: Operations['tde'], core: Pick<CryptoCore, 'wipe'>) => {
  const handlers = createHandlers(tde, core);
  return <R extends TdeRoute>(
    route: R,
    caller: TdeCaller,
    handle: number,
    body: Buffer,
    key: string | string[] | undefined,
  ): Promise<Reply<R>> => {
    const { head, json, raw } = unpack(body);
    const once = typeof key === 'string' && onceRoutes.has(route) ? key : '';
    const sealedKey = (): SealedKey => readSealedKey(raw, boundTo(caller.application.id, route, handle, once, json));
    const call = { handle, head: decodeHead(route, head), raw, sealedKey };
    if (key === undefined || !onceRoutes.has(route)) return handlers[route]({ caller, ...call });
    if (typeof key !== 'string' || !requestKey.test(key))
      throw new ServiceError('validation', `${onceHeader} must be 1 to 128 letters, digits and ._:-`);
    return handlers[route]({
      caller: { ...caller, once: { key, fingerprint: fingerprint(route, handle, body, raw) } },
      ...call,
    });
  };
};

export type TdeFront = RawFront;

export const createTdeFront = (options: TdeFrontOptions): TdeFront => {
  const { operations, core, log, requestId, epoch, observe, refused, describe } = options;
  const outbox = createOutbox();
  const wipe = (buffer: Uint8Array): void => core.wipe(buffer);

  const idOf = ({ headers }: IncomingMessage): string => {
    const given = headers['x-request-id'];
    return typeof given === 'string' && requestKey.test(given) ? given : requestId();
  };

  const authenticate = authenticator(operations.tde);
  const run = runner(operations.tde, core);

  const answer = async (
    incoming: IncomingMessage,
    id: string,
    trace: TdeTrace,
  ): Promise<{ readonly route: TdeRoute; readonly reply: Reply<TdeRoute> }> => {
    const path = parseTdePath(incoming.url ?? '');
    if (path === null || incoming.method !== 'POST') throw new ServiceError('not-found', 'path not found');
    trace.route = path.route;
    const caller = await authenticate(incoming, path, id);
    markProven(incoming.socket, caller.application.id, caller.application.tenantId);
    trace.caller = caller.application.id;
    if (incoming.headers['content-type'] !== envelopeType)
      throw new ServiceError('validation', `the content type must be ${envelopeType}`);
    const isThere = incoming.complete;
    const body = await readBody(incoming, maxEnvelope, admitCaller(caller.application), wipe);
    try {
      // A body may come long after its head: what was changed in the meantime counts.
      const callerNow = isThere ? caller : await authenticate(incoming, path, id);
      const key = incoming.headers[onceHeader.toLowerCase()];
      const work = () => run(path.route, callerNow, parseHandle(path.handle), body, key);
      if (!changing.has(path.route)) return { route: path.route, reply: await work() };
      const observed = await operations.observe(work);
      trace.pending = pendingHeaders(observed.pendingNodes, observed.pendingUntil);
      if ('refusal' in observed) throw observed.refusal;
      return { route: path.route, reply: observed.value };
    } finally {
      wipe(body);
    }
  };

  const send = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    id: string,
    trace: TdeTrace,
    status: number,
    type: string,
    body: Buffer,
    secret: boolean,
  ): void => {
    const headers: (string | number)[] = [
      'Content-Type',
      type,
      'Content-Length',
      body.length,
      'X-Request-Id',
      id,
      epochHeader,
      trace.epoch,
    ];
    for (const header of trace.pending) headers.push(...header);
    // What was not read of a request cannot be told from the next one.
    if (!incoming.complete && incoming.httpVersionMajor === 1) headers.push('Connection', 'close');
    outbox(() => {
      outgoing.writeHead(status, headers as string[]);
      // Head and body leave in one piece when the body is text. What is secret never becomes text.
      if (secret) outgoing.once('close', () => wipe(body));
      if (isLongAnswer(body.length)) {
        endInPieces(outgoing, body);
      } else if (secret) {
        outgoing.end(body);
      } else {
        outgoing.end(body.toString('latin1'), 'latin1');
      }
      observe(trace.route, status, performance.now() - trace.started);
    });
  };

  const refuse = (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    id: string,
    trace: TdeTrace,
    error: unknown,
  ): void => {
    const known = asServiceError(error);
    // The URL holds the access_guid: the log names the route by the id of the request only.
    if (known.code === 'internal') log.error('a TDE request failed', { requestId: id, error });
    else log.debug('a TDE request was refused', { requestId: id, code: known.code });
    countRefusal(known, refused, incoming.socket.remoteAddress ?? null);
    const { status, body } = toProblem(known, id);
    const retryAfter = retryAfterOf(known);
    if (retryAfter !== undefined) trace.pending = [...trace.pending, ['Retry-After', String(retryAfter)]];
    send(incoming, outgoing, id, trace, status, 'application/problem+json', Buffer.from(JSON.stringify(body)), false);
  };

  return {
    route: '/tde/v1/*',
    owns: isTdePath,
    handle: (incoming, outgoing) => {
      const id = idOf(incoming);
      const started = performance.now();
      const trace: TdeTrace = { requestId: id, started, epoch: epoch(), caller: null, route: 'unknown', pending: [] };
      describe?.(incoming, trace);
      answer(incoming, id, trace)
        .then(({ route, reply: { head, raw } }) => {
          const packed = packEnvelope(encodeAnswer(route, head), raw);
          if (raw !== undefined) wipe(raw);
          send(incoming, outgoing, id, trace, 200, envelopeType, packed, raw !== undefined && !open.has(route));
        })
        .catch((error: unknown) => refuse(incoming, outgoing, id, trace, error));
    },
  };
};
