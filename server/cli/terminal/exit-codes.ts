// The classes of failure of the `dke` command, one exit code each. Those of a server that cannot
// start (base/start-error.ts) keep their numbers here; docs/command.md lists them all.

import type { ServiceErrorCode } from '../../base/service-error.ts';
import { exitCodes as startCodes } from '../../base/start-error.ts';

export const exitCodes = {
  ok: 0,
  ...startCodes,
  unreachable: 8, // no answer: address, TLS, time-out, or a service that is not ready
  denied: 9, // no token, or one that is not valid or may not do this
  'not-found': 10,
  refused: 11, // the state does not allow it
  'checks-failed': 12, // `dke doctor` or `dke provider check` found something
  waiting: 13, // nothing was changed yet: others must approve it (dual control)
  'may-exist': 14, // a secret may have been created that was not shown: a repeat creates a second
} as const;

export type ExitClass = keyof typeof exitCodes;

/** The class of each error code of the service. 'config' is what is wrong in what was asked. */
export const classOfProblem = {
  validation: 'config',
  unauthenticated: 'denied',
  forbidden: 'denied',
  'sign-in-incomplete': 'denied',
  'not-found': 'not-found',
  'key-not-found': 'not-found',
  'key-disabled': 'refused',
  'key-destroyed': 'refused',
  'key-usage': 'refused',
  'key-tampered': 'refused',
  conflict: 'refused',
  'label-exists': 'refused',
  'precondition-failed': 'refused',
  'precondition-required': 'config',
  'invalid-ciphertext': 'config',
  'data-length': 'config',
  unsupported: 'config',
  'payload-too-large': 'config',
  'rate-limited': 'unreachable',
  'dependency-timeout': 'unreachable',
  unavailable: 'unreachable',
  internal: 'internal',
} as const satisfies Record<ServiceErrorCode, ExitClass>;

export interface ErrorDetails {
  readonly hint?: string | undefined;
  readonly requestId?: string | undefined;
  readonly code?: ServiceErrorCode | undefined;
  readonly mayBeDone?: boolean;
  readonly passes?: boolean;
}

/** Ends a command: one line that says what is wrong, one that says what to do about it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitClass: ExitClass;
  readonly hint: string | undefined;
  /** The id under which the service's logs have it. */
  readonly requestId: string | undefined;
  /** The service's own, when it has answered. */
  readonly code: ServiceErrorCode | undefined;
  /** The request reached the service, or may have: what it asks for may be done. */
  readonly mayBeDone: boolean;
  /** May be over soon: the service or the way to it is away, or it is asked too often. */
  readonly passes: boolean;

  constructor(exitClass: ExitClass, message: string, more: ErrorDetails = {}) {
    super(message);
    this.exitClass = exitClass;
    this.hint = more.hint;
    this.requestId = more.requestId;
    this.code = more.code;
    this.mayBeDone = more.mayBeDone ?? false;
    this.passes = more.passes ?? false;
  }
}

/**
 * What answered is not this service, or not its API. `hint`: what to do, where it is not the
 * address.
 */
export const notOurs = (hint = 'check --server (or DKE_SERVER)'): CommandError =>
  new CommandError('unreachable', "the answer is not from this service's API", { hint });
