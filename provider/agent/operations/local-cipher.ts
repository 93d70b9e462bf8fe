// Encryption and decryption (PKCS#11 2.40, sections 5.8 and 5.9) with a session key, in the addon.
// A length query and a buffer that is too small leave everything as it was (5.2).
import { type CipherParameters, core, type Direction, type KeyRef, type OperationRef } from '../../../addon/core.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { operationActive } from '../return-values.ts';
import type { CipherOperation, Repeatable } from '../sessions/operation.ts';
import {
  type Announced,
  announced,
  checkLength,
  checkTaken,
  counterRunsOver,
  isUnpadded,
  placeFor,
  resultLength,
  wrongLength,
} from './cipher-lengths.ts';
import { accept, fits, inInit } from './collected-parts.ts';
import type { LocalKey } from './find-key.ts';
import type { FreshIv } from './initial-values.ts';
import type { CipherRow } from './mechanism-row.ts';

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
  /**
   * Whether the tag of what was held back is right, and it is given out in pieces because one
   * message does not carry it.
   */
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
   * Not what takes padding off: what comes of that depends on the data. CTR and CCM count, and the
   * additional data of GCM differ from message to message where there are any.
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
    // Nothing of a message that was announced leaves the agent before its tag was checked once: see
    // `#checked`.
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
    // What is held back comes with the end: enough room for all of it is an answer for every
    // caller.
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

  /**
   * The end of parts of which nothing was given out: how long the result is. They come again, and
   * are given out then.
   */
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
