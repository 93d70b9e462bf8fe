// What runs from part to part of a message in ECB, CBC (padded or not) and CTR of SP 800-38A, when
// each part is a call to the service of its own: the chaining block or the counter, and what is
// left over. So a program gets as much out of each part as from any other token: many allot just
// that much to the last one. GCM and CCM are not here: their parts are collected.
import { type ChainedParameters, type CipherParameters, core, type Direction } from '../../../addon/core.ts';
import { counterRunsOver, numberOf } from './cipher-lengths.ts';
import { ownCopy } from './collected-parts.ts';

const block = 16;
const noBytes = new Uint8Array(0);

export interface Piece {
  /** With the chaining block or counter of this piece. */
  readonly parameters: CipherParameters;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** First bytes of the result to be dropped: they fill up a block that the last part began. */
  readonly skip: number;
}

const counterBlock = (counter: bigint): Buffer =>
  Buffer.from(
    BigInt.asUintN(128, counter)
      .toString(16)
      .padStart(2 * block, '0'),
    'hex',
  );

export class Chain {
  readonly #direction: Direction;
  readonly #parameters: ChainedParameters;
  /**
   * Taken in and not yet sent: less than a block; in what is unpadded, up to a whole one, because
   * it may be the last.
   */
  #rest = noBytes;
  /** The block that CBC continues from. */
  #link: Uint8Array;
  #total = 0;

  constructor(direction: Direction, parameters: ChainedParameters) {
    this.#direction = direction;
    this.#parameters = parameters;
    this.#link = 'iv' in parameters ? parameters.iv : noBytes;
  }

  /** Bytes that have gone in. */
  get total(): number {
    return this.#total;
  }

  /** Bytes that come out when so many go in. */
  ready(length: number): number {
    if (this.#parameters.algorithm === 'aes-ctr') return length;
    const all = this.#rest.length + length;
    const isHeld = this.#parameters.algorithm === 'aes-cbc-pad' && this.#direction === 'decrypt';
    const last = isHeld && all > 0 && all % block === 0 ? block : all % block;
    return all - last;
  }

  /**
   * Whether the counter, which may be fewer than 128 bits wide, has run over when so many more have
   * gone in.
   */
  runsOver(length: number): boolean {
    return counterRunsOver(this.#parameters, this.#total + length);
  }

  /** Takes a part in; null when nothing comes of it yet. */
  take(input: Uint8Array): Piece | null {
    const ready = this.ready(input.length);
    const before = this.#total;
    if (ready === 0) {
      this.#keep(ownCopy(input, this.#rest));
      this.#total += input.length;
      return null;
    }
    if (this.#parameters.algorithm === 'aes-ctr') {
      const skip = before % block;
      const bytes = ownCopy(input, new Uint8Array(skip));
      this.#total += input.length;
      const iv = counterBlock(numberOf(this.#parameters.iv) + BigInt((before - skip) / block));
      return { parameters: { algorithm: 'aes-ctr', iv, counterBits: 128 }, bytes, skip };
    }
    const used = ready - this.#rest.length;
    const bytes = ownCopy(input.subarray(0, used), this.#rest);
    this.#total += input.length;
    this.#keep(new Uint8Array(input.subarray(used)));
    const parameters = this.#next();
    if (this.#direction === 'decrypt') this.#link = bytes.slice(-block);
    return { parameters, bytes, skip: 0 };
  }

  #next(): CipherParameters {
    return this.#parameters.algorithm === 'aes-ecb' ? this.#parameters : { algorithm: 'aes-cbc', iv: this.#link };
  }

  /** Continues from the result of a piece. */
  follow(result: Uint8Array): void {
    if (this.#direction === 'encrypt') this.#link = new Uint8Array(result.subarray(-block));
  }

  /** Most bytes that the end of the message gives. */
  get lastLength(): number {
    return this.#parameters.algorithm === 'aes-cbc-pad' ? block : 0;
  }

  /**
   * What is asked at the end, when the length of the whole is right; null when there is nothing to
   * ask.
   */
  last(): Piece | null {
    if (this.#parameters.algorithm !== 'aes-cbc-pad') return null;
    return { parameters: { algorithm: 'aes-cbc-pad', iv: this.#link }, bytes: ownCopy(this.#rest), skip: 0 };
  }

  #keep(rest: Uint8Array<ArrayBuffer>): void {
    this.wipe();
    this.#rest = rest;
  }

  wipe(): void {
    if (this.#rest.length > 0) core.wipe(this.#rest);
    this.#rest = noBytes;
  }
}
