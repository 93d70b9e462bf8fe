// The agent's view of the service: one door, through which every request on a token object goes.
// The routes and their heads are those of the TDE API's contract; nothing here knows Cryptoki, HTTP
// or threads.
//
// Failures are `ServiceError`s whose code is the service's, and `unavailable` or
// `dependency-timeout` when the service could not be reached or did not answer in time. They carry
// the id under which the server's audit log knows the call.
import { ServiceError, type ServiceErrorCode } from '../../../server/base/service-error.ts';
import type { Answers, TdeRoute, TdeRoutes } from '../../../server/contract/tde.ts';
import type { CauseName } from '../../schema/causes.ts';

export type RouteName = TdeRoute;
export type Head<R extends RouteName> = TdeRoutes[R]['head'];
export type Answer<R extends RouteName> = Answers[R];

export interface ServiceRequest<R extends RouteName = RouteName> {
  readonly route: R;
  /** The object, for routes that name one. */
  readonly handle: number | null;
  readonly head: Head<R>;
  /**
   * Data, or a sealed key. The door owns the bytes from here on and wipes them once they were sent.
   */
  readonly raw: Uint8Array<ArrayBuffer> | null;
}

export interface ServiceAnswer<R extends RouteName = RouteName> {
  readonly answer: Answer<R>;
  /** Owned by the receiver, who wipes it when it is secret. */
  readonly raw: Uint8Array;
  /** The epoch of the service's state; 0 when the answer does not tell it (`epochHeader`). */
  readonly epoch: number;
}

/** Who calls: for the server's instance list and its audit. */
export interface Caller {
  readonly requestId: string;
  /** The instance as it travels (`instanceText`), made once for all calls of a process. */
  readonly instance: string;
  /** How long the call has waited in this agent already, which is part of its time. */
  readonly waitedMs?: number;
}

/** A process that starts, and lets the agent wait for the service. */
export interface Wait {
  readonly seconds: number;
  /** How the process is named to the service. */
  readonly instance: string;
}

export interface ServiceDoor {
  call<R extends RouteName>(request: ServiceRequest<R>, caller: Caller): Promise<ServiceAnswer<R>>;
  /**
   * The caller of this request no longer waits for its answer: whatever it has created is to be
   * undone.
   */
  withdraw(caller: Caller): void;
  close(): Promise<void>;
}

/** A failure of a call, with the call's id. Its message is the line of the log. */
export class ServiceCallError extends ServiceError {
  readonly requestId: string;
  /** Why, where it is one of the causes that an administrator meets (schema/causes.ts). */
  readonly told: CauseName | null;
  /** The object that the call named. */
  readonly handle: number | null;
  constructor(
    code: ServiceErrorCode,
    message: string,
    requestId: string,
    options: {
      readonly cause?: unknown;
      readonly told?: CauseName | null;
      readonly handle?: number | null;
      readonly reason?: string | null;
    } = {},
  ) {
    super(code, message, {
      cause: options.cause,
      ...(typeof options.reason === 'string' ? { reason: options.reason } : {}),
    });
    this.requestId = requestId;
    this.told = options.told ?? null;
    this.handle = options.handle ?? null;
  }
}
