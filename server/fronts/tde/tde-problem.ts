// Service errors as RFC 9457 problem documents of the TDE API. The agent goes by `code`; the status
// is for proxies and people.

import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';

const statuses = {
  validation: 400,
  unauthenticated: 401,
  forbidden: 403,
  'sign-in-incomplete': 403,
  'not-found': 404,
  'key-not-found': 404,
  'key-disabled': 409,
  'key-destroyed': 410,
  'key-usage': 409,
  'key-tampered': 409,
  conflict: 409,
  'label-exists': 409,
  'precondition-failed': 412,
  'precondition-required': 428,
  'invalid-ciphertext': 422,
  'data-length': 422,
  unsupported: 501,
  'payload-too-large': 413,
  'rate-limited': 429,
  'dependency-timeout': 503,
  unavailable: 503,
  internal: 500,
} as const satisfies Record<ServiceErrorCode, number>;

export interface Problem {
  readonly status: (typeof statuses)[ServiceErrorCode];
  readonly body: {
    readonly type: 'about:blank';
    readonly title: string;
    readonly status: number;
    readonly code: ServiceErrorCode;
    readonly requestId: string;
    readonly detail?: string;
    readonly reason?: string;
  };
}

export const toProblem = (error: ServiceError, requestId: string): Problem => {
  const status = statuses[error.code];
  return {
    status,
    body: {
      type: 'about:blank',
      title: error.message,
      status,
      code: error.code,
      requestId,
      ...(error.hint === undefined ? {} : { detail: error.hint }),
      ...(error.reason === undefined ? {} : { reason: error.reason }),
    },
  };
};

/** Any other error is a defect of the service: the answer has no details of it. */
export const asServiceError = (error: unknown): ServiceError =>
  error instanceof ServiceError ? error : new ServiceError('internal', 'internal error', { cause: error });
