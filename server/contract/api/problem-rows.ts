// How the console's API tells a failure: the problem documents of RFC 9457.

import type { ServiceErrorCode } from '../../base/service-error.ts';

/** The media type of RFC 9457. */
export const problemType = 'application/problem+json';

interface ProblemRow {
  readonly status: number;
  readonly title: string;
}

/** Status and title of the problem document of each of the service's errors. */
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
