// The problem documents of the console's API (contract/api/problem-rows.ts has their rows).

import { ServiceError, type ServiceErrorCode } from '../../base/service-error.ts';
import { problemRows } from '../../contract/api/problem-rows.ts';
import { answerProblem, type FieldFault, retryAfterOf } from '../shared/problem.ts';

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
