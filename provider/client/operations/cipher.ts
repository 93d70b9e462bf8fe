// Encryption and decryption (PKCS#11 2.40, sections 5.8 and 5.9) with a session key, in the addon, or with a token key, by
// the service. Both keep the rules of 5.2 for output: a length query and a buffer that is too small leave everything as it
// was.
import {
  type CipherParameters,
  core,
  type Direction,
  type KeyRef,
  type OaepParameters,
  type OperationRef,
} from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import { dataTooLong, operationMissing } from '../errors.ts';
import { isTrue, type SharedKey, type TokenView } from '../object-view.ts';
import type { CipherOperation, Repeatable } from '../session.ts';
import { Chain, isChained, type Piece } from './chain.ts';
import { cipherHead, oaepHead } from './heads.ts';
import type { FreshIv } from './initial-values.ts';
import { publicHalf } from './keys.ts';
import type { CipherRow } from './mechanisms.ts';
import { ownCopy, Parts, wipeAfterReply } from './parts.ts';

const wrongLength = (direction: Direction): CryptokiError =>
  direction === 'encrypt'
    ? new CryptokiError(CKR.DATA_LEN_RANGE, 'the data is not as long as the mechanism wants it')
    : new CryptokiError(CKR.ENCRYPTED_DATA_LEN_RANGE, 'the encrypted data is not as long as the mechanism makes it');

/** Length of a whole result: exact but for CBC_PAD decryption, where it is the most that can come. */
const resultLength = (direction: Direction, parameters: CipherParameters, length: number): number => {
  switch (parameters.algorithm) {
    case 'aes-cbc-pad':
      return direction === 'encrypt' ? length - (length % 16) + 16 : length;
    case 'aes-gcm':
    case 'aes-ccm':
      return direction === 'encrypt' ? length + parameters.tagLength : length - parameters.tagLength;
    default:
      return length;
  }
};

const checkLength = (row: CipherRow, direction: Direction, parameters: CipherParameters, length: number): void => {
  const unit = direction === 'encrypt' ? row.encryptUnit : row.decryptUnit;
  if (length % unit !== 0) throw wrongLength(direction);
  if (direction === 'decrypt') {
    if (parameters.algorithm === 'aes-cbc-pad' && length === 0) throw wrongLength(direction);
    if ('tagLength' in parameters && length < parameters.tagLength) throw wrongLength(direction);
  }
  if (parameters.algorithm === 'aes-ccm') {
    const { dataLength, tagLength } = parameters;
    if (length !== dataLength + (direction === 'encrypt' ? 0 : tagLength)) throw wrongLength(direction);
  }
};

/** Whether the caller has room for so many bytes. */
export const fits = ({ capacity }: OutBuffer, length: number): boolean => capacity !== null && capacity >= length;

/** The place for a result; the frame may end before the caller's room does. */
const placeFor = (out: OutBuffer, length: number): Buffer => {
  if (out.space.length < length) throw dataTooLong();
  return out.space;
};

/**
 * Nothing under GCM, and nothing beside it: so SunPKCS11 gives up what C_EncryptInit began before it knew what to authenticate, and
 * begins again with the same IV. This uses no IV up. What comes of it is the same each time; still, no program should publish it.
 */
const givesUp = (parameters: CipherParameters, length: number): boolean =>
  length === 0 && parameters.algorithm === 'aes-gcm' && (parameters.aad?.length ?? 0) === 0;

export class LocalCipher implements CipherOperation {
  readonly private: boolean;
  readonly #row: CipherRow;
  readonly key: KeyRef;
  readonly #direction: Direction;
  readonly #parameters: CipherParameters;
  readonly #freshIv: FreshIv | null;
  #running: OperationRef | null = null;
  /** The last part, made but not yet fetched because the room was too small. */
  #last: Buffer | null = null;

  constructor(
    row: CipherRow,
    key: KeyRef,
    direction: Direction,
    parameters: CipherParameters,
    freshIv: FreshIv | null,
    isPrivate: boolean,
  ) {
    this.#row = row;
    this.key = key;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#freshIv = freshIv;
    this.private = isPrivate;
  }

  get started(): boolean {
    return this.#running !== null;
  }

  /**
   * Not what takes padding off: what comes of that depends on the data. CTR and CCM count, and the additional data of GCM differ from message to
   * message where there are any.
   */
  get repeatable(): Repeatable | null {
    const parameters = this.#parameters;
    switch (parameters.algorithm) {
      case 'aes-ecb':
      case 'aes-cbc':
        break;
      case 'aes-cbc-pad':
        if (this.#direction === 'decrypt') return null;
        break;
      case 'aes-gcm':
        if ((parameters.aad?.length ?? 0) > 0) return null;
        break;
      default:
        return null;
    }
    const unit = this.#direction === 'encrypt' ? this.#row.encryptUnit : this.#row.decryptUnit;
    return { key: this.key, unit, direction: this.#direction, cipher: parameters, usedIvs: this.#freshIv?.user };
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    const length = input.length;
    checkLength(this.#row, this.#direction, this.#parameters, length);
    const most = resultLength(this.#direction, this.#parameters, length);
    if (fits(out, most)) {
      if (!givesUp(this.#parameters, length)) this.#freshIv?.take();
      return core.cipher(this.key, this.#direction, this.#parameters, input, placeFor(out, most));
    }
    if (out.capacity === null || this.#parameters.algorithm !== 'aes-cbc-pad' || this.#direction === 'encrypt') {
      return new LengthOnly(most);
    }
    // Padding makes the result shorter than the most it can be: see what it is.
    const result = Buffer.alloc(most);
    const exact = core.cipher(this.key, this.#direction, this.#parameters, input, result);
    const answer = fits(out, exact) ? result.copy(placeFor(out, exact), 0, 0, exact) : new LengthOnly(exact);
    core.wipe(result);
    return answer;
  }

  #begin(): OperationRef {
    this.#freshIv?.take();
    return core.cipherBegin(this.key, this.#direction, this.#parameters);
  }

  update(input: Uint8Array, out: OutBuffer): BytesOutput {
    this.#running ??= this.#begin();
    const most = core.cipherUpdateLength(this.#running, input.length);
    if (!fits(out, most)) return new LengthOnly(most);
    return core.cipherUpdate(this.#running, input, placeFor(out, most));
  }

  final(out: OutBuffer): BytesOutput {
    if (this.#last === null) {
      this.#running ??= this.#begin();
      const most = core.cipherFinalLength(this.#running);
      if (fits(out, most)) return core.cipherFinal(this.#running, placeFor(out, most));
      if (out.capacity === null) return new LengthOnly(most);
      const last = Buffer.alloc(most);
      this.#last = last.subarray(0, core.cipherFinal(this.#running, last));
    }
    if (!fits(out, this.#last.length)) return new LengthOnly(this.#last.length);
    return this.#last.copy(placeFor(out, this.#last.length));
  }

  cancel(): void {
    if (this.#running !== null) core.operationCancel(this.#running);
    if (this.#last !== null) core.wipe(this.#last);
  }
}

/** RFC 8017, section 7.1: two digests and two bytes of the modulus are padding. */
const mostInOaep = (modulusBytes: number, { digest }: OaepParameters): number =>
  modulusBytes - 2 * digestLengths[digest] - 2;

/** RSA-OAEP (mechanisms 2.1.8), in one piece. The key is this operation's: it is released with it. */
export class LocalOaep implements CipherOperation {
  readonly private: boolean;
  readonly started = false;
  readonly #key: SharedKey;
  readonly #direction: Direction;
  readonly #parameters: OaepParameters;
  /** Bytes of the modulus. */
  readonly #length: number;

  constructor(key: SharedKey, direction: Direction, parameters: OaepParameters, isPrivate: boolean) {
    this.#key = key;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#length = Math.ceil(core.describe(key.ref).bits / 8);
    this.private = isPrivate;
  }

  get key(): KeyRef {
    return this.#key.ref;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    const most = mostInOaep(this.#length, this.#parameters);
    if (this.#direction === 'encrypt') {
      if (input.length > most) throw wrongLength('encrypt');
      if (!fits(out, this.#length)) return new LengthOnly(this.#length);
      return core.oaepEncrypt(this.#key.ref, this.#parameters, input);
    }
    if (input.length !== this.#length) throw wrongLength('decrypt');
    if (out.capacity === null) return new LengthOnly(most);
    const plain = core.oaepDecrypt(this.#key.ref, this.#parameters, input);
    const answer = fits(out, plain.length) ? plain.copy(placeFor(out, plain.length)) : new LengthOnly(plain.length);
    core.wipe(plain);
    return answer;
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

/** RSA-OAEP decryption with a private key of the token, by the service. */
export class ServiceOaep implements CipherOperation {
  readonly private: boolean;
  readonly started = false;
  readonly #application: Application;
  readonly #handle: number;
  readonly #parameters: OaepParameters;
  /** Bytes of the modulus. */
  readonly #length: number;

  constructor(application: Application, view: TokenView, parameters: OaepParameters) {
    this.#application = application;
    this.#handle = view.handle;
    this.#parameters = parameters;
    this.#length = Math.ceil(publicHalf(view, ({ bits }) => bits) / 8);
    this.private = isTrue(view, CKA.PRIVATE);
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    if (input.length !== this.#length) throw wrongLength('decrypt');
    if (out.capacity === null) return new LengthOnly(mostInOaep(this.#length, this.#parameters));
    return this.#run(ownCopy(input), out.capacity);
  }

  async #run(input: Uint8Array<ArrayBuffer>, capacity: number): Promise<BytesOutput> {
    const { raw } = await this.#application.ask('decrypt', this.#handle, oaepHead(this.#parameters), input);
    if (raw.length <= capacity) return wipeAfterReply(raw);
    core.wipe(raw);
    return new LengthOnly(raw.length);
  }

  update(): never {
    throw operationMissing();
  }
  final(): never {
    throw operationMissing();
  }
  cancel(): void {}
}

/**
 * With a key that never leaves the service. Parts travel as they come where the mode allows it (chain.ts); those of GCM and CCM are
 * collected, and the message travels in one call.
 */
export class ServiceCipher implements CipherOperation {
  readonly private: boolean;
  started = false;
  readonly #application: Application;
  readonly #row: CipherRow;
  readonly #handle: number;
  readonly #direction: Direction;
  readonly #parameters: CipherParameters;
  readonly #freshIv: FreshIv | null;
  readonly #chain: Chain | null;
  readonly #parts = new Parts();
  /** The result, made but not yet fetched because the room was too small. */
  #result: Uint8Array | null = null;

  constructor(
    application: Application,
    row: CipherRow,
    handle: number,
    direction: Direction,
    parameters: CipherParameters,
    freshIv: FreshIv | null,
    isPrivate: boolean,
  ) {
    this.#application = application;
    this.#row = row;
    this.#handle = handle;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#freshIv = freshIv;
    this.#chain = isChained(parameters) ? new Chain(direction, parameters) : null;
    this.private = isPrivate;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    checkLength(this.#row, this.#direction, this.#parameters, input.length);
    const most = resultLength(this.#direction, this.#parameters, input.length);
    // A query is answered without a call; only a result of unknown length is made to see how long it is.
    const unknown = this.#parameters.algorithm === 'aes-cbc-pad' && this.#direction === 'decrypt';
    if (!fits(out, most) && (out.capacity === null || !unknown)) return new LengthOnly(most);
    return this.#run(ownCopy(input), out.capacity);
  }

  update(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    const chain = this.#chain;
    // Of what is collected nothing comes back before the end.
    const ready = chain === null ? 0 : chain.ready(input.length);
    // A query takes nothing in.
    if (!fits(out, ready)) return new LengthOnly(ready);
    this.started = true;
    if (chain === null) {
      this.#parts.add(input);
      return 0;
    }
    if (chain.runsOver(input.length)) throw wrongLength(this.#direction);
    const piece = chain.take(input);
    return piece === null ? 0 : this.#follow(chain, piece);
  }

  async #follow(chain: Chain, { parameters, bytes, skip }: Piece): Promise<BytesOutput> {
    const { raw } = await this.#application.ask(this.#direction, this.#handle, cipherHead(parameters), bytes);
    chain.follow(raw);
    return wipeAfterReply(raw).subarray(skip);
  }

  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    const { capacity } = out;
    if (this.#result !== null) return this.#fetch(this.#result, capacity);
    if (this.#chain !== null) return this.#finalOf(this.#chain, out);
    checkLength(this.#row, this.#direction, this.#parameters, this.#parts.length);
    const most = resultLength(this.#direction, this.#parameters, this.#parts.length);
    if (capacity === null) return new LengthOnly(most);
    return this.#run(this.#parts.copy(), capacity);
  }

  #finalOf(chain: Chain, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    checkLength(this.#row, this.#direction, this.#parameters, chain.total);
    // What is unpadded is shorter than the most it can be: it is made to see how long it is.
    const unknown = out.capacity !== null && this.#direction === 'decrypt';
    if (!fits(out, chain.lastLength) && !unknown) return new LengthOnly(chain.lastLength);
    const piece = chain.last();
    return piece === null ? 0 : this.#run(piece.bytes, out.capacity, piece.parameters);
  }

  async #run(
    input: Uint8Array<ArrayBuffer>,
    capacity: number | null,
    parameters: CipherParameters = this.#parameters,
  ): Promise<BytesOutput> {
    if (this.started || !givesUp(parameters, input.length)) this.#freshIv?.take();
    const head = cipherHead(parameters);
    const { raw } = await this.#application.ask(this.#direction, this.#handle, head, input);
    return this.#fetch(raw, capacity);
  }

  #fetch(result: Uint8Array, capacity: number | null): BytesOutput {
    if (capacity !== null && result.length <= capacity) {
      this.#result = null;
      return wipeAfterReply(result);
    }
    if (this.started) this.#result = result;
    else core.wipe(result);
    return new LengthOnly(result.length);
  }

  cancel(): void {
    this.#chain?.wipe();
    this.#parts.wipe();
    if (this.#result !== null) core.wipe(this.#result);
  }
}
