// What the addon's errors mean to the caller who used a key: one place.

import { CoreError, type CoreErrorCode } from '../../addon/core.ts';
import { ServiceError, type ServiceErrorCode } from '../base/errors.ts';

const meanings = {
  'bad-argument': ['validation', 'a parameter is out of range'],
  'bad-key': ['key-not-found', 'the key no longer exists'],
  'key-type': ['key-usage', 'the key is of another type'],
  'data-length': ['data-length', 'the input length does not fit the algorithm'],
  'buffer-too-small': ['internal', 'an output buffer was too small'],
  'authentication-failed': ['invalid-ciphertext', 'the input does not authenticate'],
  'signature-invalid': ['invalid-ciphertext', 'the input does not authenticate'],
  'memory-lock': ['unavailable', 'no locked memory is left for keys'],
  io: ['internal', 'a file operation failed'],
  permission: ['internal', 'a file has the wrong owner or mode'],
  format: ['key-tampered', 'a stored record has an unknown layout'],
  unsupported: ['unsupported', 'the algorithm or size is not supported'],
  internal: ['internal', 'the crypto core failed'],
} as const satisfies Record<CoreErrorCode, readonly [ServiceErrorCode, string]>;

/** The error as the caller gets it; anything but a CoreError comes back as it is. */
export const translateCoreError = (error: unknown): unknown => {
  if (!(error instanceof CoreError)) return error;
  const [code, message] = meanings[error.code];
  return new ServiceError(code, message, { cause: error });
};
