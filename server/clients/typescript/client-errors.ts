// The ways in which a call can fail. No error has a token, a header of the request or a body that
// was sent.

import type { Approval, Problem, ProblemCode } from './gen/types.ts';

/** The service refuses: a problem document (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  /** Treat a code that you do not know by its `status`. */
  readonly code: ProblemCode | (string & {});
  readonly detail: string;
  /** How to fix it. */
  readonly hint: string | undefined;
  /** The id under which the audit log and the server's log have the request. */
  readonly requestId: string;
  /** Which members of the request are wrong. */
  readonly fields: readonly { readonly path: string; readonly message: string }[];
  /**
   * `unconfirmed`: the change was made but not confirmed by every node, or it may still be made.
   */
  readonly reason: 'unconfirmed' | undefined;
  readonly #headers: { readonly all: Headers };

  constructor(
    status: number,
    { code, detail, hint, requestId, errors = [], reason }: Problem,
    headers: { readonly all: Headers },
  ) {
    super(`${detail} (${code}, request ${requestId})`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.hint = hint;
    this.requestId = requestId;
    this.fields = errors;
    this.reason = reason;
    this.#headers = headers;
  }

  /** Headers of the answer that reported the error. */
  get headers(): Headers {
    return this.#headers.all;
  }
}

/** Dual control: nothing was changed yet, because others must approve first. */
export class ApprovalRequired extends Error {
  override readonly name = 'ApprovalRequired';
  readonly approval: Approval;
  constructor(approval: Approval) {
    super(`nothing was changed yet: approval ${approval.id} is required`);
    this.approval = approval;
  }
}

/** No answer, or only a part of it. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly url: string;
  /** Node's own: ECONNREFUSED, ETIMEDOUT, CERT_HAS_EXPIRED. */
  readonly code: string;
  /** Whether the request may have reached the service. */
  readonly sent: boolean;
  constructor(url: string, code: string, sent: boolean) {
    super(`${url} does not answer (${code})`);
    this.url = url;
    this.code = code;
    this.sent = sent;
  }
}

/** The answer is not one of this API: another server, or a proxy. */
export class UnexpectedAnswer extends Error {
  override readonly name = 'UnexpectedAnswer';
  readonly status: number;
  constructor(status: number) {
    super(`the answer (status ${status}) is not from this API`);
    this.status = status;
  }
}
