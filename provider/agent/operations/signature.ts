// Signatures with the keys of a pair (PKCS#11 2.40, sections 5.11 and 5.12; mechanisms 2.1 and
// 2.3): in the addon with a key of the session and with every public key, by the service with a
// private key of the token. What a mechanism hashes is hashed part by part. What it signs as it is
// comes in one piece; only for EdDSA, which reads the message twice, parts are collected.
import { core, type Digest, type KeyDescription, type OperationRef } from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type Mechanism, type OutBuffer } from '../../schema/types.ts';
import { isTrue, type SharedKey, type TokenView } from '../objects/object-view.ts';
import { operationMissing } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';
import type { RecoverOperation, SummaryOperation, VerifyOperation } from '../sessions/operation.ts';
import { accept, checkCarried, ownCopy, Parts } from './collected-parts.ts';
import { noParameter } from './mechanism-parameters.ts';
import type { PrehashedSignature, SignatureRow } from './mechanism-row.ts';
import { isSlowPrivateKey, queued } from './slow-work.ts';

const longestInput = 128;
/** RFC 8017, section 9.2: the padding of PKCS#1 takes this much of the modulus at least. */
const pkcs1Padding = 11;

/** Bytes of a signature by a key. */
const signatureLength = ({ kind, bits, curve }: KeyDescription): number => {
  if (curve === 'ed25519') return 64;
  if (curve === 'ed448') return 114;
  return kind === 'ec-private' || kind === 'ec-public' ? 2 * Math.ceil(bits / 8) : Math.ceil(bits / 8);
};

interface Front {
  readonly bytes: Buffer;
  length: number;
}

/** What is signed, made of the caller's data: the data itself, or what represents it. */
class Message {
  readonly private: boolean;
  protected readonly key: SharedKey;
  protected readonly parameters: PrehashedSignature;
  protected readonly length: number;
  protected readonly isSlow: boolean;
  readonly #row: SignatureRow;
  #running: OperationRef | null = null;
  #collected: Parts | null = null;
  /**
   * The front of announced data that is signed without hashing: only the front enters the
   * signature. Null for other data.
   */
  #front: Front | null = null;

  /** `key` is this operation's: it is released with it. */
  constructor(row: SignatureRow, mechanism: Mechanism, key: SharedKey, isPrivate: boolean) {
    this.key = key;
    this.private = isPrivate;
    this.#row = row;
    const description = core.describe(key.ref);
    this.length = signatureLength(description);
    this.isSlow = isSlowPrivateKey(description);
    this.parameters = row.parameters(mechanism.parameter, description);
  }

  get started(): boolean {
    return this.#running !== null || this.#collected !== null;
  }

  get held(): number {
    return this.#collected?.length ?? 0;
  }

  protected checkAnnounced(length: number): void {
    if (this.#row.digest !== null) return;
    checkData(this.parameters, this.length, length);
    // The signature is over all of it, and is computed in one piece.
    if (this.#row.collects === true) checkCarried(length);
    else this.#front = { bytes: Buffer.alloc(longestInput), length: 0 };
  }

  update(input: Uint8Array): void {
    const { digest, collects } = this.#row;
    if (this.#front !== null) {
      const front = this.#front;
      front.length += Buffer.from(input.buffer, input.byteOffset, input.length).copy(front.bytes, front.length);
      return;
    }
    if (digest === null) {
      // The standard has these mechanisms for data in one piece.
      if (!collects) throw operationMissing();
      this.#collected ??= new Parts();
      this.#collected.add(input);
      return;
    }
    this.#running ??= core.digestBegin(digest);
    core.digestUpdate(this.#running, input);
  }

  protected ofWhole(data: Uint8Array): Uint8Array {
    const { digest } = this.#row;
    if (digest === null) {
      checkData(this.parameters, this.length, data.length);
      return data;
    }
    return this.#framed(digest, (out) => core.digest(digest, data, out));
  }

  protected ofParts(): Uint8Array {
    const { digest, collects } = this.#row;
    if (this.#front !== null) return this.#front.bytes.subarray(0, this.#front.length);
    if (digest === null) {
      if (!collects) throw operationMissing();
      return this.#collected?.view() ?? new Uint8Array(0);
    }
    const running = this.#running ?? core.digestBegin(digest);
    this.#running = null;
    return this.#framed(digest, (out) => core.digestFinal(running, out));
  }

  #framed(digest: Digest, hash: (out: Uint8Array) => number): Uint8Array {
    const { prefix } = this.#row;
    const input = Buffer.alloc(longestInput);
    input.set(prefix);
    hash(input.subarray(prefix.length));
    return input.subarray(0, prefix.length + digestLengths[digest]);
  }

  protected fits({ capacity }: OutBuffer): boolean {
    return capacity !== null && capacity >= this.length;
  }

  cancel(): void {
    if (this.#running !== null) core.operationCancel(this.#running);
    this.#collected?.wipe();
    this.key.release();
  }
}

const wrongSignatureLength = (): CryptokiError =>
  new CryptokiError(CKR.SIGNATURE_LEN_RANGE, 'the length of the signature does not fit the key');

const checkData = (parameters: PrehashedSignature, keyBytes: number, length: number): void => {
  const fits =
    parameters.algorithm === 'rsa-pkcs1'
      ? length <= keyBytes - pkcs1Padding
      : parameters.algorithm === 'rsa-pss'
        ? length === digestLengths[parameters.digest]
        : parameters.algorithm === 'ed25519' || parameters.algorithm === 'ed448' || length > 0;
  if (!fits) throw new CryptokiError(CKR.DATA_LEN_RANGE, 'the mechanism does not take data of this length');
};

export class LocalSignature extends Message implements SummaryOperation {
  readonly #application: Application;

  constructor(application: Application, row: SignatureRow, mechanism: Mechanism, key: SharedKey, isPrivate: boolean) {
    super(row, mechanism, key, isPrivate);
    this.#application = application;
  }

  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofWhole(input)) : new LengthOnly(this.length);
  }
  announce(length: number, out: OutBuffer): BytesOutput {
    this.checkAnnounced(length);
    return accept(out, this.length);
  }
  final(out: OutBuffer): Later<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofParts()) : new LengthOnly(this.length);
  }
  #sign(message: Uint8Array): Later<Buffer> {
    const { ref } = this.key;
    if (!this.isSlow) return core.sign(ref, this.parameters, message);
    const own = ownCopy(message);
    return queued('computation', this.#application, () => core.signLater(ref, this.parameters, own));
  }
}

/**
 * A signature by a private key of the token: hashed here, signed by the service. `key` is the
 * pair's public half.
 */
export class ServiceSignature extends Message implements SummaryOperation {
  readonly #application: Application;
  readonly #handle: number;

  constructor(application: Application, row: SignatureRow, mechanism: Mechanism, view: TokenView, key: SharedKey) {
    super(row, mechanism, key, isTrue(view, CKA.PRIVATE));
    this.#application = application;
    this.#handle = view.handle;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofWhole(input)) : new LengthOnly(this.length);
  }
  announce(length: number, out: OutBuffer): BytesOutput {
    this.checkAnnounced(length);
    return accept(out, this.length);
  }
  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofParts()) : new LengthOnly(this.length);
  }
  async #sign(message: Uint8Array): Promise<BytesOutput> {
    return (await this.#application.ask('sign', this.#handle, this.parameters, ownCopy(message))).raw;
  }
}

/**
 * C_VerifyRecover: what the signature was made of, by a public key (mechanisms 2.1.7). The key is
 * released with the operation.
 */
export class LocalRecovery implements RecoverOperation {
  readonly private: boolean;
  readonly #key: SharedKey;

  constructor(mechanism: Mechanism, key: SharedKey, isPrivate: boolean) {
    noParameter(mechanism);
    this.#key = key;
    this.private = isPrivate;
  }

  whole(signature: Uint8Array, { capacity }: OutBuffer): BytesOutput {
    if (signature.length !== signatureLength(core.describe(this.#key.ref))) throw wrongSignatureLength();
    const data = core.recover(this.#key.ref, signature);
    return capacity !== null && data.length <= capacity ? data : new LengthOnly(data.length);
  }

  cancel(): void {
    this.#key.release();
  }
}

export class LocalVerification extends Message implements VerifyOperation {
  whole(input: Uint8Array, signature: Uint8Array): void {
    this.#check(this.ofWhole(input), signature);
  }
  announce(length: number, signature: Uint8Array): void {
    if (signature.length !== this.length) throw wrongSignatureLength();
    this.checkAnnounced(length);
  }
  final(signature: Uint8Array): void {
    this.#check(this.ofParts(), signature);
  }
  #check(message: Uint8Array, signature: Uint8Array): void {
    if (signature.length !== this.length) throw wrongSignatureLength();
    if (!core.verify(this.key.ref, this.parameters, message, signature)) {
      throw new CryptokiError(CKR.SIGNATURE_INVALID, 'the signature is not valid');
    }
  }
}
