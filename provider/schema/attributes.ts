// Cryptoki's attributes (pkcs11t.h 2.40, and CKA_UNIQUE_ID of 3.0): number and kind, one row each.
// The kind decides how a value travels and what a handler sees; it is p11-kit's choice where
// p11-kit knows the attribute. An attribute without a row is bytes.

/**
 * boolean: CK_BBOOL. byteBoolean: a CK_BBOOL that p11-kit takes for bytes. ulong: CK_ULONG. bytes:
 * any bytes. secret: bytes that may be key material, handed to handlers as a view that they must
 * not keep. date: CK_DATE, eight digits or nothing. template: CK_ATTRIBUTE[]. mechanisms:
 * CK_MECHANISM_TYPE[].
 */
export type AttributeKind =
  | 'boolean'
  | 'byteBoolean'
  | 'ulong'
  | 'bytes'
  | 'secret'
  | 'date'
  | 'template'
  | 'mechanisms';

const row = <T extends number, K extends AttributeKind>(type: T, kind: K) => ({ type, kind });

export const attributes = {
  CLASS: row(0x00000000, 'ulong'),
  TOKEN: row(0x00000001, 'boolean'),
  PRIVATE: row(0x00000002, 'boolean'),
  LABEL: row(0x00000003, 'bytes'),
  UNIQUE_ID: row(0x00000004, 'bytes'),
  APPLICATION: row(0x00000010, 'bytes'),
  VALUE: row(0x00000011, 'secret'),
  OBJECT_ID: row(0x00000012, 'bytes'),
  CERTIFICATE_TYPE: row(0x00000080, 'ulong'),
  ISSUER: row(0x00000081, 'bytes'),
  SERIAL_NUMBER: row(0x00000082, 'bytes'),
  AC_ISSUER: row(0x00000083, 'bytes'),
  OWNER: row(0x00000084, 'bytes'),
  ATTR_TYPES: row(0x00000085, 'bytes'),
  TRUSTED: row(0x00000086, 'boolean'),
  CERTIFICATE_CATEGORY: row(0x00000087, 'ulong'),
  JAVA_MIDP_SECURITY_DOMAIN: row(0x00000088, 'ulong'),
  URL: row(0x00000089, 'bytes'),
  HASH_OF_SUBJECT_PUBLIC_KEY: row(0x0000008a, 'bytes'),
  HASH_OF_ISSUER_PUBLIC_KEY: row(0x0000008b, 'bytes'),
  NAME_HASH_ALGORITHM: row(0x0000008c, 'bytes'),
  CHECK_VALUE: row(0x00000090, 'bytes'),
  KEY_TYPE: row(0x00000100, 'ulong'),
  SUBJECT: row(0x00000101, 'bytes'),
  ID: row(0x00000102, 'bytes'),
  SENSITIVE: row(0x00000103, 'boolean'),
  ENCRYPT: row(0x00000104, 'boolean'),
  DECRYPT: row(0x00000105, 'boolean'),
  WRAP: row(0x00000106, 'boolean'),
  UNWRAP: row(0x00000107, 'boolean'),
  SIGN: row(0x00000108, 'boolean'),
  SIGN_RECOVER: row(0x00000109, 'boolean'),
  VERIFY: row(0x0000010a, 'boolean'),
  VERIFY_RECOVER: row(0x0000010b, 'boolean'),
  DERIVE: row(0x0000010c, 'boolean'),
  START_DATE: row(0x00000110, 'date'),
  END_DATE: row(0x00000111, 'date'),
  MODULUS: row(0x00000120, 'bytes'),
  MODULUS_BITS: row(0x00000121, 'ulong'),
  PUBLIC_EXPONENT: row(0x00000122, 'bytes'),
  PRIVATE_EXPONENT: row(0x00000123, 'secret'),
  PRIME_1: row(0x00000124, 'secret'),
  PRIME_2: row(0x00000125, 'secret'),
  EXPONENT_1: row(0x00000126, 'secret'),
  EXPONENT_2: row(0x00000127, 'secret'),
  COEFFICIENT: row(0x00000128, 'secret'),
  PUBLIC_KEY_INFO: row(0x00000129, 'bytes'),
  PRIME: row(0x00000130, 'bytes'),
  SUBPRIME: row(0x00000131, 'bytes'),
  BASE: row(0x00000132, 'bytes'),
  PRIME_BITS: row(0x00000133, 'ulong'),
  SUBPRIME_BITS: row(0x00000134, 'ulong'),
  VALUE_BITS: row(0x00000160, 'ulong'),
  VALUE_LEN: row(0x00000161, 'ulong'),
  EXTRACTABLE: row(0x00000162, 'boolean'),
  LOCAL: row(0x00000163, 'boolean'),
  NEVER_EXTRACTABLE: row(0x00000164, 'boolean'),
  ALWAYS_SENSITIVE: row(0x00000165, 'boolean'),
  KEY_GEN_MECHANISM: row(0x00000166, 'ulong'),
  MODIFIABLE: row(0x00000170, 'boolean'),
  COPYABLE: row(0x00000171, 'boolean'),
  DESTROYABLE: row(0x00000172, 'byteBoolean'),
  EC_PARAMS: row(0x00000180, 'bytes'),
  EC_POINT: row(0x00000181, 'bytes'),
  SECONDARY_AUTH: row(0x00000200, 'boolean'),
  AUTH_PIN_FLAGS: row(0x00000201, 'ulong'),
  ALWAYS_AUTHENTICATE: row(0x00000202, 'boolean'),
  WRAP_WITH_TRUSTED: row(0x00000210, 'boolean'),
  GOSTR3410_PARAMS: row(0x00000250, 'bytes'),
  GOSTR3411_PARAMS: row(0x00000251, 'bytes'),
  GOST28147_PARAMS: row(0x00000252, 'bytes'),
  HW_FEATURE_TYPE: row(0x00000300, 'ulong'),
  RESET_ON_INIT: row(0x00000301, 'boolean'),
  HAS_RESET: row(0x00000302, 'boolean'),
  PIXEL_X: row(0x00000400, 'ulong'),
  PIXEL_Y: row(0x00000401, 'ulong'),
  RESOLUTION: row(0x00000402, 'ulong'),
  CHAR_ROWS: row(0x00000403, 'ulong'),
  CHAR_COLUMNS: row(0x00000404, 'ulong'),
  COLOR: row(0x00000405, 'boolean'),
  BITS_PER_PIXEL: row(0x00000406, 'ulong'),
  CHAR_SETS: row(0x00000480, 'bytes'),
  ENCODING_METHODS: row(0x00000481, 'bytes'),
  MIME_TYPES: row(0x00000482, 'bytes'),
  MECHANISM_TYPE: row(0x00000500, 'ulong'),
  REQUIRED_CMS_ATTRIBUTES: row(0x00000501, 'bytes'),
  DEFAULT_CMS_ATTRIBUTES: row(0x00000502, 'bytes'),
  SUPPORTED_CMS_ATTRIBUTES: row(0x00000503, 'bytes'),
  WRAP_TEMPLATE: row(0x40000211, 'template'),
  UNWRAP_TEMPLATE: row(0x40000212, 'template'),
  DERIVE_TEMPLATE: row(0x40000213, 'template'),
  ALLOWED_MECHANISMS: row(0x40000600, 'mechanisms'),
} as const satisfies Record<string, { type: number; kind: AttributeKind }>;

export type AttributeName = keyof typeof attributes;

/** Only the numbers: `CKA.LABEL` is CKA_LABEL. */
export const CKA = Object.fromEntries(Object.entries(attributes).map(([name, { type }]) => [name, type])) as {
  readonly [Name in AttributeName]: (typeof attributes)[Name]['type'];
};

const kinds = new Map<number, AttributeKind>(Object.values(attributes).map(({ type, kind }) => [type, kind]));
const names = new Map<number, string>(Object.entries(attributes).map(([name, { type }]) => [type, `CKA_${name}`]));

export const attributeKind = (type: number): AttributeKind => kinds.get(type) ?? 'bytes';

/** The name, or the number in hexadecimal when the standard has none. */
export const attributeName = (type: number): string => names.get(type) ?? `0x${type.toString(16).padStart(8, '0')}`;
