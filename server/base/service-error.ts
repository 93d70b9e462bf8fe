// The service's error codes: one list, declared here. A new code does not compile until every front
// has said what it is called there (`satisfies Record<ServiceErrorCode, ...>` in each front's
// service-error.ts and in the agent's service-error.ts).

export const serviceErrorCodes = [
  'validation', // the request is malformed or a field is out of range
  'unauthenticated', // no credential, or one that is not valid
  'forbidden', // known caller, not allowed
  'sign-in-incomplete', // a session that lacks a second factor or a new password
  'not-found', // no such resource for this caller
  'key-not-found', // no such key: wrong id or case, soft-deleted general key, destroyed key, vault deleted or disabled
  'key-disabled', // the key, or its vault, is disabled
  'key-destroyed', // the key has been destroyed; terminal
  'key-usage', // the key does not allow this operation
  'key-tampered', // a stored record or policy does not authenticate
  'conflict', // the state does not allow it
  'label-exists', // a key object with this label exists in the group
  'precondition-failed', // If-Match did not match
  'precondition-required', // what replaces a resource came without If-Match
  'invalid-ciphertext', // does not authenticate or does not decrypt
  'data-length', // input length does not fit the algorithm
  'unsupported', // an algorithm or size beyond what is supported
  'payload-too-large',
  'rate-limited',
  'dependency-timeout', // the store or the root key did not answer in time
  'unavailable', // starting, draining, or quarantined
  'internal',
] as const;

export type ServiceErrorCode = (typeof serviceErrorCodes)[number];

/**
 * An error with a meaning for the caller. Messages are short, lower-case, written for people, and
 * contain no secret.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ServiceErrorCode;
  /** What the person can do about it, where there is something. */
  readonly hint: string | undefined;
  /** Which of several situations of one code it is, for programs that distinguish them. */
  readonly reason: string | undefined;
  /** When asking again makes sense, in seconds from now. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ServiceErrorCode,
    message: string,
    options: {
      readonly hint?: string;
      readonly reason?: string;
      readonly retryAfterSeconds?: number;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.reason = options.reason;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
