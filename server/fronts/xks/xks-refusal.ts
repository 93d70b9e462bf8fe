// The proxy protocol's errors: every errorName with its status.

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

/**
 * A refusal on its way to the answer. The message is short printable ASCII and contains no key,
 * plaintext or path of ours.
 */
export class XksRefusal extends Error {
  override readonly name = 'XksRefusal';
  readonly errorName: XksErrorName;
  readonly status: number;
  /** For the log alone. */
  readonly reason: string | null;
  /** The connection is closed: its certificate does not change. */
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
