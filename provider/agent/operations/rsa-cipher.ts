// RSA encryption and decryption, in one piece: with a key of the session in the addon, with a
// private key of the token by the service.
import { core, type Direction, type RsaEncryptionParameters } from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { isTrue, type SharedKey, type TokenView } from '../objects/object-view.ts';
import { operationMissing } from '../return-values.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';
import type { CipherOperation } from '../sessions/operation.ts';
import { placeFor, wrongLength } from './cipher-lengths.ts';
import { fits, inInit, ownCopy, wipeAfterReply } from './collected-parts.ts';
import { type LocalKey, publicHalf } from './find-key.ts';
import { isSlowPrivateKey, queued } from './slow-work.ts';

/**
 * RFC 8017: of the modulus, OAEP takes two digests and two bytes (section 7.1), PKCS#1 v1.5 takes
 * 11 bytes (section 7.2).
 */
const mostInRsa = (modulusBytes: number, parameters: RsaEncryptionParameters): number =>
  modulusBytes - (parameters.padding === 'oaep' ? 2 * digestLengths[parameters.digest] + 2 : 11);

/**
 * RSA encryption (mechanisms 2.1.6 and 2.1.8), in one piece. The key is this operation's: it is
 * released with it.
 */
export class LocalRsaCipher implements CipherOperation {
  readonly private: boolean;
  readonly keyAttributes: ReadonlyAttributes;
  readonly started = false;
  readonly #application: Application;
  readonly #key: SharedKey;
  readonly #direction: Direction;
  readonly #parameters: RsaEncryptionParameters;
  /** Bytes of the modulus. */
  readonly #length: number;
  readonly #isSlow: boolean;

  constructor(
    application: Application,
    { key, view, private: isPrivate }: LocalKey,
    direction: Direction,
    parameters: RsaEncryptionParameters,
  ) {
    this.keyAttributes = view.attributes;
    this.#application = application;
    this.#key = key;
    this.#direction = direction;
    this.#parameters = parameters;
    const description = core.describe(key.ref);
    this.#length = Math.ceil(description.bits / 8);
    this.#isSlow = isSlowPrivateKey(description);
    this.private = isPrivate;
  }

  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput> {
    const most = mostInRsa(this.#length, this.#parameters);
    if (this.#direction === 'encrypt') {
      if (input.length > most) throw wrongLength('encrypt');
      if (!fits(out, this.#length)) return new LengthOnly(this.#length);
      return core.rsaEncrypt(this.#key.ref, this.#parameters, input);
    }
    if (input.length !== this.#length) throw wrongLength('decrypt');
    if (out.capacity === null) return new LengthOnly(most);
    if (this.#isSlow) return this.#decryptQueued(ownCopy(input), out.capacity);
    const plain = core.rsaDecrypt(this.#key.ref, this.#parameters, input);
    const answer = fits(out, plain.length) ? plain.copy(placeFor(out, plain.length)) : new LengthOnly(plain.length);
    core.wipe(plain);
    return answer;
  }

  async #decryptQueued(input: Uint8Array, capacity: number): Promise<BytesOutput> {
    const decrypt = () => core.rsaDecryptLater(this.#key.ref, this.#parameters, input);
    const plain = await queued('computation', this.#application, decrypt);
    if (plain.length <= capacity) return wipeAfterReply(plain);
    core.wipe(plain);
    return new LengthOnly(plain.length);
  }

  get held(): number {
    return inInit(this.#parameters);
  }

  announce(): never {
    // Longer than any modulus.
    throw wrongLength(this.#direction);
  }
  announcePart(): never {
    throw operationMissing();
  }
  update(): never {
    // The standard has this mechanism for data in one piece.
    throw operationMissing();
  }
  final(): never {
    throw operationMissing();
  }

  cancel(): void {
    this.#key.release();
  }
}

/** RSA decryption with a private key of the token, by the service. */
export class ServiceRsaCipher implements CipherOperation {
  readonly private: boolean;
  readonly started = false;
  readonly #application: Application;
  readonly #handle: number;
  readonly #parameters: RsaEncryptionParameters;
  /** Bytes of the modulus. */
  readonly #length: number;

  constructor(application: Application, view: TokenView, parameters: RsaEncryptionParameters) {
    this.#application = application;
    this.#handle = view.handle;
    this.#parameters = parameters;
    this.#length = Math.ceil(publicHalf(view, ({ bits }) => bits) / 8);
    this.private = isTrue(view, CKA.PRIVATE);
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    if (input.length !== this.#length) throw wrongLength('decrypt');
    if (out.capacity === null) return new LengthOnly(mostInRsa(this.#length, this.#parameters));
    return this.#run(ownCopy(input), out.capacity);
  }

  async #run(input: Uint8Array<ArrayBuffer>, capacity: number): Promise<BytesOutput> {
    const { raw } = await this.#application.ask('decrypt', this.#handle, this.#parameters, input);
    if (raw.length <= capacity) return wipeAfterReply(raw);
    core.wipe(raw);
    return new LengthOnly(raw.length);
  }

  get held(): number {
    return inInit(this.#parameters);
  }

  announce(): never {
    throw wrongLength('decrypt');
  }
  announcePart(): never {
    throw operationMissing();
  }
  update(): never {
    throw operationMissing();
  }
  final(): never {
    throw operationMissing();
  }
  cancel(): void {}
}
