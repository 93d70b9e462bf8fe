// What the service's failures, and the addon's, are called in Cryptoki (PKCS#11 2.40, section 5.1):
// the code that names the cause best, because the database prints it. `dispatch.ts` is the only
// place that asks.
import { CoreError, type CoreErrorCode } from '../../addon/core.ts';
import { ServiceError, type ServiceErrorCode } from '../../server/base/service-error.ts';
import type { CallName } from '../schema/calls.ts';
import { CKR } from '../schema/return-values.ts';
import { CryptokiError } from '../schema/types.ts';

/** What a call does to its object, where one cause has several names. */
type Purpose =
  | 'object'
  | 'key'
  | 'encrypt'
  | 'decrypt'
  | 'open'
  | 'sign'
  | 'verify'
  | 'create'
  | 'wrapping'
  | 'unwrapping'
  | 'derive';
type Row = number | (Partial<Record<Purpose, number>> & { readonly otherwise: number });

/**
 * The purpose of each function; one that is not listed, such as most of chapter 5.7, names an
 * object.
 */
const purposes: Partial<Record<CallName, Purpose>> = {
  C_CreateObject: 'create',
  C_GenerateKey: 'create',
  C_GenerateKeyPair: 'create',

  C_EncryptInit: 'key',
  C_Encrypt: 'encrypt',
  C_EncryptUpdate: 'encrypt',
  C_EncryptFinal: 'encrypt',
  C_DecryptInit: 'key',
  C_Decrypt: 'decrypt',
  C_DecryptUpdate: 'decrypt',
  C_DecryptFinal: 'decrypt',
  C_DigestKey: 'key',
  C_MessageEncryptInit: 'key',
  C_EncryptMessage: 'encrypt',
  C_EncryptMessageBegin: 'encrypt',
  C_EncryptMessageNext: 'encrypt',
  C_MessageDecryptInit: 'key',
  C_DecryptMessage: 'open',
  C_DecryptMessageBegin: 'open',
  C_DecryptMessageNext: 'open',
  C_SignInit: 'key',
  C_Sign: 'sign',
  C_SignUpdate: 'sign',
  C_SignFinal: 'sign',
  C_SignRecoverInit: 'key',
  C_SignRecover: 'sign',
  C_VerifyInit: 'key',
  C_Verify: 'verify',
  C_VerifyUpdate: 'verify',
  C_VerifyFinal: 'verify',
  C_VerifyRecoverInit: 'key',
  C_VerifyRecover: 'verify',
  C_DigestEncryptUpdate: 'encrypt',
  C_SignEncryptUpdate: 'encrypt',
  C_DecryptDigestUpdate: 'decrypt',
  C_DecryptVerifyUpdate: 'decrypt',
  C_WrapKey: 'wrapping',
  C_UnwrapKey: 'unwrapping',
  C_DeriveKey: 'derive',
};

const gone = {
  object: CKR.OBJECT_HANDLE_INVALID,
  wrapping: CKR.WRAPPING_KEY_HANDLE_INVALID,
  unwrapping: CKR.UNWRAPPING_KEY_HANDLE_INVALID,
  otherwise: CKR.KEY_HANDLE_INVALID,
} as const;
const wrongLength = {
  decrypt: CKR.ENCRYPTED_DATA_LEN_RANGE,
  open: CKR.ENCRYPTED_DATA_LEN_RANGE,
  create: CKR.ATTRIBUTE_VALUE_INVALID,
  wrapping: CKR.KEY_SIZE_RANGE,
  unwrapping: CKR.WRAPPED_KEY_LEN_RANGE,
  otherwise: CKR.DATA_LEN_RANGE,
} as const;
const doesNotAuthenticate = {
  decrypt: CKR.ENCRYPTED_DATA_INVALID,
  open: CKR.AEAD_DECRYPT_FAILED,
  verify: CKR.SIGNATURE_INVALID,
  unwrapping: CKR.WRAPPED_KEY_INVALID,
  otherwise: CKR.DATA_INVALID,
} as const;

const serviceRows = {
  validation: {
    create: CKR.TEMPLATE_INCONSISTENT,
    object: CKR.ATTRIBUTE_VALUE_INVALID,
    unwrapping: CKR.TEMPLATE_INCONSISTENT,
    derive: CKR.MECHANISM_PARAM_INVALID,
    otherwise: CKR.ARGUMENTS_BAD,
  },
  // The credential in pkcs11.toml is refused: no PIN was checked, so none of the PIN codes would be
  // true.
  unauthenticated: CKR.ACTION_PROHIBITED,
  forbidden: { wrapping: CKR.KEY_NOT_WRAPPABLE, otherwise: CKR.ACTION_PROHIBITED },
  // Only people at the console have an incomplete sign-in; a database has no session there.
  'sign-in-incomplete': CKR.ACTION_PROHIBITED,
  'not-found': gone,
  'key-not-found': gone,
  'key-disabled': CKR.KEY_FUNCTION_NOT_PERMITTED,
  'key-destroyed': gone,
  'key-usage': CKR.KEY_FUNCTION_NOT_PERMITTED,
  'key-tampered': CKR.DEVICE_ERROR,
  // A conflict in an encryption means that the IV was used with this key before.
  conflict: { encrypt: CKR.MECHANISM_PARAM_INVALID, otherwise: CKR.ACTION_PROHIBITED },
  // Section 4.1.1: a template that violates a requirement of the token is inconsistent. Ours: a
  // label names one key.
  'label-exists': CKR.TEMPLATE_INCONSISTENT,
  'precondition-failed': CKR.ACTION_PROHIBITED,
  'precondition-required': CKR.ACTION_PROHIBITED,
  'invalid-ciphertext': doesNotAuthenticate,
  'data-length': wrongLength,
  unsupported: { create: CKR.KEY_SIZE_RANGE, otherwise: CKR.MECHANISM_INVALID },
  'payload-too-large': wrongLength,
  'rate-limited': CKR.DEVICE_ERROR,
  'dependency-timeout': CKR.DEVICE_ERROR,
  unavailable: CKR.DEVICE_ERROR,
  internal: CKR.DEVICE_ERROR,
} as const satisfies Record<ServiceErrorCode, Row>;

const coreRows = {
  'bad-argument': CKR.GENERAL_ERROR,
  'bad-key': gone,
  'key-type': CKR.KEY_TYPE_INCONSISTENT,
  'data-length': wrongLength,
  'buffer-too-small': CKR.BUFFER_TOO_SMALL,
  'authentication-failed': doesNotAuthenticate,
  'signature-invalid': CKR.SIGNATURE_INVALID,
  'memory-lock': CKR.DEVICE_MEMORY,
  io: CKR.DEVICE_ERROR,
  permission: CKR.DEVICE_ERROR,
  format: CKR.DEVICE_ERROR,
  unsupported: CKR.MECHANISM_INVALID,
  internal: CKR.GENERAL_ERROR,
} as const satisfies Record<CoreErrorCode, Row>;

const choose = (row: Row, call: CallName | null): number => {
  if (typeof row === 'number') return row;
  return row[(call !== null && purposes[call]) || 'object'] ?? row.otherwise;
};

/** Whether the service says by this code that there is no such object. */
export const isGone = (code: ServiceErrorCode): boolean => serviceRows[code] === gone;

/**
 * The return value for whatever a handler of `call` threw. Anything unforeseen is
 * CKR_GENERAL_ERROR.
 */
export const returnValueFor = (error: unknown, call: CallName | null): number => {
  if (error instanceof CryptokiError) return error.rv;
  if (error instanceof ServiceError) return choose(serviceRows[error.code], call);
  if (error instanceof CoreError) return choose(coreRows[error.code], call);
  return CKR.GENERAL_ERROR;
};

// One constructor per situation: the code and what it means, together, once.
const situation = (rv: number, message: string) => (): CryptokiError => new CryptokiError(rv, message);

export const notInitialized = situation(CKR.CRYPTOKI_NOT_INITIALIZED, 'C_Initialize has not been called');
export const slotInvalid = situation(CKR.SLOT_ID_INVALID, 'there is one slot, 0');
export const sessionInvalid = situation(CKR.SESSION_HANDLE_INVALID, 'no such session');
export const sessionReadOnly = situation(
  CKR.SESSION_READ_ONLY,
  'token objects can be changed only in a read-write session',
);
export const notLoggedIn = situation(CKR.USER_NOT_LOGGED_IN, 'private objects need C_Login');
export const objectInvalid = situation(CKR.OBJECT_HANDLE_INVALID, 'no such object');
export const keyInvalid = situation(CKR.KEY_HANDLE_INVALID, 'no such key');
export const wrappingKeyInvalid = situation(CKR.WRAPPING_KEY_HANDLE_INVALID, 'no such wrapping key');
export const unwrappingKeyInvalid = situation(CKR.UNWRAPPING_KEY_HANDLE_INVALID, 'no such unwrapping key');
export const wrappingKeyTypeInconsistent = situation(
  CKR.WRAPPING_KEY_TYPE_INCONSISTENT,
  'the type of the wrapping key does not fit the mechanism',
);
export const unwrappingKeyTypeInconsistent = situation(
  CKR.UNWRAPPING_KEY_TYPE_INCONSISTENT,
  'the unwrapping key is of another type than the mechanism',
);
export const actionProhibited = situation(CKR.ACTION_PROHIBITED, 'the object does not allow this');
export const operationActive = situation(CKR.OPERATION_ACTIVE, 'an operation of this kind is running');
export const operationMissing = situation(CKR.OPERATION_NOT_INITIALIZED, 'no operation of this kind is running');
export const mechanismInvalid = situation(CKR.MECHANISM_INVALID, 'the mechanism is not supported for this function');
export const parameterInvalid = situation(CKR.MECHANISM_PARAM_INVALID, 'the mechanism parameter is invalid');
export const keyTypeInconsistent = situation(
  CKR.KEY_TYPE_INCONSISTENT,
  'the type of the key does not fit the mechanism',
);
export const keyNotPermitted = situation(CKR.KEY_FUNCTION_NOT_PERMITTED, 'the key does not allow this function');
export const keyTooShort = situation(CKR.KEY_SIZE_RANGE, 'the RSA key has fewer than 2048 bits');
export const argumentsBad = situation(CKR.ARGUMENTS_BAD, 'an argument is invalid');
export const ivRepeated = situation(
  CKR.MECHANISM_PARAM_INVALID,
  'this key has already encrypted with this IV: use another one, or let the token generate it',
);
export const ivsExhausted = situation(
  CKR.KEY_EXHAUSTED,
  'this key has already used every IV that the counter can produce',
);
export const dataTooLong = situation(CKR.DATA_LEN_RANGE, 'more data than one call to the service can contain');
