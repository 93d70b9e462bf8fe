// What goes to the core and comes back: keys, parameters and metadata. No key bytes: a key is an
// opaque number.

declare const keyRefBrand: unique symbol;
declare const kekRefBrand: unique symbol;
declare const operationRefBrand: unique symbol;

/**
 * A key in the addon's key table: process-wide, usable from every thread, never reused within a
 * process. A key that is not released goes with the thread (the Node environment) that made it.
 */
export type KeyRef = number & { readonly [keyRefBrand]: true };
/**
 * A key of the service in the same key table (a KEK): it seals records, states and other keys, and
 * other keys are derived from it. What runs a caller's key takes no such reference, and what seals
 * takes no other. The core checks the kind of each key it is given; this type shows a mix-up before
 * anything runs.
 */
export type KekRef = number & { readonly [kekRefBrand]: true };
/** What the key table holds. */
export type AnyKeyRef = KeyRef | KekRef;
/** The reference to a key of this kind. */
export type RefOf<Kind extends 'aes' | 'generic' | 'kek'> = Kind extends 'kek' ? KekRef : KeyRef;
/**
 * A running multi-part operation inside the addon, known to the thread that began it. Ends by its
 * final call or `operationCancel`.
 */
export type OperationRef = number & { readonly [operationRefBrand]: true };

export type Digest =
  | 'sha1'
  | 'sha224'
  | 'sha256'
  | 'sha384'
  | 'sha512'
  | 'sha512-224'
  | 'sha512-256'
  | 'sha3-224'
  | 'sha3-256'
  | 'sha3-384'
  | 'sha3-512';
/** Curves in short Weierstrass form: ECDSA and ECDH. */
export type EcCurve =
  | 'p224'
  | 'p256'
  | 'p384'
  | 'p521'
  | 'secp256k1'
  | 'brainpool-p256r1'
  | 'brainpool-p384r1'
  | 'brainpool-p512r1';
/** Keys that are a row of bytes (RFC 8410): EdDSA, and the agreement of RFC 7748. */
export type RawCurve = 'ed25519' | 'ed448' | 'x25519' | 'x448';
export type Curve = EcCurve | RawCurve;
export type KeyKind =
  | 'aes'
  | 'generic'
  | 'kek'
  | 'rsa-private'
  | 'rsa-public'
  | 'ec-private'
  | 'ec-public'
  | 'ed25519-private'
  | 'ed25519-public'
  | 'x25519-private'
  | 'x25519-public'
  | 'ed448-private'
  | 'ed448-public'
  | 'x448-private'
  | 'x448-public';

export interface KeyDescription {
  readonly kind: KeyKind;
  /** Bits of the secret, the modulus or the curve; of a `RawCurve` 256 or 448. */
  readonly bits: number;
  readonly curve?: Curve;
}

/**
 * A part of a message that no process keeps the rest of: what must be known from the parts before
 * returns through the caller, sealed.
 */
export interface MessagePart {
  /**
   * The state that the previous part returned; empty with the first part. Only the first part has
   * additional data.
   */
  readonly state: Uint8Array;
  readonly last: boolean;
  readonly input: Uint8Array;
}

/**
 * A MessagePart with the key that seals its state: a key of the service, never the key of the
 * message, whose value callers may know.
 */
export interface SealedPart extends MessagePart {
  /** A key encryption key. */
  readonly kek: KekRef;
  /** Whose message it is. */
  readonly owner: Uint8Array;
}

/**
 * How a cipher runs. `iv` is 16 bytes for cbc/ctr (the initial counter block), 1 to 128 bytes for
 * gcm (tagLength 12 to 16 bytes), 7 to 13 for ccm (tagLength 4 to 16, even; `dataLength` is the
 * message without its tag, and other lengths are refused).
 */
export type CipherParameters = ChainedParameters | AeadParameters;
export type ChainedParameters =
  | { readonly algorithm: 'aes-ecb' }
  | { readonly algorithm: 'aes-cbc'; readonly iv: Uint8Array }
  | { readonly algorithm: 'aes-cbc-pad'; readonly iv: Uint8Array }
  | { readonly algorithm: 'aes-ctr'; readonly iv: Uint8Array; readonly counterBits?: number | undefined };
export type AeadParameters =
  | {
      readonly algorithm: 'aes-gcm';
      readonly iv: Uint8Array;
      readonly aad?: Uint8Array | undefined;
      readonly tagLength: number;
    }
  | {
      readonly algorithm: 'aes-ccm';
      readonly iv: Uint8Array;
      readonly aad?: Uint8Array | undefined;
      readonly tagLength: number;
      readonly dataLength: number;
    };
export type Direction = 'encrypt' | 'decrypt';

export type MacParameters =
  | { readonly algorithm: 'hmac'; readonly digest: Digest }
  | { readonly algorithm: 'aes-cmac' };

/**
 * `message` inputs are hashed inside; `prehashed` inputs are the digest itself (RSA PKCS#1: the
 * DigestInfo when `digest` is absent).
 */
export type SignatureParameters =
  | { readonly algorithm: 'rsa-pkcs1'; readonly digest?: Digest }
  | {
      readonly algorithm: 'rsa-pss';
      readonly digest: Digest;
      readonly mgfDigest: Digest;
      readonly saltLength: number;
      readonly prehashed?: boolean;
    }
  | { readonly algorithm: 'ecdsa'; readonly digest?: Digest; readonly encoding: 'p1363' | 'der' }
  | { readonly algorithm: 'ed25519' | 'ed448' };

export interface OaepParameters {
  readonly padding: 'oaep';
  readonly digest: Digest;
  readonly mgfDigest: Digest;
  readonly label?: Uint8Array | undefined;
}

/**
 * Decryption with PKCS#1 v1.5 padding never fails for wrong padding: it answers with other bytes
 * (rsa_encryption.h).
 */
export type RsaEncryptionParameters = OaepParameters | { readonly padding: 'pkcs1' };

/** AES key wrap. `iv` is the initial value: 8 bytes, 4 when `padded`; absent: that of the RFC. */
export interface KeyWrapParameters {
  /** RFC 5649, else RFC 3394. */
  readonly padded: boolean;
  readonly iv?: Uint8Array | undefined;
}

/** How a key is wrapped: AES key wrap, under a cipher, or with OAEP. */
export type WrapParameters =
  | ({ readonly way: 'key-wrap' } & KeyWrapParameters)
  | { readonly way: 'cipher'; readonly cipher: CipherParameters }
  | { readonly way: 'oaep'; readonly oaep: OaepParameters };

/** What an unwrapped key becomes. */
export type UnwrappedKind = 'aes' | 'generic' | 'kek' | 'private';

export interface EcdhOptions {
  readonly kind: 'aes' | 'generic';
  /** Without a KDF the last bytes of the shared secret, as PKCS#11 cuts it. */
  readonly bytes: number;
  /** The KDF of ANSI X9.63 with this digest, and its shared info. */
  readonly kdf?: Digest;
  readonly sharedInfo?: Uint8Array;
}

/**
 * What the pseudorandom function of SP 800-108 takes for each block: `data`, the fixed part, with
 * the counter at `counterAt` and, in feedback mode, the block before, at first `iv`, at
 * `previousAt`. Where both are at one place, `counterFirst` tells their order. `data` and `iv` have
 * at most 4096 bytes, a counter has 1 to 4.
 */
export interface Sp800108Parameters {
  readonly data: Uint8Array;
  readonly counterAt?: number | undefined;
  readonly counterBytes: number;
  readonly littleEndian: boolean;
  readonly previousAt?: number | undefined;
  readonly counterFirst: boolean;
  readonly iv: Uint8Array;
}

/** How a key is derived from another. */
export type DeriveParameters =
  /**
   * `kdf`: that of ANSI X9.63, with `shared`; null: the last bytes of the shared secret, as PKCS#11
   * cuts it.
   */
  | { readonly way: 'ecdh'; readonly point: Uint8Array; readonly kdf: Digest | null; readonly shared: Uint8Array }
  | {
      readonly way: 'hkdf';
      readonly digest: Digest;
      readonly steps: 'both' | 'extract' | 'expand';
      readonly salt: Uint8Array;
      /** The handle of a secret key whose value is the salt: the core is given it open. */
      readonly saltKey?: number | undefined;
      readonly info: Uint8Array;
    }
  | { readonly way: 'sp800-108'; readonly prf: MacParameters; readonly parts: Sp800108Parameters }
  /** The key is the front of what the data encrypt to. */
  | {
      readonly way: 'encryption';
      readonly cipher: Extract<CipherParameters, { readonly algorithm: 'aes-ecb' | 'aes-cbc' }>;
      readonly data: Uint8Array;
    };

/** The fields that a key record binds; see FORMAT.md. All byte fields are raw bytes. */
export interface RecordContext {
  /** 16 bytes. */
  readonly tenant: Uint8Array;
  /** 16 bytes. */
  readonly object: Uint8Array;
  readonly version: number;
  /** Epoch of the key that seals: 32-bit. */
  readonly epoch: number;
  /** What this blob is, for example 'vault-copy', 'sealed-copy', 'tenant-kek'. */
  readonly class: string;
  /**
   * Bound into the seal: algorithm and immutable attributes, in a canonical form the caller
   * chooses.
   */
  readonly attributes: Uint8Array;
}

export interface MemoryStatus {
  /** Bytes of locked memory that the key arena has, and that it uses now. */
  readonly capacity: number;
  readonly used: number;
  readonly keys: number;
  readonly operations: number;
  readonly locked: boolean;
}

export interface RootFile {
  readonly epoch: number;
  /** The root key: a KEK, usable with `sealRecord` and `openRecord`. */
  readonly key: KekRef;
}

/**
 * Reply of an XKS body function: bytes to send, made inside the addon so that no plaintext becomes
 * a JavaScript string.
 */
export interface XksRequestMetadata {
  readonly kmsRequestId: string;
  readonly kmsOperation: string;
  readonly awsPrincipalArn: string | undefined;
  readonly kmsKeyArn: string | undefined;
  readonly awsSourceVpc: string | undefined;
  readonly awsSourceVpce: string | undefined;
  readonly kmsViaService: string | undefined;
}
export type XksOperation = 'health' | 'metadata' | 'encrypt' | 'decrypt';
/**
 * A parsed XKS request: the metadata as strings, the secret members kept inside the addon under
 * `body`.
 */
export type XksParsed =
  | {
      readonly ok: true;
      readonly body: number;
      readonly requestMetadata: XksRequestMetadata | undefined;
      readonly empty: boolean;
      /**
       * Decrypt: the version that sealed the ciphertext; 0, which no key has, when it was not made
       * here.
       */
      readonly keyVersion: number;
    }
  | { readonly ok: false; readonly errorName: XksBodyErrorName; readonly message: string };
export type XksBodyErrorName = 'ValidationException' | 'UnsupportedOperationException' | 'InternalException';

/**
 * A file that a local user names, and that user, as the kernel tells it of the peer of a socket.
 */
export interface UserFileRequest {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  readonly path: string;
  /** Whether symbolic links are followed; those of /proc to open files never are. */
  readonly follow: boolean;
  /** A longer file is not read. */
  readonly most: number;
  /** Nor is one whose state is this. */
  readonly known: string;
}
export type UserFileAnswer =
  /** `error`: of errno. `identity`: this process cannot act as the user. */
  | { readonly error: number; readonly identity: boolean }
  | {
      readonly error: 0;
      readonly regular: boolean;
      readonly uid: number;
      readonly mode: number;
      readonly size: number;
      /** Changes when the file is another one, or is changed. */
      readonly state: string;
      readonly bytes?: Buffer<ArrayBuffer>;
    };
