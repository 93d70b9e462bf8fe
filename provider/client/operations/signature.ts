// Signatures with the keys of a pair (PKCS#11 2.40, sections 5.11 and 5.12; mechanisms 2.1 and 2.3): in the addon with
// a key of the session and with every public key, by the service with a private key of the token. What a
// mechanism hashes is hashed part by part; what it signs as it is comes in one piece.
import {
  core,
  type Digest,
  type KeyDescription,
  type OperationRef,
  type SignatureParameters,
} from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type Mechanism, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import { operationMissing, parameterInvalid } from '../errors.ts';
import { isTrue, type SharedKey, type TokenView } from '../object-view.ts';
import type { RecoverOperation, SummaryOperation, VerifyOperation } from '../session.ts';
import { signatureHead } from './heads.ts';
import { noParameter, type SignatureRow } from './mechanisms.ts';
import { ownCopy } from './parts.ts';

const longestInput = 128;
/** RFC 8017, section 9.2: the padding of PKCS#1 takes this much of the modulus at least. */
const pkcs1Padding = 11;

/** Bytes of a signature by a key. */
const signatureLength = ({ kind, bits }: KeyDescription): number => {
  if (kind === 'ed25519-private' || kind === 'ed25519-public') return 64;
  return kind === 'ec-private' || kind === 'ec-public' ? 2 * Math.ceil(bits / 8) : Math.ceil(bits / 8);
};

/** What is signed, made of the caller's data: the data itself, or what stands for it. */
class Message {
  readonly private: boolean;
  protected readonly key: SharedKey;
  protected readonly parameters: SignatureParameters;
  protected readonly length: number;
  readonly #row: SignatureRow;
  #running: OperationRef | null = null;

  /** `key` is this operation's: it is released with it. */
  constructor(row: SignatureRow, mechanism: Mechanism, key: SharedKey, isPrivate: boolean) {
    this.key = key;
    this.private = isPrivate;
    this.#row = row;
    const description = core.describe(key.ref);
    this.length = signatureLength(description);
    this.parameters = row.parameters(mechanism.parameter, description.bits);
  }

  get started(): boolean {
    return this.#running !== null;
  }

  update(input: Uint8Array): void {
    const { digest } = this.#row;
    // The standard has these mechanisms for data in one piece.
    if (digest === null) throw operationMissing();
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
    const { digest } = this.#row;
    if (digest === null) throw operationMissing();
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
    this.key.release();
  }
}

/** SHA-1 is only checked. */
const checkMaySign = (parameters: SignatureParameters): void => {
  if (parameters.algorithm === 'rsa-pss' && parameters.digest === 'sha1') throw parameterInvalid();
};

const wrongSignatureLength = (): CryptokiError =>
  new CryptokiError(CKR.SIGNATURE_LEN_RANGE, 'the signature is not as long as the key makes it');

const checkData = (parameters: SignatureParameters, keyBytes: number, length: number): void => {
  const fits =
    parameters.algorithm === 'rsa-pkcs1'
      ? length <= keyBytes - pkcs1Padding
      : parameters.algorithm === 'rsa-pss'
        ? length === digestLengths[parameters.digest]
        : parameters.algorithm === 'ed25519' || length > 0;
  if (!fits) throw new CryptokiError(CKR.DATA_LEN_RANGE, 'the data is not as long as the mechanism wants it');
};

export class LocalSignature extends Message implements SummaryOperation {
  constructor(row: SignatureRow, mechanism: Mechanism, key: SharedKey, isPrivate: boolean) {
    super(row, mechanism, key, isPrivate);
    checkMaySign(this.parameters);
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    return this.fits(out) ? this.#sign(this.ofWhole(input)) : new LengthOnly(this.length);
  }
  final(out: OutBuffer): BytesOutput {
    return this.fits(out) ? this.#sign(this.ofParts()) : new LengthOnly(this.length);
  }
  #sign(message: Uint8Array): Buffer {
    return core.sign(this.key.ref, this.parameters, message);
  }
}

/** A signature by a private key of the token: hashed here, signed by the service. `key` is the pair's public half. */
export class ServiceSignature extends Message implements SummaryOperation {
  readonly #application: Application;
  readonly #handle: number;

  constructor(application: Application, row: SignatureRow, mechanism: Mechanism, view: TokenView, key: SharedKey) {
    super(row, mechanism, key, isTrue(view, CKA.PRIVATE));
    checkMaySign(this.parameters);
    this.#application = application;
    this.#handle = view.handle;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofWhole(input)) : new LengthOnly(this.length);
  }
  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.fits(out) ? this.#sign(this.ofParts()) : new LengthOnly(this.length);
  }
  async #sign(message: Uint8Array): Promise<BytesOutput> {
    const head = signatureHead(this.parameters);
    return (await this.#application.ask('sign', this.#handle, head, ownCopy(message))).raw;
  }
}

/** C_VerifyRecover: what the signature was made of, by a public key (mechanisms 2.1.7). The key is released with the operation. */
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
  final(signature: Uint8Array): void {
    this.#check(this.ofParts(), signature);
  }
  #check(message: Uint8Array, signature: Uint8Array): void {
    if (signature.length !== this.length) throw wrongSignatureLength();
    if (!core.verify(this.key.ref, this.parameters, message, signature)) {
      throw new CryptokiError(CKR.SIGNATURE_INVALID, 'the signature does not verify');
    }
  }
}
