// What the agent's two threads say to each other. The socket thread (socket-thread.ts) carries
// Cryptoki; the main thread (main-thread.ts) carries everything that waits: HTTPS, files, logs,
// time. Bytes are transferred, not copied.
import type { MessagePort } from 'node:worker_threads';
import type { Peer } from '../../../addon/core.ts';
import { createFairQueue } from '../../../server/base/fair-queue.ts';
import type { ServiceErrorCode } from '../../../server/base/service-error.ts';
import type { CauseName } from '../../schema/causes.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import { LoggedError } from '../causes.ts';
import { rememberingDoor } from '../service/remembering-door.ts';
import { ServiceAnswerCache } from '../service/service-answer-cache.ts';
import {
  type Caller,
  type RouteName,
  type ServiceAnswer,
  ServiceCallError,
  type ServiceDoor,
  type ServiceRequest,
  type Wait,
} from '../service/service-door.ts';
import type { Context } from '../sessions/connection.ts';
import type { LogLevel } from '../settings/config.ts';
import { limits } from '../settings/limits.ts';
import { LineShares, linesLeftOut } from '../settings/line-shares.ts';
import type { LogFields } from '../settings/log.ts';

/** From the socket thread to the main thread. */
export type Question =
  | {
      readonly kind: 'open';
      readonly id: number;
      readonly config: string | null;
      readonly peer: Peer;
      readonly wait: Wait | null;
    }
  | {
      readonly kind: 'call';
      readonly id: number;
      readonly context: number;
      readonly request: ServiceRequest;
      readonly caller: Caller;
    };
export type Notice =
  | { readonly kind: 'listening'; readonly server: number }
  | { readonly kind: 'connections'; readonly count: number }
  | { readonly kind: 'withdraw'; readonly context: number; readonly caller: Caller }
  | { readonly kind: 'release'; readonly context: number }
  | {
      readonly kind: 'log';
      readonly context: number | null;
      readonly level: LogLevel;
      readonly fields: LogFields;
      readonly message: string;
    };
export type LogNotice = Extract<Notice, { readonly kind: 'log' }>;
export type ToHost = Question | Notice;

/** From the main thread to the socket thread: answers to questions, by their id. */
export type Reply =
  | {
      readonly id: number;
      readonly kind: 'opened';
      readonly context: number;
      readonly spinUs: number;
      readonly isTraced: boolean;
      readonly keyCheckMs: number;
    }
  | { readonly id: number; readonly kind: 'refused'; readonly told: CauseName | null; readonly message: string }
  /** Not an answer: what the open configurations of a user hold has changed by so many bytes. */
  | { readonly id: 0; readonly kind: 'held'; readonly uid: number; readonly bytes: number }
  | {
      readonly id: number;
      readonly kind: 'answered';
      readonly answer: unknown;
      readonly raw: Uint8Array<ArrayBuffer>;
      readonly epoch: number;
    }
  | {
      readonly id: number;
      readonly kind: 'failed';
      readonly code: ServiceErrorCode;
      readonly message: string;
      readonly requestId: string;
      readonly told: CauseName | null;
      /** The service's, which tells what to do about the code. */
      readonly reason: string | null;
    };

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

interface Waiting {
  readonly resolve: (reply: Reply) => void;
}

/** The socket thread's end: asks, and matches replies with who asked. */
export class HostPort {
  readonly #port: MessagePort;
  readonly #held: (uid: number, bytes: number) => void;
  readonly #waiting = new Map<number, Waiting>();
  /**
   * The cache of the service's answers for each context, by its id, with the number of its
   * processes.
   */
  readonly #caches = new Map<number, { readonly cache: ServiceAnswerCache; users: number }>();
  /**
   * The main thread has so many of each configuration, so that no other user's wait behind all of
   * them.
   */
  readonly #calls = createFairQueue({
    running: Number.POSITIVE_INFINITY,
    runningEach: limits.callsAtOnce.most,
    waiting: Number.POSITIVE_INFINITY,
  });
  readonly #lines = new LineShares();
  #next = 1;

  /** `held` hears how many bytes more the open configurations of a user hold. */
  constructor(port: MessagePort, held: (uid: number, bytes: number) => void) {
    this.#port = port;
    this.#held = held;
  }

  tell(notice: Notice): void {
    this.#port.postMessage(notice);
  }

  /**
   * A line of the log. What another user's processes cause is bounded here, before it waits for the
   * main thread.
   */
  log(line: Omit<LogNotice, 'kind'>): void {
    const { uid } = line.fields;
    if (typeof uid === 'number' && uid !== process.geteuid?.()) {
      const { admitted, left } = this.#lines.take(uid);
      if (!admitted) return;
      if (left > 0)
        this.tell({ ...line, kind: 'log', level: 'warn', fields: { uid, count: left }, message: linesLeftOut });
    }
    this.tell({ kind: 'log', ...line });
  }

  async open(config: string | null, peer: Peer, wait: Wait | null): Promise<Context> {
    const reply = await this.#ask({ kind: 'open', config, peer, wait });
    // The errors of the configuration are in the log: the main thread, which checked it, wrote them
    // there.
    if (reply.kind !== 'opened') {
      const { told, message } = reply.kind === 'refused' ? reply : { told: null, message: '' };
      const rv = told === 'user-limit' ? CKR.DEVICE_MEMORY : CKR.DEVICE_ERROR;
      throw new LoggedError(rv, 'the configuration cannot be used', message);
    }
    const { context, spinUs, keyCheckMs, isTraced } = reply;
    let known = this.#caches.get(context);
    if (known === undefined) {
      known = { cache: new ServiceAnswerCache(keyCheckMs, () => performance.now()), users: 0 };
      this.#caches.set(context, known);
    }
    known.users++;
    return { id: context, door: this.#door(context, known.cache), spinUs, isTraced };
  }

  /** A process no longer uses a context. What was remembered for it goes with the last one. */
  release(context: number): void {
    const known = this.#caches.get(context);
    if (known !== undefined && --known.users === 0) {
      known.cache.close();
      this.#caches.delete(context);
    }
    this.tell({ kind: 'release', context });
  }

  /**
   * The service through the main thread. What one process has learned counts for all that share the
   * configuration.
   */
  #door(context: number, cache: ServiceAnswerCache): ServiceDoor {
    const ask = async <R extends RouteName>(request: ServiceRequest<R>, caller: Caller): Promise<ServiceAnswer<R>> => {
      const { raw } = request;
      const askedAt = performance.now();
      const reply = await this.#calls.run(() => {
        const waitedMs = performance.now() - askedAt;
        const question = { kind: 'call', context, request, caller: { ...caller, waitedMs } } as const;
        return this.#ask(question, raw === null ? [] : [raw.buffer]);
      }, String(context));
      switch (reply.kind) {
        case 'answered':
          return { answer: reply.answer as ServiceAnswer<R>['answer'], raw: reply.raw, epoch: reply.epoch };
        case 'failed':
          throw new ServiceCallError(reply.code, reply.message, reply.requestId, {
            told: reply.told,
            reason: reply.reason,
            handle: request.handle,
          });
        default:
          throw new CryptokiError(CKR.GENERAL_ERROR, 'the main thread has answered another request');
      }
    };
    return {
      call: rememberingDoor(cache, ask),
      withdraw: (caller) => this.tell({ kind: 'withdraw', context, caller }),
      close: async () => undefined,
    };
  }

  #ask(question: DistributiveOmit<Question, 'id'>, transfer: ArrayBuffer[] = []): Promise<Reply> {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, { resolve });
      this.#port.postMessage({ id, ...question }, transfer);
    });
  }

  /** Delivers a reply to its caller. */
  deliver(reply: Reply): void {
    if (reply.kind === 'held') {
      this.#held(reply.uid, reply.bytes);
      return;
    }
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    waiting?.resolve(reply);
  }
}
