// Encryption and decryption (PKCS#11 2.40, sections 5.8 and 5.9) with a session key, in the addon, or with a token key, by
// the service. Both keep the rules of 5.2 for output: a length query and a buffer that is too small leave everything as it
// was.
import {
  type CipherParameters,
  core,
  type Direction,
  type KeyRef,
  type OperationRef,
  type RsaEncryptionParameters,
} from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { CKA } from '../../schema/attributes.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import type { ReadonlyAttributes } from '../attribute-blob.ts';
import { dataTooLong, operationActive, operationMissing } from '../errors.ts';
import { isTrue, type SharedKey, type TokenView } from '../object-view.ts';
import { andThen, type CipherOperation, type Later, type Repeatable } from '../session.ts';
import { Chain, type ChainedParameters, counterRunsOver, type Piece } from './chain.ts';
import { cipherHead, rsaEncryptionHead } from './heads.ts';
import type { FreshIv } from './initial-values.ts';
import { type LocalKey, publicHalf } from './keys.ts';
import type { CipherRow } from './mechanisms.ts';
import { type AeadParameters, HeldMessage, joined, type MessageKey, type MessageStream } from './message-streams.ts';
import { accept, fits, inInit, ownCopy, wipeAfterReply } from './parts.ts';
import { inTurn, isSlowPrivateKey } from './slow-work.ts';

const noBytes = new Uint8Array(0);

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
  if (length % unit !== 0 || counterRunsOver(parameters, length)) throw wrongLength(direction);
  if (direction === 'decrypt') {
    if (parameters.algorithm === 'aes-cbc-pad' && length === 0) throw wrongLength(direction);
    if ('tagLength' in parameters && length < parameters.tagLength) throw wrongLength(direction);
  }
  if (parameters.algorithm === 'aes-ccm') {
    const { dataLength, tagLength } = parameters;
    if (length !== dataLength + (direction === 'encrypt' ? 0 : tagLength)) throw wrongLength(direction);
  }
};

/** The place for a result; the frame may end before the caller's room does. */
const placeFor = (out: OutBuffer, length: number): Buffer => {
  if (out.space.length < length) throw dataTooLong();
  return out.space;
};

/** Whether the result may be shorter than the most it can be: its last block tells. */
const isUnpadded = (direction: Direction, parameters: CipherParameters): boolean =>
  direction === 'decrypt' && parameters.algorithm === 'aes-cbc-pad';

/** A message in one piece whose bytes come in parts, because a message of the wire does not carry them. */
interface Announced {
  /** Bytes of all parts. */
  readonly length: number;
  /** Bytes that have come. */
  taken: number;
  /**
   * Whether parts are answered with what becomes of them. Otherwise nothing is given out yet: this time it is seen whether the tag is
   * right, or how long the result is, and then the parts come again.
   */
  readonly given: boolean;
}

/**
 * Checks what is announced against the caller's room. Null: there is none for what it comes to. Nothing of an authenticated message
 * is given out before its tag is checked, and nothing of a result that may not fit.
 */
const announced = (
  row: CipherRow,
  direction: Direction,
  parameters: CipherParameters,
  length: number,
  { capacity }: OutBuffer,
): { readonly most: number; readonly message: Announced | null } => {
  checkLength(row, direction, parameters, length);
  const most = resultLength(direction, parameters, length);
  const unpadded = isUnpadded(direction, parameters);
  const least = unpadded ? most - 16 : most;
  if (capacity === null || capacity < least) return { most, message: null };
  const opens = direction === 'decrypt' && 'tagLength' in parameters;
  return { most, message: { length, taken: 0, given: !opens && capacity >= most } };
};

const checkTaken = ({ taken, length }: Announced, more: number, direction: Direction): void => {
  if (taken + more > length) throw wrongLength(direction);
};

export class LocalCipher implements CipherOperation {
  readonly private: boolean;
  readonly keyAttributes: ReadonlyAttributes;
  readonly #row: CipherRow;
  readonly #key: KeyRef;
  readonly #direction: Direction;
  readonly #parameters: CipherParameters;
  readonly #freshIv: FreshIv | null;
  #running: OperationRef | null = null;
  #announced: Announced | null = null;
  /** Whether the tag of what was held back is right, and it is given out in pieces because one message does not carry it. */
  #isFetched = false;
  /** The last part, made but not yet fetched because the room was too small. */
  #last: Buffer | null = null;
  /** Bytes of the parts that were taken. */
  #total = 0;
  /** Bytes that the addon keeps for the end, in the modes that give nothing back before it. */
  #held = 0;
  readonly #holdsBack: boolean;

  constructor(
    row: CipherRow,
    { key, view, private: isPrivate }: LocalKey,
    direction: Direction,
    parameters: CipherParameters,
    freshIv: FreshIv | null,
  ) {
    this.keyAttributes = view.attributes;
    this.#row = row;
    this.#key = key.ref;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#freshIv = freshIv;
    this.private = isPrivate;
    const { algorithm } = parameters;
    this.#holdsBack = direction === 'decrypt' && (algorithm === 'aes-ccm' || algorithm === 'aes-gcm');
  }

  get started(): boolean {
    return this.#running !== null && this.#announced === null;
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
    return { key: this.#key, unit, direction: this.#direction, cipher: parameters, usedIvs: this.#freshIv?.user };
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    const length = input.length;
    checkLength(this.#row, this.#direction, this.#parameters, length);
    const most = resultLength(this.#direction, this.#parameters, length);
    if (fits(out, most)) {
      this.#freshIv?.takeForWhole(length);
      return core.cipher(this.#key, this.#direction, this.#parameters, input, placeFor(out, most));
    }
    if (out.capacity === null || this.#parameters.algorithm !== 'aes-cbc-pad' || this.#direction === 'encrypt') {
      return new LengthOnly(most);
    }
    // Padding makes the result shorter than the most it can be: see what it is.
    const result = Buffer.alloc(most);
    const exact = core.cipher(this.#key, this.#direction, this.#parameters, input, result);
    const answer = fits(out, exact) ? result.copy(placeFor(out, exact), 0, 0, exact) : new LengthOnly(exact);
    core.wipe(result);
    return answer;
  }

  #begin(): OperationRef {
    this.#freshIv?.take();
    // Nothing of a message that was announced leaves the agent before its tag was checked once: see `#checked`.
    const begin = this.#announced === null ? core.cipherBegin : core.cipherBeginUnchecked;
    return begin(this.#key, this.#direction, this.#parameters);
  }

  announce(length: number, out: OutBuffer): BytesOutput {
    // What was encrypted under this IV is out already.
    if (this.#running !== null && this.#direction === 'encrypt') throw operationActive();
    const { most, message } = announced(this.#row, this.#direction, this.#parameters, length, out);
    this.#restart(message);
    return message === null ? new LengthOnly(most) : 0;
  }

  #restart(message: Announced | null): void {
    if (this.#running !== null) core.operationCancel(this.#running);
    this.#running = null;
    this.#total = 0;
    this.#announced = message;
  }

  announcePart(length: number, out: OutBuffer): BytesOutput {
    this.#running ??= this.#begin();
    if (out.capacity === null && this.#holdsBack) return new LengthOnly(this.#held + length);
    return accept(out, core.cipherUpdateLength(this.#running, length));
  }

  get held(): number {
    return inInit(this.#parameters) + this.#held + (this.#last?.length ?? 0);
  }

  update(input: Uint8Array, out: OutBuffer): BytesOutput {
    if (this.#announced !== null) checkTaken(this.#announced, input.length, this.#direction);
    this.#running ??= this.#begin();
    if (this.#isFetched) {
      if (input.length > 0) throw operationActive();
      const taken = core.cipherTake(this.#running, out.space);
      this.#held -= taken;
      return taken;
    }
    if (counterRunsOver(this.#parameters, this.#total + input.length)) throw wrongLength(this.#direction);
    // What is held back comes with the end: enough room for all of it is an answer for every caller.
    if (out.capacity === null && this.#holdsBack) return new LengthOnly(this.#held + input.length);
    const most = core.cipherUpdateLength(this.#running, input.length);
    if (!fits(out, most)) return new LengthOnly(most);
    this.#total += input.length;
    if (this.#holdsBack && this.#announced === null) this.#held += input.length;
    const place = placeFor(out, most);
    const written = core.cipherUpdate(this.#running, input, place);
    if (this.#announced === null) return written;
    this.#announced.taken += input.length;
    if (this.#announced.given) return written;
    core.wipe(place.subarray(0, written));
    return 0;
  }

  /** The end of parts of which nothing was given out: how long the result is. They come again, and are given out then. */
  #checked({ length }: Announced, out: OutBuffer): LengthOnly {
    const running = this.#running ?? this.#begin();
    const last = Buffer.alloc(16);
    // Throws when the tag is wrong, or the padding.
    const written = core.cipherFinal(running, last);
    core.wipe(last);
    this.#running = null;
    this.#total = 0;
    const unpadded = isUnpadded(this.#direction, this.#parameters);
    const exact = unpadded ? length - 16 + written : resultLength(this.#direction, this.#parameters, length);
    this.#announced = fits(out, exact) ? { length, taken: 0, given: true } : null;
    return new LengthOnly(exact);
  }

  final(out: OutBuffer): BytesOutput {
    if (this.#announced !== null) {
      if (this.#announced.taken !== this.#announced.length) throw wrongLength(this.#direction);
      if (!this.#announced.given) return this.#checked(this.#announced, out);
    }
    if (this.#last === null) {
      this.#running ??= this.#begin();
      const most = core.cipherFinalLength(this.#running);
      if (fits(out, most)) {
        if (most <= out.space.length) return core.cipherFinal(this.#running, out.space);
        // Parts without data fetch all but the end of it.
        if (!this.#isFetched) core.cipherCheck(this.#running);
        this.#isFetched = true;
        return new LengthOnly(most);
      }
      // Only padding makes it shorter than that, and is taken off to see how long it is.
      if (out.capacity === null || !isUnpadded(this.#direction, this.#parameters)) return new LengthOnly(most);
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

/** RFC 8017: of the modulus, OAEP takes two digests and two bytes (section 7.1), PKCS#1 v1.5 takes 11 bytes (section 7.2). */
const mostInRsa = (modulusBytes: number, parameters: RsaEncryptionParameters): number =>
  modulusBytes - (parameters.padding === 'oaep' ? 2 * digestLengths[parameters.digest] + 2 : 11);

/** RSA encryption (mechanisms 2.1.6 and 2.1.8), in one piece. The key is this operation's: it is released with it. */
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
    if (this.#isSlow) return this.#decryptInTurn(ownCopy(input), out.capacity);
    const plain = core.rsaDecrypt(this.#key.ref, this.#parameters, input);
    const answer = fits(out, plain.length) ? plain.copy(placeFor(out, plain.length)) : new LengthOnly(plain.length);
    core.wipe(plain);
    return answer;
  }

  async #decryptInTurn(input: Uint8Array, capacity: number): Promise<BytesOutput> {
    const decrypt = () => core.rsaDecryptLater(this.#key.ref, this.#parameters, input);
    const plain = await inTurn('computation', this.#application, decrypt);
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
    const { raw } = await this.#application.ask('decrypt', this.#handle, rsaEncryptionHead(this.#parameters), input);
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

/**
 * ECB, CBC and CTR with a key that never leaves the service. Parts travel as they come (chain.ts).
 */
export class ServiceCipher implements CipherOperation {
  readonly private: boolean;
  started = false;
  readonly #application: Application;
  readonly #row: CipherRow;
  readonly #handle: number;
  readonly #direction: Direction;
  readonly #parameters: ChainedParameters;
  #chain: Chain;
  #announced: Announced | null = null;
  /** The result, made but not yet fetched because the room was too small. */
  #result: Uint8Array | null = null;

  constructor(
    application: Application,
    row: CipherRow,
    handle: number,
    direction: Direction,
    parameters: ChainedParameters,
    isPrivate: boolean,
  ) {
    this.#application = application;
    this.#row = row;
    this.#handle = handle;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#chain = new Chain(direction, parameters);
    this.private = isPrivate;
  }

  get held(): number {
    return this.#result?.length ?? 0;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    checkLength(this.#row, this.#direction, this.#parameters, input.length);
    const most = resultLength(this.#direction, this.#parameters, input.length);
    // A query is answered without a call; only a result of unknown length is made to see how long it is.
    const unknown = isUnpadded(this.#direction, this.#parameters);
    if (!fits(out, most) && (out.capacity === null || !unknown)) return new LengthOnly(most);
    return this.#run(ownCopy(input), out.capacity);
  }

  announce(length: number, out: OutBuffer): BytesOutput {
    const { most, message } = announced(this.#row, this.#direction, this.#parameters, length, out);
    this.#restart(message);
    return message === null ? new LengthOnly(most) : 0;
  }

  #restart(message: Announced | null): void {
    this.#chain.wipe();
    this.#chain = new Chain(this.#direction, this.#parameters);
    this.#announced = message;
  }

  announcePart(length: number, out: OutBuffer): BytesOutput {
    return accept(out, this.#chain.ready(length));
  }

  update(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    const chain = this.#chain;
    if (chain.runsOver(input.length)) throw wrongLength(this.#direction);
    const ready = chain.ready(input.length);
    // A query takes nothing in.
    if (!fits(out, ready)) return new LengthOnly(ready);
    if (this.#announced === null) {
      this.started = true;
    } else {
      checkTaken(this.#announced, input.length, this.#direction);
      this.#announced.taken += input.length;
    }
    const piece = chain.take(input);
    return piece === null ? 0 : this.#follow(chain, piece);
  }

  async #follow(chain: Chain, { parameters, bytes, skip }: Piece): Promise<BytesOutput> {
    const { raw } = await this.#application.ask(this.#direction, this.#handle, cipherHead(parameters), bytes);
    chain.follow(raw);
    const isHeld = this.#announced?.given === false;
    return wipeAfterReply(raw).subarray(isHeld ? raw.length : skip);
  }

  /** The end of parts of which nothing was given out: see `LocalCipher`. */
  async #checked({ length }: Announced, out: number): Promise<BytesOutput> {
    const piece = this.#chain.last();
    if (piece === null) throw wrongLength(this.#direction);
    const head = cipherHead(piece.parameters);
    const { raw } = await this.#application.ask(this.#direction, this.#handle, head, piece.bytes);
    const exact = length - 16 + raw.length;
    core.wipe(raw);
    this.#restart(exact <= out ? { length, taken: 0, given: true } : null);
    return new LengthOnly(exact);
  }

  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    const { capacity } = out;
    if (this.#result !== null) return this.#fetch(this.#result, capacity);
    if (this.#announced !== null) {
      if (this.#announced.taken !== this.#announced.length) throw wrongLength(this.#direction);
      if (!this.#announced.given) return this.#checked(this.#announced, capacity ?? 0);
    }
    const chain = this.#chain;
    checkLength(this.#row, this.#direction, this.#parameters, chain.total);
    // What is unpadded is shorter than the most it can be: it is made to see how long it is.
    const unknown = capacity !== null && this.#direction === 'decrypt';
    if (!fits(out, chain.lastLength) && !unknown) return new LengthOnly(chain.lastLength);
    const piece = chain.last();
    return piece === null ? 0 : this.#run(piece.bytes, capacity, piece.parameters);
  }

  async #run(
    input: Uint8Array<ArrayBuffer>,
    capacity: number | null,
    parameters: CipherParameters = this.#parameters,
  ): Promise<BytesOutput> {
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
    this.#chain.wipe();
    if (this.#result !== null) core.wipe(this.#result);
  }
}

/**
 * GCM and CCM with a key that never leaves the service. What is encrypted in parts comes back part by part. What is decrypted in parts
 * is held until its tag was checked.
 */
export class ServiceAead implements CipherOperation {
  readonly private: boolean;
  started = false;
  readonly #key: MessageKey;
  readonly #row: CipherRow;
  readonly #direction: Direction;
  readonly #parameters: AeadParameters;
  readonly #freshIv: FreshIv | null;
  #stream: MessageStream | null = null;
  #announced: Announced | null = null;
  #total = 0;
  readonly #held: HeldMessage;
  /** The last bytes that have come to be decrypted, which may be the tag. */
  #tail = Buffer.alloc(0);

  constructor(
    key: MessageKey,
    row: CipherRow,
    direction: Direction,
    parameters: AeadParameters,
    freshIv: FreshIv | null,
    isPrivate: boolean,
  ) {
    this.#key = key;
    this.#row = row;
    this.#direction = direction;
    this.#parameters = parameters;
    this.#freshIv = freshIv;
    this.#held = new HeldMessage(key, parameters);
    this.private = isPrivate;
  }

  get held(): number {
    return this.#held.length + inInit(this.#parameters);
  }

  whole(input: Uint8Array, out: OutBuffer): Later<BytesOutput> {
    checkLength(this.#row, this.#direction, this.#parameters, input.length);
    const most = resultLength(this.#direction, this.#parameters, input.length);
    if (!fits(out, most)) return new LengthOnly(most);
    this.#freshIv?.takeForWhole(input.length);
    if (input.length <= this.#key.most(this.#parameters)) {
      return andThen(this.#key.run(this.#direction, this.#parameters, input), wipeAfterReply);
    }
    if (this.#direction === 'encrypt') {
      const stream = this.#key.begin('encrypt', this.#parameters);
      return andThen(stream.update(input), (data) => andThen(stream.seal(), (tag) => joined([data, tag])));
    }
    const tag = Uint8Array.from(input.subarray(most));
    return andThen(this.#held.add(input.subarray(0, most)), () =>
      andThen(this.#held.end(tag), (plain) => andThen(plain ?? this.#held.finish(tag), wipeAfterReply)),
    );
  }

  announce(length: number, out: OutBuffer): BytesOutput {
    // What was encrypted under this IV is out already.
    if (this.#stream !== null && this.#direction === 'encrypt') throw operationActive();
    const { most, message } = announced(this.#row, this.#direction, this.#parameters, length, out);
    this.#restart(message);
    return message === null ? new LengthOnly(most) : 0;
  }

  #restart(message: Announced | null): void {
    this.#stream?.cancel();
    this.#stream = null;
    this.#tail = Buffer.alloc(0);
    this.#announced = message;
  }

  announcePart(length: number, out: OutBuffer): BytesOutput {
    if (this.#direction === 'encrypt') return accept(out, length);
    this.#held.checkRoom(Math.max(0, this.#tail.length + length - this.#parameters.tagLength));
    return accept(out, out.capacity === null ? this.#total + length : 0);
  }

  update(input: Uint8Array, out: OutBuffer): Later<BytesOutput> {
    if (this.#announced !== null) return this.#announcedPart(this.#announced, input, out);
    if (this.#held.isChecked) {
      if (input.length > 0) throw operationActive();
      return andThen(this.#held.take(out.space.length), wipeAfterReply);
    }
    // Of what is held nothing comes back before the end; a query gets the room for all of it, which suits every caller.
    const isHeld = this.#direction === 'decrypt';
    const ready = isHeld ? (out.capacity === null ? this.#total + input.length : 0) : input.length;
    if (!fits(out, ready)) return new LengthOnly(ready);
    this.#checkTotal(input.length);
    this.started = true;
    this.#total += input.length;
    if (isHeld) return andThen(this.#held.add(this.#beforeTail(input)), () => noBytes);
    return this.#begun('encrypt').update(input);
  }

  /** CCM says beforehand how long the message is. */
  #checkTotal(more: number): void {
    if (this.#parameters.algorithm !== 'aes-ccm') return;
    const { dataLength, tagLength } = this.#parameters;
    if (this.#total + more > dataLength + (this.#direction === 'decrypt' ? tagLength : 0)) {
      throw wrongLength(this.#direction);
    }
  }

  #begun(use: Direction | 'check'): MessageStream {
    if (this.#stream === null) {
      this.#freshIv?.take();
      this.#stream = this.#key.begin(use, this.#parameters);
    }
    return this.#stream;
  }

  /** All that has come but the last bytes, which may be the tag. */
  #beforeTail(input: Uint8Array): Uint8Array {
    const all = Buffer.concat([this.#tail, input]);
    const end = Math.max(0, all.length - this.#parameters.tagLength);
    this.#tail = Buffer.from(all.subarray(end));
    return all.subarray(0, end);
  }

  /** A part of a message that was announced. */
  #announcedPart(message: Announced, input: Uint8Array, out: OutBuffer): Later<BytesOutput> {
    checkTaken(message, input.length, this.#direction);
    if (this.#direction === 'encrypt') {
      if (!fits(out, input.length)) return new LengthOnly(input.length);
      message.taken += input.length;
      return this.#begun('encrypt').update(input);
    }
    message.taken += input.length;
    const data = this.#beforeTail(input);
    return andThen(this.#begun(message.given ? 'decrypt' : 'check').update(data), wipeAfterReply);
  }

  final(out: OutBuffer): Later<BytesOutput> {
    if (this.#announced !== null) {
      const { taken, length, given } = this.#announced;
      if (taken !== length) throw wrongLength(this.#direction);
      if (this.#direction === 'decrypt') return this.#openAnnounced(length, given);
    }
    const { tagLength } = this.#parameters;
    if (this.#direction === 'encrypt') {
      checkLength(this.#row, 'encrypt', this.#parameters, this.#announced?.length ?? this.#total);
      return fits(out, tagLength) ? this.#begun('encrypt').seal() : new LengthOnly(tagLength);
    }
    if (this.#held.isChecked) return this.#rest(out);
    checkLength(this.#row, 'decrypt', this.#parameters, this.#total);
    const length = this.#total - tagLength;
    if (!fits(out, length)) return new LengthOnly(length);
    return andThen(this.#held.end(this.#tail), (plain) => (plain === null ? this.#rest(out) : wipeAfterReply(plain)));
  }

  #openAnnounced(length: number, given: boolean): Later<BytesOutput> {
    // Throws when the tag is wrong.
    return andThen(this.#begun(given ? 'decrypt' : 'check').open(this.#tail), (rest) => {
      if (given) return wipeAfterReply(rest);
      this.#restart({ length, taken: 0, given: true });
      return new LengthOnly(length - this.#parameters.tagLength);
    });
  }

  /** What is left of plaintext that one message does not carry: parts without data fetch all but its end. */
  #rest(out: OutBuffer): Later<BytesOutput> {
    if (this.#held.left > out.space.length) return new LengthOnly(this.#held.left);
    return andThen(this.#held.finish(this.#tail), wipeAfterReply);
  }

  cancel(): void {
    this.#stream?.cancel();
    this.#held.cancel();
  }
}
