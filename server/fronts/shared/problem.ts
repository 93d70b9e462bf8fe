// Problem documents, RFC 9457: how every JSON front says that a request failed. Contains no wording
// of its own: a front gives status and title for each error code.

import type { ServiceError, ServiceErrorCode } from '../../base/service-error.ts';
import { problemType } from '../../contract/api/problem-rows.ts';

/** What passes on its own: a limit, a database or a node that is away. */
const usualPauses: Partial<Record<ServiceErrorCode, number>> = {
  'rate-limited': 5,
  unavailable: 1,
  'dependency-timeout': 1,
};

/**
 * After how many seconds it is worth to ask again; undefined: it may have been done, or asking
 * again changes nothing.
 */
export const retryAfterOf = ({
  code,
  reason,
  retryAfterSeconds,
}: Pick<ServiceError, 'code' | 'reason' | 'retryAfterSeconds'>): number | undefined =>
  retryAfterSeconds ?? (reason === 'unconfirmed' ? undefined : usualPauses[code]);

export interface FieldFault {
  /** Members of the request, joined by dots. */
  readonly path: string;
  readonly message: string;
}

export interface ProblemDocument {
  /** `urn:dke:problem:<code>`: stable, names the kind of problem. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ServiceErrorCode;
  readonly requestId: string;
  /** `unconfirmed`: the change may be made, or is made and not confirmed by every node. */
  readonly reason?: 'unconfirmed';
  readonly hint?: string;
  readonly errors?: readonly FieldFault[];
}

export interface ProblemInit {
  readonly code: ServiceErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string;
  readonly reason?: ProblemDocument['reason'] | undefined;
  readonly hint?: string | undefined;
  readonly errors?: readonly FieldFault[] | undefined;
}

export const formatProblem = ({
  code,
  status,
  title,
  detail,
  requestId,
  reason,
  hint,
  errors,
}: ProblemInit): ProblemDocument => ({
  type: `urn:dke:problem:${code}`,
  title,
  status,
  detail,
  code,
  requestId,
  ...(reason === undefined ? {} : { reason }),
  ...(hint === undefined ? {} : { hint }),
  ...(errors === undefined || errors.length === 0 ? {} : { errors }),
});

/** The response. `headers` go next to the media type; nothing of a failure is cached. */
export const answerProblem = (init: ProblemInit, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(formatProblem(init)), {
    status: init.status,
    headers: { 'content-type': problemType, 'cache-control': 'no-store', ...headers },
  });
