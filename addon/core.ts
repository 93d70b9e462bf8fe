// The typed face of the core addon, and the only file that loads the .node.
//
// Every secret byte stays in the addon. What crosses this line are key references (opaque numbers),
// operation references, key records (sealed), public keys, and buffers of data. No function returns
// the value of a key except `exportSecret` and `exportPrivateKey`, which exist for PKCS#11 keys
// that are extractable and not sensitive: a house test names the files that may call them. A key
// that goes to another process goes sealed (`hpkeSealKey`).
//
// Errors: every function throws `CoreError` with a `code` from `CoreErrorCode`. Messages contain no
// data.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type {
  AnyKeyRef,
  CipherParameters,
  Curve,
  DeriveParameters,
  Digest,
  Direction,
  EcdhOptions,
  KekRef,
  KeyDescription,
  KeyRef,
  KeyWrapParameters,
  MacParameters,
  MemoryStatus,
  OperationRef,
  RecordContext,
  RefOf,
  RootFile,
  RsaEncryptionParameters,
  SealedPart,
  SignatureParameters,
  Sp800108Parameters,
  UnwrappedKind,
  UserFileAnswer,
  UserFileRequest,
  WrapParameters,
  XksBodyErrorName,
  XksOperation,
  XksParsed,
} from './core-types.ts';
import type { FrameHandlers, FrameServer, FrameServerOptions } from './frame-server.ts';

export type * from './core-types.ts';
export type * from './frame-server.ts';

export type CoreErrorCode =
  | 'bad-argument' // a parameter has the wrong shape or range: the caller's fault
  | 'bad-key' // the key reference is unknown or released
  | 'key-type' // the key exists but is of another type or size than the algorithm needs
  | 'data-length' // the input's length does not fit the algorithm
  | 'buffer-too-small' // the output view is shorter than the result
  | 'authentication-failed' // tag, padding, unwrap check or record does not authenticate: one code for all
  | 'signature-invalid'
  | 'memory-lock' // the process may not lock enough memory (RLIMIT_MEMLOCK)
  | 'io' // a file or socket failed; the message names the path and errno
  | 'permission' // owner or mode of a file is not as it must be; the message names the path and the required mode
  | 'format' // a file or record has an unknown version or a broken layout
  | 'unsupported'
  | 'internal';

export class CoreError extends Error {
  override readonly name = 'CoreError';
  readonly code: CoreErrorCode;
  constructor(code: CoreErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * What the .node exports. Arguments are trusted there: this file's callers pass good shapes, the
 * binding checks the rest.
 */
export interface Core {
  /** The version of OpenSSL, whose libcrypto is linked in: "3.5.9". */
  libcryptoVersion(): string;
  // --- memory ------------------------------------------------------------------------------------
  /**
   * Reserves the locked key arena once per process; later calls answer the status. Throws
   * `memory-lock` with the limit to raise.
   */
  initialize(options?: {
    readonly arenaBytes?: number;
    /** An arena of at least this size is accepted, if more cannot be locked. */
    readonly leastArenaBytes?: number;
    readonly allowUnlocked?: boolean;
  }): MemoryStatus;
  memoryStatus(): MemoryStatus;
  /** Overwrites a buffer so that the compiler cannot drop it. */
  wipe(buffer: Uint8Array): void;
  /** Fills the view with random bytes. */
  random(out: Uint8Array): void;
  timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean;

  // --- used IVs: each owner has a share of its own (addon/core/keys/used_ivs.h) ---------------
  /** One of those who have keys: what one has used, another may use. */
  newIvOwner(): number;
  /** Forgets what it has used. */
  endIvOwner(owner: number): void;
  /** Whether a key has used this IV, under either of the identities that it goes by. */
  ivUsed(owner: number, iv: Uint8Array, identity: Uint8Array, otherIdentity?: Uint8Array): boolean;
  /** Marks an IV as used by a key. False when it was: nothing may be encrypted with it then. */
  claimIv(owner: number, iv: Uint8Array, identity: Uint8Array, otherIdentity?: Uint8Array): boolean;

  // --- keys --------------------------------------------------------------------------------------
  generateAes(bits: 128 | 192 | 256): KeyRef;
  generateGeneric(bytes: number): KeyRef;
  /**
   * A key encryption key: it seals and opens records and is the start of derived keys; it ciphers,
   * wraps and signs nothing.
   */
  generateKek(): KekRef;
  generateRsa(bits: number): KeyRef;
  // What ends in "Later" runs on a thread of its own (binding/jobs.h), for callers whose own thread
  // must not stand still. Arguments are read before it returns; it throws or rejects with
  // `CoreError`. Callers bound how many run (server/base/fair-queue.ts).
  generateRsaLater(bits: number): Promise<KeyRef>;
  generateEc(curve: Curve): KeyRef;
  /** Copies the bytes into the arena. The caller wipes its own buffer. */
  importSecret<Kind extends 'aes' | 'generic' | 'kek'>(kind: Kind, value: Uint8Array): RefOf<Kind>;
  /** DER: PKCS#8 for private keys, SubjectPublicKeyInfo for public ones. */
  importPrivateKey(pkcs8: Uint8Array): KeyRef;
  importPrivateKeyLater(pkcs8: Uint8Array): Promise<KeyRef>;
  /**
   * An RSA private key from its modulus and private exponent: the other numbers are computed, but
   * for those that are given. Unsigned, most significant byte first; empty where one is not known.
   */
  importRsaNumbersLater(
    modulus: Uint8Array,
    publicExponent: Uint8Array,
    privateExponent: Uint8Array,
    prime1: Uint8Array,
    prime2: Uint8Array,
  ): Promise<KeyRef>;
  importPublicKey(spki: Uint8Array): KeyRef;
  /**
   * Raw value of a secret key: only for keys whose policy (kept by the caller) says extractable and
   * not sensitive.
   */
  exportSecret(key: KeyRef): Buffer;
  /** PKCS#8 of a private key: under the same condition. The caller wipes it. */
  exportPrivateKey(key: KeyRef): Buffer;
  /** SubjectPublicKeyInfo of a public key or of a private key's public half. */
  exportPublicKey(key: KeyRef): Buffer;
  describe(key: AnyKeyRef): KeyDescription;
  /**
   * PKCS#11 check value: first 3 bytes of ECB over zeros (AES), of SHA-1 over the value (generic).
   */
  checkValue(key: KeyRef): Buffer;
  /**
   * Wipes the key now; running operations on it fail with bad-key from here on. Unknown references
   * are ignored.
   */
  release(key: AnyKeyRef): void;
  /**
   * HKDF (RFC 5869) from a secret key into a new one; only `extract` gives as many bytes as the
   * digest has. The salt may be the value of another secret key.
   */
  hkdf<Kind extends 'aes' | 'generic' | 'kek'>(
    key: AnyKeyRef,
    digest: Digest,
    salt: Uint8Array | KeyRef,
    info: Uint8Array,
    kind: Kind,
    bytes: number,
    steps?: 'both' | 'extract' | 'expand',
  ): RefOf<Kind>;

  /**
   * A KEK from a passphrase by scrypt (RFC 7914), N = 2^cost. Takes 128 * r * N bytes for the time
   * (at most 1 GiB) and stands this thread still. The caller wipes the passphrase.
   */
  scryptKek(passphrase: Uint8Array, salt: Uint8Array, cost: number, r: number, p: number): KekRef;
  scryptKekLater(passphrase: Uint8Array, salt: Uint8Array, cost: number, r: number, p: number): Promise<KekRef>;

  /**
   * The tag of a password by Argon2id (RFC 9106), version 1.3, in one lane: `bytes` of it, 16 to
   * 64. `memory` in KiB, 8 to 1 GiB; `passes` 1 to 100. Its thread gives way to others. The caller
   * wipes the password and the tag.
   */
  argon2idLater(password: Uint8Array, salt: Uint8Array, memory: number, passes: number, bytes: number): Promise<Buffer>;

  /** The KDF of SP 800-108 in counter mode, or with `previousAt` in feedback mode. */
  sp800108(
    key: KeyRef,
    prf: MacParameters,
    parameters: Sp800108Parameters,
    kind: 'aes' | 'generic',
    bytes: number,
  ): KeyRef;

  /**
   * A key from the front of what `data` encrypts to, in ECB or CBC. `data` is whole blocks, and as
   * long as the key or longer.
   */
  deriveByEncryption(
    key: KeyRef,
    parameters: CipherParameters,
    data: Uint8Array,
    kind: 'aes' | 'generic',
    bytes: number,
  ): KeyRef;

  /**
   * The one of these that `parameters` name. `saltKey`: a key whose value is the salt of HKDF; null
   * where it is not one.
   */
  derive(
    key: KeyRef,
    parameters: DeriveParameters,
    saltKey: KeyRef | null,
    kind: 'aes' | 'generic',
    bytes: number,
  ): KeyRef;

  // --- one-shot ciphers: bytes written into `out` are returned as a count ------------------------
  /**
   * The hot path. `parameters` is parsed once by `cipherPlan` (algorithm and tag length), the iv
   * and aad are given per call. In and out may overlap only exactly. Throws buffer-too-small before
   * anything is written.
   */
  cipher(key: KeyRef, direction: Direction, parameters: CipherParameters, input: Uint8Array, out: Uint8Array): number;
  /** Exact or upper-bound output length for a whole message. */
  cipherLength(direction: Direction, parameters: CipherParameters, inputLength: number): number;

  // --- multi-part --------------------------------------------------------------------------------
  cipherBegin(key: KeyRef, direction: Direction, parameters: CipherParameters): OperationRef;
  /**
   * `cipherBegin`, except that decryption in GCM and CCM gives plaintext out before its tag was
   * checked: the caller may not show it before `cipherFinal` has succeeded.
   */
  cipherBeginUnchecked(key: KeyRef, direction: Direction, parameters: CipherParameters): OperationRef;
  /**
   * Upper bound of what the next `cipherUpdate` may write. Decryption in GCM and CCM holds
   * plaintext (up to 64 MiB) back until its tag is checked.
   */
  cipherUpdateLength(operation: OperationRef, inputLength: number): number;
  cipherUpdate(operation: OperationRef, input: Uint8Array, out: Uint8Array): number;
  /**
   * Runs the whole message of an operation that has not been updated yet. Consumes it, except on
   * buffer-too-small.
   */
  cipherOneShot(operation: OperationRef, input: Uint8Array, out: Uint8Array): number;
  cipherOneShotLength(operation: OperationRef, inputLength: number): number;
  cipherFinalLength(operation: OperationRef): number;
  cipherFinal(operation: OperationRef, out: Uint8Array): number;
  /**
   * Checks the tag of a message whose plaintext is held back. Then `cipherTake` gives out as much
   * of it as there is room for, and `cipherFinal` the rest. Ends the operation when it throws.
   */
  cipherCheck(operation: OperationRef): void;
  cipherTake(operation: OperationRef, out: Uint8Array): number;
  digestBegin(digest: Digest): OperationRef;
  digestUpdate(operation: OperationRef, input: Uint8Array): void;
  digestFinal(operation: OperationRef, out: Uint8Array): number;
  macBegin(key: KeyRef, parameters: MacParameters): OperationRef;
  macUpdate(operation: OperationRef, input: Uint8Array): void;
  macFinal(operation: OperationRef, out: Uint8Array): number;
  /** Releases a running operation of any sort. Unknown references are ignored. */
  operationCancel(operation: OperationRef): void;

  /**
   * One part of a GCM or CCM message that is longer than a request. `out` takes as many bytes as
   * come out: of the last encrypted part the tag behind its data; the last part of the others ends
   * with the tag, which is checked. `check` gives nothing out. Answers the sealed state for the
   * next part, and nothing after the last one, and how many bytes of data came before this part.
   * Twice the same gives the same.
   */
  cipherPart(
    key: KeyRef,
    use: Direction | 'check',
    parameters: CipherParameters,
    part: SealedPart,
    out: Uint8Array,
  ): readonly [state: Buffer, at: number];
  /**
   * One part of a message that gets a MAC and is longer than a request. Answers the sealed state,
   * and after the last part the MAC.
   */
  macPart(key: KeyRef, parameters: MacParameters, part: SealedPart): Buffer;

  // --- digests, macs, signatures -----------------------------------------------------------------
  digest(digest: Digest, input: Uint8Array, out: Uint8Array): number;
  mac(key: KeyRef, parameters: MacParameters, input: Uint8Array, out: Uint8Array): number;
  sign(key: KeyRef, parameters: SignatureParameters, input: Uint8Array): Buffer;
  signLater(key: KeyRef, parameters: SignatureParameters, input: Uint8Array): Promise<Buffer>;
  /** False for a wrong signature; throws only for wrong arguments. */
  verify(key: KeyRef, parameters: SignatureParameters, input: Uint8Array, signature: Uint8Array): boolean;
  /**
   * What a PKCS#1 v1.5 signature was made of; authentication-failed when it is none of this key's.
   */
  recover(key: KeyRef, signature: Uint8Array): Buffer;
  rsaEncrypt(key: KeyRef, parameters: RsaEncryptionParameters, input: Uint8Array): Buffer;
  rsaDecrypt(key: KeyRef, parameters: RsaEncryptionParameters, input: Uint8Array): Buffer;
  rsaDecryptLater(key: KeyRef, parameters: RsaEncryptionParameters, input: Uint8Array): Promise<Buffer>;
  /**
   * The ECDH shared secret (x coordinate; RFC 7748 on X25519 and X448) as a key: all of it as a
   * generic key, or what `options` say. `peer` is an uncompressed point, or the peer's public key
   * of 32 or 56 bytes.
   */
  ecdh(key: KeyRef, peer: Uint8Array, options?: EcdhOptions): KeyRef;

  // --- key wrap: AES-KW (RFC 3394), AES-KWP (RFC 5649), AES modes and RSA-OAEP -------------------
  // A private key travels as its PKCS#8. Whatever is wrong with a wrapped key is
  // authentication-failed. AES-KW and CBC wrap whole blocks only: a key of another length is padded
  // with zeros, which are taken off where `bytes` tells the length of the key.
  wrapKey(wrapping: KeyRef, parameters: WrapParameters, key: KeyRef): Buffer;
  unwrapKey(
    wrapping: KeyRef,
    parameters: WrapParameters,
    wrapped: Uint8Array,
    kind: UnwrappedKind,
    bytes?: number,
  ): KeyRef;
  unwrapKeyLater(
    wrapping: KeyRef,
    parameters: WrapParameters,
    wrapped: Uint8Array,
    kind: UnwrappedKind,
    bytes?: number,
  ): Promise<KeyRef>;
  /** AES key wrap over caller's data (PKCS#11 C_Encrypt with CKM_AES_KEY_WRAP*). */
  wrapData(wrapping: KeyRef, parameters: KeyWrapParameters, data: Uint8Array): Buffer;
  unwrapData(wrapping: KeyRef, parameters: KeyWrapParameters, wrapped: Uint8Array): Buffer;

  // --- keys on their way to another host ---
  // HPKE (RFC 9180), base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
  /** An ephemeral X25519 key pair: `release` ends it. */
  generateHpkeKey(): KeyRef;
  /**
   * The X25519 key pair that follows from a generic secret of at least 32 bytes (RFC 9180, 7.1.3):
   * the same wherever that secret is.
   */
  deriveHpkeKey(secret: KeyRef): KeyRef;
  /** Its public key: 32 bytes. */
  hpkePublicKey(key: KeyRef): Buffer;
  /**
   * A secret key's value, or a private key's PKCS#8, sealed to `recipient` (32 bytes): encapsulated
   * key (32 bytes), then the ciphertext.
   */
  hpkeSealKey(recipient: Uint8Array, info: Uint8Array, aad: Uint8Array, key: KeyRef): Buffer;
  /** Opens it. Throws authentication-failed whatever is wrong with it. */
  hpkeOpenKey(own: KeyRef, info: Uint8Array, aad: Uint8Array, sealed: Uint8Array, kind: UnwrappedKind): KeyRef;
  hpkeOpenKeyLater(
    own: KeyRef,
    info: Uint8Array,
    aad: Uint8Array,
    sealed: Uint8Array,
    kind: UnwrappedKind,
  ): Promise<KeyRef>;
  /**
   * `hpkeSealKey` for a KEK, which nothing else lets out: a root key for another node. The caller
   * answers for the recipient.
   */
  hpkeSealKek(recipient: Uint8Array, info: Uint8Array, aad: Uint8Array, kek: KekRef): Buffer;
  hpkeOpenKek(own: KeyRef, info: Uint8Array, aad: Uint8Array, sealed: Uint8Array): KekRef;

  /**
   * Logs a user in to a PKCS#11 token of a library that this process has loaded otherwise;
   * `session` is the library's handle as bytes. Answers the library's return value, 0 for success.
   * The caller wipes the PIN.
   */
  loginToken(module: string, session: Uint8Array, pin: Uint8Array): number;

  // --- records and roots -------------------------------------------------------------------------
  /** Seals a secret or private key under a KEK: key record, format 1 (FORMAT.md). */
  sealRecord(kek: KekRef, context: RecordContext, key: AnyKeyRef): Buffer;
  /**
   * Opens a record: of a caller's key, or with `<KekRef>` of another KEK; the context, which the
   * seal binds, says which. Throws authentication-failed when any bound field differs, format when
   * it is not a record.
   */
  openRecord<Ref extends AnyKeyRef = KeyRef>(kek: KekRef, context: RecordContext, record: Uint8Array): Ref;
  /**
   * Opens a record and seals its content under another KEK or another context. The key is not
   * imported. Throws as `openRecord`.
   */
  resealRecord(from: KekRef, was: RecordContext, record: Uint8Array, to: KekRef, becomes: RecordContext): Buffer;
  /** The epoch and version written in a record's header, without opening it. */
  peekRecord(record: Uint8Array): { readonly epoch: number; readonly version: number };
  /**
   * Makes the root file (mode 0400, two preallocated slots, fsynced with its directory). Fails if
   * the file exists.
   */
  createRootFile(path: string): RootFile;
  /**
   * `createRootFile` with the root key of a backup, of this epoch. Answers a reference of its own
   * to the key.
   */
  restoreRootFile(path: string, epoch: number, key: KekRef): RootFile;
  /**
   * Opens it: checks owner, mode and layout. `slots` is the number of slots that contain a key (2 =
   * an unfinished rotation).
   */
  openRootFile(path: string): { readonly current: RootFile; readonly previous: RootFile | undefined };
  /**
   * Writes a fresh root key into the free slot, epoch + 1, fsynced and read back. The old slot
   * stays.
   */
  addRootEpoch(path: string): RootFile;
  /**
   * `addRootEpoch` with the KEK given, which is another node's root key of this epoch. Answers a
   * reference of its own to the key.
   */
  takeRootEpoch(path: string, epoch: number, key: KekRef): RootFile;
  /**
   * Writes the current slot again and syncs it: after a failed sync, the data may be only in the
   * cache.
   */
  settleRootFile(path: string): void;
  /**
   * Overwrites the slot of an older epoch in place, fsyncs, reads back through O_DIRECT where
   * possible.
   */
  eraseRootEpoch(path: string, epoch: number): void;
  /** Name of the file system below a path and whether overwriting in place erases there. */
  fileSystem(path: string): { readonly name: string; readonly overwritesInPlace: boolean };
  /**
   * Key pair and self-signed X.509 certificate (P-256): the key file is written by the addon (mode
   * 0600). Returns the certificate as PEM.
   */
  createSelfSignedCertificate(options: {
    readonly keyPath: string;
    readonly names: readonly string[];
    readonly days: number;
  }): string;

  // --- XKS ---------------------------------------------------------------------------------------
  /** kSigning for one day and region (SigV4), from a generic key holding the secret access key. */
  sigv4SigningKey(secret: KeyRef, date: string, region: string, service: string): KeyRef;
  /**
   * Whether a SigV4 signature (64 lower-case hex digits) is that of a request, compared in constant
   * time. `head` is the canonical request but for its last line, `scope` the string to sign but for
   * its last line, both one byte a character; `statedHash` is x-amz-content-sha256, or '' when it
   * was not sent.
   */
  sigv4Verify(
    signingKey: KeyRef,
    head: string,
    body: Uint8Array,
    scope: string,
    signature: string,
    statedHash: string,
  ): boolean;
  /**
   * Fresh secret access key of 64 characters: the key reference, and the characters in a buffer to
   * be shown once and wiped.
   */
  generateSecretAccessKey(): { readonly key: KeyRef; readonly characters: Buffer };
  /**
   * Strict JSON (RFC 8259, UTF-8, no duplicate members) and strict Base64; secret members stay in
   * the addon until `xksRelease` or the operation.
   */
  xksParse(operation: XksOperation, body: Uint8Array): XksParsed;
  /**
   * Encrypts what was parsed, decrypts and compares, and writes the whole JSON answer. Consumes
   * `body`.
   */
  xksEncrypt(body: number, key: KeyRef, keyVersion: number, binding: Uint8Array): string;
  /**
   * Decrypts and writes the whole JSON answer. Throws authentication-failed. Consumes `body`. The
   * caller wipes the answer after it was sent.
   */
  xksDecrypt(body: number, key: KeyRef, binding: Uint8Array): Buffer;
  xksRelease(body: number): void;

  // --- frames ------------------------------------------------------------------------------------
  createFrameServer(options: FrameServerOptions, handlers: FrameHandlers): FrameServer;
  /** From any thread: makes `run` return. Unknown ids are ignored. */
  wakeFrameServer(id: number): void;
  /** From any thread: makes `run` return 'stopped', now and at every later call. */
  stopFrameServer(id: number): void;
  /**
   * From now on this process leaves no core file, and no process of its user can read its memory.
   */
  forbidDumps(): void;
  /**
   * Reads a file that a local user names, with that user's rights, on a thread of its own
   * (addon/core/base/user_files.h). No deadline: a file system may never answer, so the caller
   * limits how many there are.
   */
  readUserFile(request: UserFileRequest): Promise<UserFileAnswer>;
  /**
   * Ends the process after this time, whatever its threads are doing (`process.exit` waits for
   * those that a disk holds). A later call sets another time. False: no thread could be started.
   */
  endProcessIn(milliseconds: number, exitCode: number): boolean;
  /**
   * Gives memory that was freed back to the system, on a thread of its own. The C library keeps it
   * otherwise, in each thread's share. False: there was none, or it keeps none.
   */
  returnFreeMemory(): Promise<boolean>;
  /**
   * From now on who begins a connection at this listening TCP socket is not answered and asks again
   * a second later; handshakes that have begun still end (addon/core/base/new_connections.h).
   * False: `descriptor` is not a listening socket, or the system has no filters.
   */
  holdNewConnections(descriptor: number): boolean;
  /**
   * Sends `state`, lines of NAME=value, to the socket of the service manager that the variable
   * NOTIFY_SOCKET names. False: nothing has received it. Never waits.
   */
  tellServiceManager(socket: string, state: string): boolean;
}

const packageRoot = (from: string): string => {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, 'addon'))) return folder;
    if (existsSync(join(folder, 'dke_core.node'))) return folder;
    if (folder === dirname(folder))
      throw new CoreError('io', 'the core addon is not built: run `npm run build:native`');
  }
};

/**
 * What the binding answers: members by position, fewer of them for a refusal and for a body without
 * metadata.
 */
type RawXksParsed =
  | readonly [errorName: XksBodyErrorName, message: string]
  | readonly [body: number, keyVersion: number, empty: boolean]
  | readonly [
      body: number,
      keyVersion: number,
      empty: boolean,
      kmsRequestId: string,
      kmsOperation: string,
      awsPrincipalArn: string | undefined,
      kmsKeyArn: string | undefined,
      awsSourceVpc: string | undefined,
      awsSourceVpce: string | undefined,
      kmsViaService: string | undefined,
    ];

const toXksParsed = (raw: RawXksParsed): XksParsed => {
  if (raw.length === 2) return { ok: false, errorName: raw[0], message: raw[1] };
  const requestMetadata =
    raw.length === 3
      ? undefined
      : {
          kmsRequestId: raw[3],
          kmsOperation: raw[4],
          awsPrincipalArn: raw[5],
          kmsKeyArn: raw[6],
          awsSourceVpc: raw[7],
          awsSourceVpce: raw[8],
          kmsViaService: raw[9],
        };
  return { ok: true, body: raw[0], requestMetadata, empty: raw[2], keyVersion: raw[1] };
};

const createDerive =
  (binding: Core): Core['derive'] =>
  (key, parameters, saltKey, kind, bytes) => {
    switch (parameters.way) {
      case 'ecdh': {
        const { point, kdf, shared } = parameters;
        return binding.ecdh(key, point, { kind, bytes, ...(kdf === null ? {} : { kdf, sharedInfo: shared }) });
      }
      case 'hkdf': {
        const { digest, steps, salt, info } = parameters;
        return binding.hkdf(key, digest, saltKey ?? salt, info, kind, bytes, steps);
      }
      case 'sp800-108':
        return binding.sp800108(key, parameters.prf, parameters.parts, kind, bytes);
      case 'encryption':
        return binding.deriveByEncryption(key, parameters.cipher, parameters.data, kind, bytes);
    }
  };

const load = (): Core => {
  const root = packageRoot(import.meta.dirname);
  const candidates = [join(root, 'build', 'Release', 'dke_core.node'), join(root, 'dke_core.node')];
  const path = candidates.find((candidate) => existsSync(candidate));
  if (path === undefined) throw new CoreError('io', 'the core addon is not built: run `npm run build:native`');
  const binding = createRequire(import.meta.url)(path) as Core & { setErrorClass(errorClass: typeof CoreError): void };
  binding.setErrorClass(CoreError);
  const parse = binding.xksParse as unknown as (operation: XksOperation, body: Uint8Array) => RawXksParsed;
  binding.xksParse = (operation, body) => toXksParsed(parse(operation, body));
  binding.derive = createDerive(binding);
  return binding;
};

export const core: Core = load();
