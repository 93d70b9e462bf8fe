// What each of the service's errors is called in the console's API: status and title of the problem
// document.

import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';
import { answerProblem, type FieldFault, retryAfterOf } from '../shared/problem.ts';

interface ProblemRow {
  readonly status: number;
  readonly title: string;
}

export const problemRows = {
  validation: { status: 400, title: 'The request is not valid' },
  unauthenticated: { status: 401, title: 'Authentication is required' },
  forbidden: { status: 403, title: 'Not allowed' },
  'sign-in-incomplete': { status: 403, title: 'The sign-in is not complete' },
  'not-found': { status: 404, title: 'Not found' },
  'key-not-found': { status: 404, title: 'Key not found' },
  'key-disabled': { status: 409, title: 'The key is disabled' },
  'key-destroyed': { status: 409, title: 'The key has been destroyed' },
  'key-usage': { status: 409, title: 'The key does not allow this operation' },
  'key-tampered': { status: 409, title: 'The stored record is damaged' },
  conflict: { status: 409, title: 'The current state does not allow this' },
  'label-exists': { status: 409, title: 'The label is already in use' },
  'precondition-failed': { status: 412, title: 'The resource has changed' },
  'precondition-required': { status: 428, title: 'If-Match is required' },
  'invalid-ciphertext': { status: 400, title: 'The data cannot be decrypted' },
  'data-length': { status: 400, title: 'The length is not valid' },
  unsupported: { status: 400, title: 'Not supported' },
  'payload-too-large': { status: 413, title: 'The request is too large' },
  'rate-limited': { status: 429, title: 'Too many requests' },
  'dependency-timeout': { status: 504, title: 'The store or the root key did not answer in time' },
  unavailable: { status: 503, title: 'The service is not ready' },
  internal: { status: 500, title: 'Internal error' },
} as const satisfies Record<ServiceErrorCode, ProblemRow>;

/** An answer is not much longer than the request that it refuses. */
const mostFaults = 50;

/** 'validation' with the first of the fields that are wrong. */
export class ValidationError extends ServiceError {
  readonly errors: readonly FieldFault[];

  constructor(errors: readonly FieldFault[], message = 'the request has invalid fields') {
    super('validation', message);
    this.errors = errors.slice(0, mostFaults);
  }
}

/** HTTP's own refusals: known codes under a status that says more. */
export class HttpRefusal extends ServiceError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ServiceErrorCode,
    status: number,
    message: string,
    options: { readonly hint?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message, options.hint === undefined ? {} : { hint: options.hint });
    this.status = status;
    this.headers = options.headers ?? {};
  }
}

/**
 * The answer to an error of any kind. An error that is not a ServiceError is told only to `report`.
 */
export const answerError = (error: unknown, requestId: string, report: (error: unknown) => void): Response => {
  if (!(error instanceof ServiceError)) {
    report(error);
    return answerProblem({
      code: 'internal',
      ...problemRows.internal,
      detail: 'an internal error occurred',
      requestId,
      hint: `search the server's log for request ${requestId}`,
    });
  }
  if (error.code === 'internal') report(error);
  const row = problemRows[error.code];
  const headers: Record<string, string> = error instanceof HttpRefusal ? { ...error.headers } : {};
  const retryAfter = retryAfterOf(error);
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  if (error.code === 'unauthenticated') headers['www-authenticate'] = 'Bearer realm="dke"';
  return answerProblem(
    {
      code: error.code,
      title: row.title,
      status: error instanceof HttpRefusal ? error.status : row.status,
      detail: error.message,
      requestId,
      // Other reasons are not for everyone who asks.
      reason: error.reason === 'unconfirmed' ? error.reason : undefined,
      hint: error.hint,
      errors: error instanceof ValidationError ? error.errors : undefined,
    },
    headers,
  );
};
