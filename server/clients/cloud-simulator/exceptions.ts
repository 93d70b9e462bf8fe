// What the cloud's key service tells its callers: its exceptions, and which of them each fault of
// an external key store proxy becomes. Declared once: for managing a store, for
// ConnectCustomKeyStore, for making a key, and for using one.

import { type CloudFault, cloudFaults } from '../../base/cloud-causes.ts';

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

/** A call to a proxy that failed. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
  readonly fault: CloudFault;
  constructor(fault: CloudFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Runs what calls a proxy; its fault becomes the exception of that column. */
export const asException = async <T>(column: 'create' | 'createKey' | 'use', work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProxyFault) throw new KmsException(cloudFaults[error.fault][column], error.message);
    throw error;
  }
};
