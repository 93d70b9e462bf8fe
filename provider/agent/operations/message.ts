// Messages under AES-GCM (3.0, sections 5.9 and 5.11; mechanisms 2.12.3): many with one key, each
// with its own IV, its own associated data, and its tag next to the ciphertext. With a session key
// in the addon, with a token key by the service. Output follows 5.2: a length query and a buffer
// that is too small leave the message as it was.
import type { CipherParameters } from '../../../addon/core.ts';
import {
  type BytesOutput,
  LengthOnly,
  type MessageParameter,
  type MessageResult,
  type OutBuffer,
} from '../../schema/types.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import { operationActive, operationMissing, parameterInvalid } from '../return-values.ts';
import { andThen, type Later } from '../sessions/later.ts';
import type { MessageOperation, MessageStep } from '../sessions/operation.ts';
import { accept, fits, inInit, wipeAfterReply } from './collected-parts.ts';
import type { InitialValues } from './initial-values.ts';
import { gcmTagLength, mostGcmIv } from './mechanism-parameters.ts';
import { HeldMessage, joined, type MessageKey, type MessageStream } from './message-streams.ts';

type Gcm = Extract<CipherParameters, { algorithm: 'aes-gcm' }>;

const nothing: MessageResult = { iv: null, tag: null };
const only = (length: number): MessageStep => ({ data: new LengthOnly(length), result: nothing });
const noBytes = new Uint8Array(0);
/** Plaintext on its way to the caller. */
const opened = (plain: Uint8Array): MessageStep => ({ data: wipeAfterReply(plain), result: nothing });

/**
 * What a step was given as its parameter. Throws CKR_MECHANISM_PARAM_INVALID where that is none.
 */
const required = (parameter: MessageParameter | null): MessageParameter => {
  if (parameter === null) throw parameterInvalid();
  return parameter;
};

/** Bytes of tag; 96 to 128 bits as with CK_GCM_PARAMS, and whole bytes. */
const tagLengthOf = ({ tagBits }: MessageParameter): number => gcmTagLength(tagBits);

const checkIv = ({ iv }: MessageParameter): void => {
  if (iv.length < 1 || iv.length > mostGcmIv) throw parameterInvalid();
};

const gcm = (iv: Uint8Array, aad: Uint8Array, tagLength: number): Gcm => ({
  algorithm: 'aes-gcm',
  iv,
  // A copy: what came with a call is in its frame, and `slice` of a Buffer is not one.
  aad: Uint8Array.from(aad),
  tagLength,
});

/**
 * A message in one piece whose bytes come in parts. `given`: its tag was checked, and the parts
 * come again to be given out.
 */
interface Announced {
  readonly length: number;
  readonly given: boolean;
}

/**
 * A message that comes in parts: they go through a stream, or are held until the tag was checked.
 */
interface RunningMessage {
  readonly parameters: Gcm;
  readonly stream: MessageStream | null;
  readonly held: HeldMessage | null;
}

abstract class Messages {
  readonly private: boolean;
  protected readonly messageKey: MessageKey;
  protected running: RunningMessage | null = null;

  constructor(messageKey: MessageKey, isPrivate: boolean) {
    this.messageKey = messageKey;
    this.private = isPrivate;
  }

  get held(): number {
    return this.running === null ? 0 : (this.running.held?.length ?? 0) + inInit(this.running.parameters);
  }

  get inMessage(): boolean {
    return this.running !== null;
  }

  cancel(): void {
    const { running } = this;
    this.running = null;
    running?.stream?.cancel();
    running?.held?.cancel();
  }

  protected checkBetween(): void {
    if (this.running !== null) throw operationActive();
  }

  /** The running message, checked against the parameter that came with its next part. */
  protected current(given: MessageParameter | null, last: boolean): RunningMessage {
    const { running } = this;
    if (running === null) throw operationMissing();
    const parameter = required(given);
    if (last && tagLengthOf(parameter) !== running.parameters.tagLength) throw parameterInvalid();
    return running;
  }

  /**
   * One step of the running message. Whatever goes wrong ends it, and so does the step that is its
   * last.
   */
  protected step(work: () => Later<MessageStep>, last: boolean): Later<MessageStep> {
    const ended = (value: MessageStep): MessageStep => {
      if (last && !(value.data instanceof LengthOnly)) this.cancel();
      return value;
    };
    const failed = (error: unknown): never => {
      this.cancel();
      throw error;
    };
    try {
      const result = work();
      return result instanceof Promise ? result.then(ended, failed) : ended(result);
    } catch (error) {
      return failed(error);
    }
  }
}

export class EncryptMessages extends Messages implements MessageOperation {
  readonly #initialValues: InitialValues;

  constructor(messageKey: MessageKey, initialValues: InitialValues, isPrivate: boolean) {
    super(messageKey, isPrivate);
    this.#initialValues = initialValues;
  }

  whole(given: MessageParameter | null, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep> {
    this.checkBetween();
    const parameter = required(given);
    const tagLength = tagLengthOf(parameter);
    checkIv(parameter);
    if (!fits(out, input.length)) return only(input.length);
    const iv = this.#initialValues.next(parameter);
    const parameters = gcm(iv, aad, tagLength);
    const isOwn = iv === parameter.iv;
    if (input.length > this.messageKey.most(parameters))
      return this.#wholeInParts(parameters, input, isOwn ? null : iv);
    const sealed = this.messageKey.run('encrypt', parameters, input);
    return andThen(sealed, (bytes) => {
      const length = bytes.length - tagLength;
      return { data: bytes.subarray(0, length), result: { iv: isOwn ? null : iv, tag: bytes.subarray(length) } };
    });
  }

  #wholeInParts(parameters: Gcm, input: Uint8Array, iv: Uint8Array | null): Later<MessageStep> {
    const stream = this.messageKey.begin('encrypt', parameters);
    return andThen(stream.update(input), (data) =>
      andThen(stream.seal(), (tag): MessageStep => ({ data, result: { iv, tag } })),
    );
  }

  announce(given: MessageParameter | null, length: number, out: OutBuffer): BytesOutput {
    this.checkBetween();
    const parameter = required(given);
    tagLengthOf(parameter);
    checkIv(parameter);
    return accept(out, length);
  }

  announcePart(length: number, out: OutBuffer): BytesOutput {
    if (this.running === null) throw operationMissing();
    return accept(out, length);
  }

  begin(given: MessageParameter | null, aad: Uint8Array): MessageResult {
    this.checkBetween();
    const parameter = required(given);
    const tagLength = tagLengthOf(parameter);
    checkIv(parameter);
    const iv = this.#initialValues.next(parameter);
    const parameters = gcm(iv, aad, tagLength);
    this.running = { parameters, stream: this.messageKey.begin('encrypt', parameters), held: null };
    return { iv: iv === parameter.iv ? null : iv, tag: null };
  }

  next(given: MessageParameter | null, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    return this.step(() => {
      const { stream } = this.current(given, last);
      if (stream === null) throw operationMissing();
      if (!fits(out, part.length)) return only(part.length);
      return andThen(stream.update(part), (data) =>
        last
          ? andThen(stream.seal(), (tag): MessageStep => ({ data, result: { iv: null, tag } }))
          : { data, result: nothing },
      );
    }, last);
  }
}

/**
 * Nothing of a message is given out before its tag is checked: its parts are held, or come twice.
 */
export class DecryptMessages extends Messages implements MessageOperation {
  #announced: Announced | null = null;

  get keyAttributes(): ReadonlyAttributes | undefined {
    return this.messageKey.attributes;
  }

  whole(given: MessageParameter | null, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep> {
    this.checkBetween();
    const parameter = required(given);
    checkIv(parameter);
    const parameters = gcm(parameter.iv, aad, tagLengthOf(parameter));
    if (!fits(out, input.length)) return only(input.length);
    const { tag } = parameter;
    if (tag.length !== parameters.tagLength) throw parameterInvalid();
    if (input.length + tag.length <= this.messageKey.most(parameters)) {
      return andThen(this.messageKey.run('decrypt', parameters, Buffer.concat([input, tag])), opened);
    }
    const held = new HeldMessage(this.messageKey, parameters);
    return andThen(held.add(input), () =>
      andThen(held.end(tag), (plain) => andThen(plain ?? held.finish(tag), opened)),
    );
  }

  announce(given: MessageParameter | null, length: number, out: OutBuffer): BytesOutput {
    this.checkBetween();
    const parameter = required(given);
    checkIv(parameter);
    tagLengthOf(parameter);
    const answer = accept(out, length);
    this.#announced = answer === 0 ? { length, given: false } : null;
    return answer;
  }

  announcePart(length: number, out: OutBuffer, last: boolean): BytesOutput {
    const held = this.running?.held;
    if (held === undefined || held === null) throw operationMissing();
    held.checkRoom(length);
    return accept(out, last ? held.length + length : 0);
  }

  begin(given: MessageParameter | null, aad: Uint8Array): MessageResult {
    this.checkBetween();
    const parameter = required(given);
    checkIv(parameter);
    const parameters = gcm(parameter.iv, aad, tagLengthOf(parameter));
    this.running =
      this.#announced === null
        ? { parameters, stream: null, held: new HeldMessage(this.messageKey, parameters) }
        : {
            parameters,
            stream: this.messageKey.begin(this.#announced.given ? 'decrypt' : 'check', parameters),
            held: null,
          };
    return nothing;
  }

  override cancel(): void {
    this.#announced = null;
    super.cancel();
  }

  /** A part of a message that was announced. */
  #stream(
    stream: MessageStream,
    { length, given }: Announced,
    tag: Uint8Array,
    part: Uint8Array,
    out: OutBuffer,
    last: boolean,
  ): Later<MessageStep> {
    if (!fits(out, part.length)) return only(part.length);
    return andThen(stream.update(part), (data) => {
      if (!last) return opened(data);
      // Throws when the tag is wrong.
      return andThen(stream.open(tag), (rest): MessageStep => {
        if (given) return opened(joined([data, rest]));
        this.running = null;
        this.#announced = { length, given: true };
        return only(length);
      });
    });
  }

  next(given: MessageParameter | null, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    return this.step(() => {
      const { parameters, held, stream } = this.current(given, last);
      const { tag } = required(given);
      if (last && tag.length !== parameters.tagLength) throw parameterInvalid();
      if (stream !== null && this.#announced !== null) {
        return this.#stream(stream, this.#announced, tag, part, out, last);
      }
      if (held === null) throw operationMissing();
      if (held.isChecked) return this.#fetch(held, tag, part, out, last);
      const length = last ? held.length + part.length : 0;
      if (!fits(out, length)) return only(length);
      const added = held.add(part);
      if (!last) return andThen(added, (): MessageStep => ({ data: noBytes, result: nothing }));
      return andThen(added, () =>
        andThen(held.end(tag), (plain) =>
          plain === null ? this.#fetch(held, tag, noBytes, out, true) : opened(plain),
        ),
      );
    }, last);
  }

  /**
   * The plaintext of a message whose tag was checked: parts without data fetch all but the end of
   * what an answer does not carry.
   */
  #fetch(held: HeldMessage, tag: Uint8Array, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    if (part.length > 0) throw operationActive();
    if (last && held.left > out.space.length) return only(held.left);
    const data = last ? held.finish(tag) : held.take(out.space.length);
    return andThen(data, opened);
  }
}
