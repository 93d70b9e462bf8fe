// The agent's functions called directly, without socket, threads or HTTP, on the real service in
// the same process: for unit tests of what they mean. The wire has its own tests, and the
// conformance tests go through all of it.
import { core } from '../../addon/core.ts';
import { returnValueFor } from '../../provider/agent/return-values.ts';
import { rememberingDoor } from '../../provider/agent/service/remembering-door.ts';
import type { ServiceAnswerCache } from '../../provider/agent/service/service-answer-cache.ts';
import { Connection } from '../../provider/agent/sessions/connection.ts';
import type { Account } from '../../provider/agent/sessions/user-limits.ts';
import { handlers } from '../../provider/agent/threads/dispatch.ts';
import type { CallName, Input, Output } from '../../provider/schema/calls.ts';
import { CKR, returnValueName } from '../../provider/schema/return-values.ts';
import {
  type AttributeAnswers,
  LengthOnly,
  type Mechanism,
  type MechanismParameter,
  type OutBuffer,
} from '../../provider/schema/types.ts';
import { type InProcessService, openInProcessService } from './in-process-service.ts';
import { type Row, template } from './template.ts';

export type Pair = { readonly publicKey: number; readonly privateKey: number };
export const mech = (type: number, parameter: MechanismParameter | null = null): Mechanism => ({ type, parameter });

export interface InProcessAgent {
  readonly service: InProcessService;
  readonly connection: Connection;
  readonly lines: string[];
  /** Answers the function's output, or throws an `RvError` with the name of the return value. */
  call<N extends CallName>(name: N, input: Input<N>): Promise<Output<N>>;
  /** The name of the return value. */
  rv<N extends CallName>(name: N, input: Input<N>): Promise<string>;
  /** Opens a session; read-write by default. */
  open(readWrite?: boolean): Promise<number>;
  create(session: number, ...rows: readonly Row[]): Promise<number>;
  /** A key of a mechanism that has no parameter. */
  generate(session: number, type: number, ...rows: readonly Row[]): Promise<number>;
  pair(session: number, type: number, publicRows: readonly Row[], privateRows: readonly Row[]): Promise<Pair>;
  copy(session: number, object: number, ...rows: readonly Row[]): Promise<number>;
  unwrap(
    session: number,
    mechanism: Mechanism,
    unwrappingKey: number,
    wrappedKey: Uint8Array,
    ...rows: readonly Row[]
  ): Promise<number>;
  derive(session: number, mechanism: Mechanism, baseKey: number, ...rows: readonly Row[]): Promise<number>;
  /** The name of the return value of C_SetAttributeValue. */
  set(session: number, object: number, ...rows: readonly Row[]): Promise<string>;
  read(session: number, object: number, ...types: readonly number[]): Promise<AttributeAnswers>;
}

export class RvError extends Error {
  readonly rv: string;
  constructor(rv: string) {
    super(rv);
    this.rv = rv;
  }
}

/** The name of the return value of what calls. */
export const rvOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'CKR_OK',
    (error: unknown) => {
      if (error instanceof RvError) return error.rv;
      throw error;
    },
  );

/**
 * `process`: the name of the calling process, as our library sends it; without one the peer is not
 * our library.
 */
export const startInProcess = async (
  options: { login?: boolean; process?: string; account?: Account; cache?: ServiceAnswerCache } = {},
): Promise<InProcessAgent> => {
  core.initialize({ allowUnlocked: true });
  const service = await openInProcessService();
  const { cache } = options;
  const door = cache === undefined ? service : { ...service, call: rememberingDoor(cache, service.call) };
  const lines: string[] = [];
  const surroundings = {
    open: async () => ({ id: 1, door, spinUs: 20, isTraced: false }),
    release: () => undefined,
    log: (_context: unknown, level: string, fields: object, message: string) =>
      lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
    userName: () => 'tester',
  };
  const connection = new Connection(
    1,
    { pid: 4242, uid: 1000, gid: 1000, groups: [] },
    'own',
    surroundings,
    options.account,
  );
  const call = async <N extends CallName>(name: N, input: Input<N>): Promise<Output<N>> => {
    const handler = handlers[name];
    if (handler === undefined) throw new RvError('CKR_FUNCTION_NOT_SUPPORTED');
    try {
      return await handler(connection, input);
    } catch (error) {
      const rv = returnValueName(returnValueFor(error, name));
      if (rv === 'CKR_GENERAL_ERROR') throw error;
      throw new RvError(rv);
    }
  };
  const agent: InProcessAgent = {
    service,
    connection,
    lines,
    call,
    async rv(name, input) {
      try {
        const output = await call(name, input);
        const { rv = CKR.OK } = (typeof output === 'object' && output !== null ? output : {}) as { rv?: number };
        return returnValueName(rv);
      } catch (error) {
        if (error instanceof RvError) return error.rv;
        throw error;
      }
    },
    open: (readWrite = true) => call('C_OpenSession', { slot: 0, flags: readWrite ? 6 : 4 }) as Promise<number>,
    create: (session, ...rows) => call('C_CreateObject', { session, template: template(...rows) }) as Promise<number>,
    generate: (session, type, ...rows) =>
      call('C_GenerateKey', { session, mechanism: mech(type), template: template(...rows) }) as Promise<number>,
    pair: (session, type, publicRows, privateRows) =>
      call('C_GenerateKeyPair', {
        session,
        mechanism: mech(type),
        publicTemplate: template(...publicRows),
        privateTemplate: template(...privateRows),
      }) as Promise<Pair>,
    copy: (session, object, ...rows) =>
      call('C_CopyObject', { session, object, template: template(...rows) }) as Promise<number>,
    unwrap: (session, mechanism, unwrappingKey, wrappedKey, ...rows) =>
      call('C_UnwrapKey', {
        session,
        mechanism,
        unwrappingKey,
        wrappedKey,
        template: template(...rows),
      }) as Promise<number>,
    derive: (session, mechanism, baseKey, ...rows) =>
      call('C_DeriveKey', { session, mechanism, baseKey, template: template(...rows) }) as Promise<number>,
    set: (session, object, ...rows) =>
      agent.rv('C_SetAttributeValue', { session, object, template: template(...rows) }),
    read: (session, object, ...types) => {
      const asked = types.map((type) => ({ type, capacity: 4096 }));
      return call('C_GetAttributeValue', { session, object, template: asked }) as Promise<AttributeAnswers>;
    },
  };
  const { process } = options;
  const hello = { config: '/etc/dke/pkcs11.toml', library: '1.0', pid: 4242, process, login: null, sessions: [] };
  const reserved = process === undefined ? Buffer.alloc(0) : Buffer.from(`${JSON.stringify(hello)}\0`);
  await call('C_Initialize', { handshake: Buffer.alloc(0), reservedPresent: process !== undefined, reserved });
  if (options.login !== false) {
    const session = await agent.open(false);
    await call('C_Login', { session, userType: 1, pin: Buffer.from('any') });
  }
  return agent;
};

/** The caller's buffer for bytes; null queries the length. */
export const room = (capacity: number | null): OutBuffer => ({ capacity, space: Buffer.alloc(capacity ?? 0) });

/** What a function gave out: the bytes, or the length that it wants. */
export const given = (out: OutBuffer, output: number | Uint8Array | LengthOnly): Buffer | number => {
  if (output instanceof LengthOnly) return output.length;
  return typeof output === 'number' ? Buffer.from(out.space.subarray(0, output)) : Buffer.from(output);
};
