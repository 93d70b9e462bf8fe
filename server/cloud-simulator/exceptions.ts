// What the cloud's key service tells its callers: its exceptions, and which of them each fault of an external key store proxy
// becomes. Declared once: for managing a store, for ConnectCustomKeyStore, for making a key, and for using one.

/** Names of the AWS KMS API, with the HTTP status of each. */
export const exceptionStatus = {
  CustomKeyStoreHasCMKsException: 400,
  CustomKeyStoreInvalidStateException: 400,
  CustomKeyStoreNameInUseException: 400,
  CustomKeyStoreNotFoundException: 400,
  IncompleteSignatureException: 400,
  IncorrectKeyException: 400,
  InvalidCiphertextException: 400,
  InvalidSignatureException: 400,
  KMSInternalException: 500,
  KMSInvalidStateException: 400,
  MissingAuthenticationTokenException: 400,
  NotFoundException: 400,
  SerializationException: 400,
  UnknownOperationException: 400,
  UnrecognizedClientException: 400,
  UnsupportedOperationException: 400,
  ValidationException: 400,
  XksKeyAlreadyInUseException: 400,
  XksKeyInvalidConfigurationException: 400,
  XksKeyNotFoundException: 400,
  XksProxyIncorrectAuthenticationCredentialException: 400,
  XksProxyInvalidConfigurationException: 400,
  XksProxyInvalidResponseException: 400,
  XksProxyUriInUseException: 400,
  XksProxyUriUnreachableException: 400,
} as const;
export type ExceptionName = keyof typeof exceptionStatus;

/** Refuses one call. The message contains no secret. */
export class KmsException extends Error {
  override readonly name = 'KmsException';
  readonly exception: ExceptionName;
  constructor(exception: ExceptionName, message: string) {
    super(message);
    this.exception = exception;
  }
}

export type ConnectionErrorCode =
  | 'INTERNAL_ERROR'
  | 'INVALID_CREDENTIALS'
  | 'XKS_PROXY_ACCESS_DENIED'
  | 'XKS_PROXY_INVALID_CONFIGURATION'
  | 'XKS_PROXY_INVALID_RESPONSE'
  | 'XKS_PROXY_INVALID_TLS_CONFIGURATION'
  | 'XKS_PROXY_NOT_REACHABLE'
  | 'XKS_PROXY_TIMED_OUT';

interface FaultRow {
  /** CreateCustomKeyStore, UpdateCustomKeyStore. */
  readonly manage: ExceptionName;
  /** ConnectCustomKeyStore ends as FAILED with it. */
  readonly connect: ConnectionErrorCode;
  /** The service has one name for all that is not about the external key itself. */
  readonly createKey: ExceptionName;
  /** Encrypt, Decrypt and their like; the service has one name for nearly all of them. */
  readonly use: ExceptionName;
}

const fault = (
  manage: ExceptionName,
  connect: ConnectionErrorCode,
  others: Partial<Pick<FaultRow, 'createKey' | 'use'>> = {},
): FaultRow => ({
  manage,
  connect,
  createKey: 'CustomKeyStoreInvalidStateException',
  use: 'KMSInvalidStateException',
  ...others,
});

/** What can go wrong at a proxy, as the cloud sees it. */
export const faults = {
  unreachable: fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  tls: fault('XksProxyUriUnreachableException', 'XKS_PROXY_INVALID_TLS_CONFIGURATION'),
  'timed-out': fault('XksProxyUriUnreachableException', 'XKS_PROXY_TIMED_OUT'),
  throttled: fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  'dependency-timeout': fault('XksProxyUriUnreachableException', 'XKS_PROXY_TIMED_OUT'),
  'no-key-manager': fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  response: fault('XksProxyInvalidResponseException', 'XKS_PROXY_INVALID_RESPONSE'),
  authentication: fault('XksProxyIncorrectAuthenticationCredentialException', 'INVALID_CREDENTIALS'),
  denied: fault('XksProxyInvalidConfigurationException', 'XKS_PROXY_ACCESS_DENIED'),
  path: fault('XksProxyInvalidConfigurationException', 'XKS_PROXY_INVALID_CONFIGURATION'),
  unsupported: fault('UnsupportedOperationException', 'XKS_PROXY_INVALID_RESPONSE'),
  'key-not-found': fault('XksKeyNotFoundException', 'XKS_PROXY_INVALID_RESPONSE', {
    createKey: 'XksKeyNotFoundException',
  }),
  'key-configuration': fault('XksKeyInvalidConfigurationException', 'XKS_PROXY_INVALID_RESPONSE', {
    createKey: 'XksKeyInvalidConfigurationException',
  }),
  ciphertext: fault('XksProxyInvalidResponseException', 'XKS_PROXY_INVALID_RESPONSE', {
    use: 'InvalidCiphertextException',
  }),
} as const satisfies Record<string, FaultRow>;
export type Fault = keyof typeof faults;

/** errorName of the proxy's specification, the status it must come with, and the fault that it is. */
const proxyErrors: Readonly<Record<string, readonly [status: number, Fault]>> = {
  ValidationException: [400, 'response'],
  InvalidStateException: [400, 'key-configuration'],
  InvalidCiphertextException: [400, 'ciphertext'],
  InvalidKeyUsageException: [400, 'key-configuration'],
  AuthenticationFailedException: [401, 'authentication'],
  AccessDeniedException: [403, 'denied'],
  KeyNotFoundException: [404, 'key-not-found'],
  InvalidUriPathException: [404, 'path'],
  ThrottlingException: [429, 'throttled'],
  UnsupportedOperationException: [501, 'unsupported'],
  DependencyTimeoutException: [503, 'dependency-timeout'],
  InternalException: [500, 'response'],
};

/** Errors about one key or one ciphertext do not apply to other requests. */
const onlyFor: Readonly<Record<string, RegExp>> = {
  InvalidCiphertextException: /\/decrypt$/,
  KeyNotFoundException: /^\/keys\//,
  InvalidKeyUsageException: /^\/keys\//,
};

/** The fault that an error is when it answers this operation (its path below the store's), or undefined. */
export const faultOf = (errorName: string, status: number, operation: string): Fault | undefined => {
  const row = Object.hasOwn(proxyErrors, errorName) ? proxyErrors[errorName] : undefined;
  return row?.[0] === status && (onlyFor[errorName]?.test(operation) ?? true) ? row[1] : undefined;
};

/** A call to a proxy that failed. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
  readonly fault: Fault;
  constructor(fault: Fault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Runs what calls a proxy; its fault becomes the exception of that column. */
export const asException = async <T>(column: 'manage' | 'createKey' | 'use', work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProxyFault) throw new KmsException(faults[error.fault][column], error.message);
    throw error;
  }
};
