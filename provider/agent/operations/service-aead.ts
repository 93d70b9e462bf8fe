// Encryption and decryption in GCM and CCM with a token key, by the service.
import type { AeadParameters, Direction } from '../../../addon/core.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import { operationActive } from '../return-values.ts';
import { andThen, type Later } from '../sessions/later.ts';
import type { CipherOperation } from '../sessions/operation.ts';
import { type Announced, announced, checkLength, checkTaken, resultLength, wrongLength } from './cipher-lengths.ts';
import { accept, fits, inInit, wipeAfterReply } from './collected-parts.ts';
import type { FreshIv } from './initial-values.ts';
import type { CipherRow } from './mechanism-row.ts';
import { HeldMessage, joined, type MessageKey, type MessageStream } from './message-streams.ts';

const noBytes = new Uint8Array(0);

/**
 * GCM and CCM with a key that never leaves the service. What is encrypted in parts comes back part
 * by part. What is decrypted in parts is held until its tag was checked.
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
    // Held plaintext is not returned before the end; a query gets the room for all of it, which
    // suits every caller.
    const isHeld = this.#direction === 'decrypt';
    const ready = isHeld ? (out.capacity === null ? this.#total + input.length : 0) : input.length;
    if (!fits(out, ready)) return new LengthOnly(ready);
    this.#checkTotal(input.length);
    this.started = true;
    this.#total += input.length;
    if (isHeld) return andThen(this.#held.add(this.#beforeTail(input)), () => noBytes);
    return this.#openStream('encrypt').update(input);
  }

  /** CCM says beforehand how long the message is. */
  #checkTotal(more: number): void {
    if (this.#parameters.algorithm !== 'aes-ccm') return;
    const { dataLength, tagLength } = this.#parameters;
    if (this.#total + more > dataLength + (this.#direction === 'decrypt' ? tagLength : 0)) {
      throw wrongLength(this.#direction);
    }
  }

  #openStream(use: Direction | 'check'): MessageStream {
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
      return this.#openStream('encrypt').update(input);
    }
    message.taken += input.length;
    const data = this.#beforeTail(input);
    return andThen(this.#openStream(message.given ? 'decrypt' : 'check').update(data), wipeAfterReply);
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
      return fits(out, tagLength) ? this.#openStream('encrypt').seal() : new LengthOnly(tagLength);
    }
    if (this.#held.isChecked) return this.#rest(out);
    checkLength(this.#row, 'decrypt', this.#parameters, this.#total);
    const length = this.#total - tagLength;
    if (!fits(out, length)) return new LengthOnly(length);
    return andThen(this.#held.end(this.#tail), (plain) => (plain === null ? this.#rest(out) : wipeAfterReply(plain)));
  }

  #openAnnounced(length: number, given: boolean): Later<BytesOutput> {
    // Throws when the tag is wrong.
    return andThen(this.#openStream(given ? 'decrypt' : 'check').open(this.#tail), (rest) => {
      if (given) return wipeAfterReply(rest);
      this.#restart({ length, taken: 0, given: true });
      return new LengthOnly(length - this.#parameters.tagLength);
    });
  }

  /**
   * What is left of plaintext that one message does not carry: parts without data fetch all but its
   * end.
   */
  #rest(out: OutBuffer): Later<BytesOutput> {
    if (this.#held.left > out.space.length) return new LengthOnly(this.#held.left);
    return andThen(this.#held.finish(this.#tail), wipeAfterReply);
  }

  cancel(): void {
    this.#stream?.cancel();
    this.#held.cancel();
  }
}
