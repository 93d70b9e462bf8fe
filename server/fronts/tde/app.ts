// The TDE API (contract/tde.ts): what the agent on a database host calls. Envelopes in and out; data and key bytes stay
// buffers, wiped after use. Errors are problem documents. Leaves out every decision: those are operations.

import { type Context, Hono } from 'hono';
import { toRfc3339 } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';
import type { MadeKey, Operations, TdeCaller, VisibleObject } from '../../operations/index.ts';
import type { CryptoCore } from '../../ports/crypto-core.ts';
import type { Log } from '../../ports/log.ts';
import {
  envelopeType,
  maxEnvelope,
  packEnvelope,
  type TdeRoutes,
  type TokenObject,
  tdeRoutes,
  unpackEnvelope,
} from '../contract/tde.ts';
import { readBody } from './body.ts';
import { asServiceError, toProblem } from './errors.ts';
import {
  type Heads,
  parseHead,
  parseInstance,
  toCipherParameters,
  toDeriveMechanism,
  toDestination,
  toMacParameters,
  toOaepParameters,
  toSignatureParameters,
  toWrapMechanism,
} from './heads.ts';

export interface TdeFrontOptions {
  readonly operations: Operations;
  readonly core: Pick<CryptoCore, 'wipe'>;
  readonly log: Log;
  readonly requestId: () => string;
  /** Address of the peer of a request, where the server knows it. */
  readonly peerOf: (context: Context) => string | null;
  /** Runs once the answer has been handed to the socket. */
  readonly afterSent: (context: Context, done: () => void) => void;
}

const toTokenObject = (object: VisibleObject): TokenObject => ({
  handle: object.handle,
  id: object.id,
  class: object.class,
  label: object.label,
  algorithm: object.algorithm,
  bits: object.bits,
  usages: object.usages,
  sensitive: object.sensitive,
  extractable: object.extractable,
  modifiable: object.modifiable,
  destroyable: object.destroyable,
  local: object.local,
  private: object.private,
  checkValue: object.checkValue,
  publicKey: object.publicKey,
  attributes: object.attributes,
  createdAt: toRfc3339(object.createdAt),
  state: object.state === 'destroyed' ? 'soft-deleted' : object.state,
  owned: object.owned,
});

interface Call<R extends keyof TdeRoutes> {
  readonly caller: TdeCaller;
  readonly handle: number;
  readonly head: Heads[R];
  readonly raw: Buffer;
}
interface Reply<R extends keyof TdeRoutes> {
  readonly head: TdeRoutes[R]['answer'];
  readonly raw?: Buffer;
}
type Handlers = { readonly [R in keyof TdeRoutes]: (call: Call<R>) => Promise<Reply<R>> };

/** Splits u32 length, signature, data. */
const splitSignature = (raw: Buffer): { readonly signature: Buffer; readonly data: Buffer } => {
  const length = raw.length < 4 ? undefined : raw.readUInt32BE(0);
  if (length === undefined || length > raw.length - 4)
    throw new ServiceError('validation', 'the signature is longer than the body');
  return { signature: raw.subarray(4, 4 + length), data: raw.subarray(4 + length) };
};

const createHandlers = (tde: Operations['tde']): Handlers => ({
  info: async ({ caller }) => ({ head: await tde.info(caller) }),
  generateKey: async ({ caller, head }) => ({ head: toTokenObject(await tde.generateKey(caller, head)) }),
  generateKeyPair: async ({ caller, head }) => {
    const { privateKey, publicKey } = await tde.generateKeyPair(caller, head);
    return {
      head: {
        privateKey: toTokenObject(privateKey),
        publicKey: publicKey === null ? null : toTokenObject(publicKey),
      },
    };
  },
  createObject: async ({ caller, head, raw }) => ({ head: toTokenObject(await tde.createObject(caller, head, raw)) }),
  findObjects: async ({ caller, head }) => {
    const { objects, more } = await tde.findObjects(caller, head);
    return { head: { objects: objects.map(toTokenObject), more } };
  },
  getObject: async ({ caller, handle }) => ({ head: toTokenObject(await tde.getObject(caller, handle)) }),
  readValue: async ({ caller, handle }) => ({ head: {}, raw: await tde.readValue(caller, handle) }),
  updateObject: async ({ caller, handle, head }) => ({
    head: toTokenObject(await tde.updateObject(caller, handle, head)),
  }),
  destroyObject: async ({ caller, handle }) => {
    await tde.destroyObject(caller, handle);
    return { head: {} };
  },
  checkUse: async ({ caller, handle, head }) => {
    await tde.checkUse(caller, handle, head.usage);
    return { head: {} };
  },
  encrypt: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw: await tde.encrypt(caller, handle, toCipherParameters(head), raw),
  }),
  decrypt: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw:
      head.mode === 'oaep'
        ? await tde.decryptOaep(caller, handle, toOaepParameters(head), raw)
        : await tde.decrypt(caller, handle, toCipherParameters(head), raw),
  }),
  sign: async ({ caller, handle, head, raw }) => ({
    head: {},
    raw:
      head.algorithm === 'hmac' || head.algorithm === 'cmac'
        ? await tde.sign(caller, handle, toMacParameters(head), raw)
        : await tde.signWithPrivateKey(caller, handle, toSignatureParameters(head), raw),
  }),
  verify: async ({ caller, handle, head, raw }) => {
    const { signature, data } = splitSignature(raw);
    await tde.verify(caller, handle, toMacParameters(head), data, signature, head.length);
    return { head: {} };
  },
  wrap: async ({ caller, handle, head: { mechanism, key }, raw }) => ({
    head: {},
    raw: await tde.wrap(
      caller,
      handle,
      toWrapMechanism(mechanism),
      key.from === 'token' ? key : { ...key, value: raw },
    ),
  }),
  unwrap: async ({ caller, handle, head: { mechanism, into }, raw }) =>
    made(await tde.unwrap(caller, handle, toWrapMechanism(mechanism), raw, toDestination(into))),
  derive: async ({ caller, handle, head: { mechanism, into }, raw }) =>
    made(await tde.derive(caller, handle, toDeriveMechanism(mechanism, raw), toDestination(into))),
});

const made = ({ object, sealed }: MadeKey): Reply<'unwrap'> & Reply<'derive'> => {
  const head = { object: object === null ? null : toTokenObject(object) };
  return sealed === null ? { head } : { head, raw: sealed };
};

const requestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/;

const parseHandle = (text: string | undefined): number => {
  if (text === undefined) return 0;
  const handle = /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : 0;
  if (handle < 1 || handle > 0x7fffffff) throw new ServiceError('key-not-found', 'no such object');
  return handle;
};

/** Mounted at /tde/v1. */
export const createTdeApp = ({ operations, core, log, requestId, peerOf, afterSent }: TdeFrontOptions): Hono => {
  const handlers = createHandlers(operations.tde);
  const app = new Hono();
  const wipe = (buffer: Uint8Array): void => core.wipe(buffer);

  const idOf = (c: Context): string => {
    const given = c.req.header('x-request-id');
    return given !== undefined && requestIdPattern.test(given) ? given : requestId();
  };
  const problem = (c: Context, id: string, error: unknown): Response => {
    const known = asServiceError(error);
    // The URL holds the access_guid: the log names the route by the id of the request only.
    if (known.code === 'internal') log.error('a TDE request failed', { requestId: id, error });
    else log.debug('a TDE request was refused', { requestId: id, code: known.code });
    const { status, body } = toProblem(known, id);
    return c.body(JSON.stringify(body), status, { 'Content-Type': 'application/problem+json', 'X-Request-Id': id });
  };

  const authenticate = async (c: Context, id: string): Promise<TdeCaller> => {
    const inPath = c.req.param('access_guid') ?? '';
    const bearer = /^Bearer ([^\s]+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
    if (bearer === undefined || bearer !== inPath)
      throw new ServiceError('unauthenticated', 'the access token does not hold', {
        hint: 'access_token and the access_guid in server_url must be the same',
      });
    return operations.tde.authenticate({
      accessGuid: bearer,
      appId: c.req.param('app_id') ?? '',
      instance: parseInstance(c.req.header('x-dke-instance')),
      requestId: id,
      peer: peerOf(c),
    });
  };

  const unpack = (body: Buffer): { readonly head: unknown; readonly raw: Buffer } => {
    try {
      return unpackEnvelope(body);
    } catch (error) {
      throw new ServiceError('validation', 'the body is not an envelope', { cause: error });
    }
  };

  const register = <R extends keyof TdeRoutes>(route: R): void => {
    const handler = handlers[route];
    const serve = async (c: Context): Promise<Response> => {
      const id = idOf(c);
      let body: Buffer | undefined;
      try {
        const caller = await authenticate(c, id);
        if (c.req.header('content-type') !== envelopeType)
          throw new ServiceError('validation', `the content type is ${envelopeType}`);
        body = await readBody(c.req.raw, maxEnvelope, wipe);
        const { head, raw } = unpack(body);
        const reply = await handler({
          caller,
          handle: parseHandle(c.req.param('handle')),
          head: parseHead(route, head),
          raw,
        });
        const packed = packEnvelope(reply.head, reply.raw);
        if (reply.raw !== undefined) {
          wipe(reply.raw);
          afterSent(c, () => wipe(packed));
        }
        const answer = new Uint8Array(packed.buffer as ArrayBuffer, packed.byteOffset, packed.byteLength);
        return c.body(answer, 200, { 'Content-Type': envelopeType, 'X-Request-Id': id });
      } catch (error) {
        return problem(c, id, error);
      } finally {
        if (body !== undefined) wipe(body);
      }
    };
    app.post(`/:access_guid/:app_id${tdeRoutes[route].path}`, serve);
  };
  for (const route of Object.keys(tdeRoutes) as (keyof TdeRoutes)[]) register(route);

  // Mounted apps have no notFound of their own: without this row the console's pages would answer here.
  app.all('*', (c) => problem(c, idOf(c), new ServiceError('not-found', 'no such path')));
  app.onError((error, c) => problem(c, idOf(c), error));
  return app;
};
