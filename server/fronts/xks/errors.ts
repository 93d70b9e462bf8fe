// The proxy protocol's errors: every errorName with its status, and what each of the service's errors is called here.

import type { ServiceErrorCode } from '../../base/errors.ts';

export const xksErrors = {
  ValidationException: 400,
  InvalidStateException: 400,
  InvalidCiphertextException: 400,
  InvalidKeyUsageException: 400,
  AuthenticationFailedException: 401,
  AccessDeniedException: 403,
  KeyNotFoundException: 404,
  InvalidUriPathException: 404,
  ThrottlingException: 429,
  UnsupportedOperationException: 501,
  DependencyTimeoutException: 503,
  InternalException: 500,
} as const;

export type XksErrorName = keyof typeof xksErrors;

export const xksErrorOf = {
  validation: 'ValidationException',
  unauthenticated: 'AuthenticationFailedException',
  forbidden: 'AccessDeniedException',
  'sign-in-incomplete': 'AccessDeniedException',
  'not-found': 'InvalidUriPathException',
  'key-not-found': 'KeyNotFoundException',
  'key-disabled': 'InvalidStateException',
  'key-destroyed': 'KeyNotFoundException',
  'key-usage': 'InvalidKeyUsageException',
  'key-tampered': 'InvalidStateException',
  conflict: 'InvalidStateException',
  'label-exists': 'InternalException',
  'precondition-failed': 'InternalException',
  'invalid-ciphertext': 'InvalidCiphertextException',
  'data-length': 'ValidationException',
  unsupported: 'UnsupportedOperationException',
  'payload-too-large': 'ValidationException',
  'rate-limited': 'ThrottlingException',
  'dependency-timeout': 'DependencyTimeoutException',
  unavailable: 'DependencyTimeoutException',
  internal: 'InternalException',
} as const satisfies Record<ServiceErrorCode, XksErrorName>;

/** A refusal on its way to the answer. The message is short printable ASCII and holds no key, plaintext or path of ours. */
export class XksRefusal extends Error {
  override readonly name = 'XksRefusal';
  readonly errorName: XksErrorName;
  readonly status: number;
  /** For the log alone. */
  readonly reason: string | null;
  /** The connection is of no more use: its certificate does not change. */
  readonly closes: boolean;

  constructor(
    errorName: XksErrorName,
    message: string,
    options: { readonly status?: number; readonly reason?: string; readonly closes?: boolean } = {},
  ) {
    super(message);
    this.errorName = errorName;
    this.status = options.status ?? xksErrors[errorName];
    this.reason = options.reason ?? null;
    this.closes = options.closes ?? false;
  }
}
