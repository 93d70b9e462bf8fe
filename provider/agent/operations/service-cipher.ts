// Encryption and decryption in ECB, CBC and CTR with a token key, by the service.
import { type ChainedParameters, type CipherParameters, core, type Direction } from '../../../addon/core.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../sessions/application.ts';
import type { CipherOperation } from '../sessions/operation.ts';
import { Chain, type Piece } from './chain.ts';
import {
  type Announced,
  announced,
  checkLength,
  checkTaken,
  isUnpadded,
  resultLength,
  wrongLength,
} from './cipher-lengths.ts';
import { accept, fits, ownCopy, wipeAfterReply } from './collected-parts.ts';
import type { CipherRow } from './mechanism-row.ts';

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
    // A query is answered without a call; only a result of unknown length is made to see how long
    // it is.
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
    const { raw } = await this.#application.ask(this.#direction, this.#handle, parameters, bytes);
    chain.follow(raw);
    const isHeld = this.#announced?.given === false;
    return wipeAfterReply(raw).subarray(isHeld ? raw.length : skip);
  }

  /** The end of parts of which nothing was given out: see `LocalCipher`. */
  async #checked({ length }: Announced, out: number): Promise<BytesOutput> {
    const piece = this.#chain.last();
    if (piece === null) throw wrongLength(this.#direction);
    const { raw } = await this.#application.ask(this.#direction, this.#handle, piece.parameters, piece.bytes);
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
    const { raw } = await this.#application.ask(this.#direction, this.#handle, parameters, input);
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
