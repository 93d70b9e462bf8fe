// One message under GCM or CCM that goes through the addon or to the service piece by piece, and
// the ciphertext of one that is held until its tag was checked. Who decrypts goes through a message
// twice: the first time it is checked and nothing comes out, the second time its plaintext does. So
// no plaintext is given out that does not authenticate, and none is held.
import { type AeadParameters, core, type Direction, type KeyRef } from '../../../addon/core.ts';
import { maxEnvelope } from '../../../server/contract/tde.ts';
import { CKR } from '../../schema/return-values.ts';
import { CryptokiError } from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import type { Application } from '../sessions/application.ts';
import { andThen, type Later } from '../sessions/later.ts';
import { maxMessage, ownCopy } from './collected-parts.ts';

export type Use = Direction | 'check';

/**
 * One pass over a message. Whatever throws ends it. What comes out is the caller's, who wipes it.
 */
export interface MessageStream {
  /**
   * Data in, data out: as many bytes in all once the stream has ended; none where it checks. The
   * input is not kept.
   */
  update(input: Uint8Array): Later<Uint8Array>;
  /** The end of an encryption: its tag. */
  seal(): Later<Uint8Array>;
  /** The end of the others: what is left of the data. Throws where the tag is wrong. */
  open(tag: Uint8Array): Later<Uint8Array>;
  cancel(): void;
}

/** What messages under GCM or CCM are made with: a key here, or one of the service. */
export interface MessageKey {
  /** The attributes of a key of the session; undefined for a key of the service. */
  readonly attributes?: ReadonlyAttributes;
  /** Most bytes that `run` takes in one piece, the tag included. */
  readonly most: (parameters: AeadParameters) => number;
  /** A whole message, whose end is the tag. The result is the caller's. */
  run(direction: Direction, parameters: AeadParameters, input: Uint8Array): Later<Uint8Array>;
  begin(use: Use, parameters: AeadParameters): MessageStream;
}

const noBytes = new Uint8Array(0);

/** The parts in one piece. They are wiped. */
export const joined = (parts: readonly Uint8Array[]): Uint8Array => {
  const some = parts.filter(({ length }) => length > 0);
  if (some.length < 2) return some[0] ?? noBytes;
  const all = Buffer.concat(some);
  for (const part of some) core.wipe(part);
  return all;
};

class LocalStream implements MessageStream {
  readonly #use: Use;
  readonly #tagLength: number;
  readonly #running: number & ReturnType<typeof core.cipherBegin>;

  constructor(ref: KeyRef, use: Use, parameters: AeadParameters) {
    this.#use = use;
    this.#tagLength = parameters.tagLength;
    this.#running =
      use === 'encrypt'
        ? core.cipherBegin(ref, use, parameters)
        : core.cipherBeginUnchecked(ref, 'decrypt', parameters);
  }

  update(input: Uint8Array): Uint8Array {
    const data = Buffer.alloc(core.cipherUpdateLength(this.#running, input.length));
    const written = core.cipherUpdate(this.#running, input, data);
    if (this.#use !== 'check') return data.subarray(0, written);
    core.wipe(data);
    return noBytes;
  }

  seal(): Uint8Array {
    const tag = Buffer.alloc(this.#tagLength);
    core.cipherFinal(this.#running, tag);
    return tag;
  }

  open(tag: Uint8Array): Uint8Array {
    const rest = this.update(tag);
    core.cipherFinal(this.#running, noBytes);
    return rest;
  }

  cancel(): void {
    core.operationCancel(this.#running);
  }
}

/**
 * Room that a request needs in addition to the data: its head, with the additional data in Base64.
 */
const mostInRequest = ({ aad = noBytes }: AeadParameters): number => maxMessage - 4 * Math.ceil(aad.length / 3);

class ServiceStream implements MessageStream {
  readonly #application: Application;
  readonly #handle: number;
  readonly #use: Use;
  readonly #parameters: AeadParameters;
  #state = '';

  constructor(application: Application, handle: number, use: Use, parameters: AeadParameters) {
    this.#application = application;
    this.#handle = handle;
    this.#use = use;
    this.#parameters = parameters;
  }

  async #ask(input: Uint8Array<ArrayBuffer>, last: boolean): Promise<Uint8Array> {
    // The additional data go with the first part.
    const isFirst = this.#state === '';
    const cipher = isFirst ? this.#parameters : { ...this.#parameters, aad: noBytes };
    const head = { use: this.#use, cipher, state: this.#state, last };
    const { answer, raw } = await this.#application.ask('cipherPart', this.#handle, head, input);
    this.#state = answer.state;
    return raw;
  }

  async update(input: Uint8Array): Promise<Uint8Array> {
    if (input.length === 0) return noBytes;
    const most = mostInRequest(this.#parameters);
    const own = ownCopy(input);
    if (own.length <= most) return this.#ask(own, false);
    const [front, rest] = [own.slice(0, most), own.slice(most)];
    core.wipe(own);
    return joined([await this.#ask(front, false), await this.#ask(rest, false)]);
  }

  seal(): Promise<Uint8Array> {
    return this.#ask(new Uint8Array(0), true);
  }

  open(tag: Uint8Array): Promise<Uint8Array> {
    return this.#ask(ownCopy(tag), true);
  }

  cancel(): void {}
}

export const localMessages = (ref: KeyRef, attributes: ReadonlyAttributes): MessageKey => ({
  attributes,
  most: () => Number.MAX_SAFE_INTEGER,
  run: (direction, parameters, input) => {
    const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
    return out.subarray(0, core.cipher(ref, direction, parameters, input, out));
  },
  begin: (use, parameters) => new LocalStream(ref, use, parameters),
});

export const serviceMessages = (application: Application, handle: number): MessageKey => ({
  most: mostInRequest,
  run: (direction, parameters, input) =>
    application.ask(direction, handle, parameters, ownCopy(input)).then(({ raw }) => raw),
  begin: (use, parameters) => new ServiceStream(application, handle, use, parameters),
});

/** Most bytes of one message that are held until its tag is checked. */
export const mostHeld = 64 << 20;

/** A piece of memory, and the bytes in it that are held. */
interface Chunk {
  readonly bytes: Buffer;
  from: number;
  to: number;
}
const mostInChunk = 256 << 10;
const contentOf = ({ bytes, from, to }: Chunk): Buffer => bytes.subarray(from, to);

/**
 * The ciphertext of a message that comes in parts, and is held until its tag was checked. A short
 * one is decrypted in one piece. What is longer is checked while it comes, so that no call takes
 * long, and decrypted while it is fetched.
 */
export class HeldMessage {
  readonly #key: MessageKey;
  readonly #parameters: AeadParameters;
  readonly #most: number;
  #chunks: Chunk[] = [];
  #length = 0;
  #left = 0;
  #checker: MessageStream | null = null;
  #opener: MessageStream | null = null;

  constructor(key: MessageKey, parameters: AeadParameters) {
    this.#key = key;
    this.#parameters = parameters;
    // What one answer to the library carries, and one request to the service.
    this.#most = Math.min(key.most(parameters), maxEnvelope - 8192) - parameters.tagLength;
  }

  /** Bytes that are held. */
  get length(): number {
    return this.#length;
  }

  /** Bytes of plaintext that are to be taken, once the tag was checked. */
  get left(): number {
    return this.#left;
  }

  /** Whether the tag was checked, and what is held is to be taken. */
  get isChecked(): boolean {
    return this.#opener !== null;
  }

  checkRoom(more: number): void {
    if (this.#length + more > mostHeld) {
      throw new CryptokiError(CKR.ENCRYPTED_DATA_LEN_RANGE, 'more data than can be kept until the tag is checked');
    }
  }

  /** The part is copied before this returns. */
  add(part: Uint8Array): Later<void> {
    this.checkRoom(part.length);
    this.#keep(part);
    if (this.#checker !== null) return done(this.#checker.update(part));
    if (this.#length <= this.#most) return;
    const checker = this.#key.begin('check', this.#parameters);
    this.#checker = checker;
    let checked: Later<unknown>;
    for (const chunk of this.#chunks) checked = andThen(checked, () => checker.update(contentOf(chunk)));
    return done(checked);
  }

  /** In few pieces of memory, however short the parts are. */
  #keep(part: Uint8Array): void {
    this.#length += part.length;
    for (let at = 0; at < part.length; ) {
      let chunk = this.#chunks.at(-1);
      if (chunk === undefined || chunk.to === chunk.bytes.length) {
        const size = Math.min(Math.max(2 * (chunk?.bytes.length ?? 0), part.length - at, 1024), mostInChunk);
        chunk = { bytes: Buffer.alloc(size), from: 0, to: 0 };
        this.#chunks.push(chunk);
      }
      const copied = Math.min(part.length - at, chunk.bytes.length - chunk.to);
      chunk.bytes.set(part.subarray(at, at + copied), chunk.to);
      chunk.to += copied;
      at += copied;
    }
  }

  /**
   * The plaintext where it is short; null when the tag is right and the plaintext is to be taken
   * piece by piece.
   */
  end(tag: Uint8Array): Later<Uint8Array | null> {
    const checker = this.#checker;
    if (checker === null) {
      const sealed = Buffer.concat([...this.#chunks.map(contentOf), tag]);
      return this.#key.run('decrypt', this.#parameters, sealed);
    }
    const ended = (): null => {
      this.#opener = this.#key.begin('decrypt', this.#parameters);
      this.#left = this.#length;
      return null;
    };
    return andThen(checker.open(tag), ended);
  }

  /** Up to so many bytes of plaintext, which are held no longer. */
  take(most: number): Later<Uint8Array> {
    const opener = this.#opener;
    const chunk = this.#chunks[0];
    if (opener === null || chunk === undefined || most === 0) return noBytes;
    const piece = contentOf(chunk).subarray(0, most);
    chunk.from += piece.length;
    if (chunk.from === chunk.to) this.#chunks.shift();
    this.#length -= piece.length;
    return andThen(opener.update(piece), (plain) => {
      this.#left -= plain.length;
      return plain;
    });
  }

  /** The rest of the plaintext. The tag is checked again, with what was taken. */
  finish(tag: Uint8Array): Later<Uint8Array> {
    const opener = this.#opener;
    if (opener === null) return noBytes;
    const parts: Uint8Array[] = [];
    const takeAll = (): Later<Uint8Array> => {
      if (this.#length === 0) return andThen(opener.open(tag), (last) => joined([...parts, last]));
      return andThen(this.take(this.#length), (part) => {
        parts.push(part);
        return takeAll();
      });
    };
    return takeAll();
  }

  cancel(): void {
    this.#checker?.cancel();
    this.#opener?.cancel();
    this.#chunks = [];
    this.#length = 0;
  }
}

const done = (later: Later<unknown>): Later<void> => andThen(later, () => undefined);
