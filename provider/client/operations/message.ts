// Messages under AES-GCM (3.0, sections 5.9 and 5.11; mechanisms 2.12.3): many with one key, each with its own IV, its own associated
// data, and its tag beside the ciphertext. With a session key in the addon, with a token key by the service. Output follows
// 5.2: a length query and a buffer that is too small leave the message as it was.
import { type CipherParameters, core, type Direction, type KeyRef, type OperationRef } from '../../../addon/core.ts';
import { CKR } from '../../schema/return-values.ts';
import {
  CryptokiError,
  LengthOnly,
  type MessageParameter,
  type MessageResult,
  type OutBuffer,
} from '../../schema/types.ts';
import type { Application } from '../application.ts';
import { operationActive, operationMissing, parameterInvalid } from '../errors.ts';
import type { Later, MessageOperation, MessageStep } from '../session.ts';
import { fits } from './cipher.ts';
import { cipherHead } from './heads.ts';
import type { InitialValues } from './initial-values.ts';
import { mostGcmIv } from './mechanisms.ts';
import { maxMessage, ownCopy, Parts, wipeAfterReply } from './parts.ts';

type Gcm = Extract<CipherParameters, { algorithm: 'aes-gcm' }>;

/** Whole messages with one key; the tag is the end of what is encrypted. The result is the caller's. */
export interface GcmKey {
  readonly ref?: KeyRef;
  run(direction: Direction, parameters: Gcm, input: Uint8Array): Later<Uint8Array>;
}

export const localGcm = (ref: KeyRef): Required<GcmKey> => ({
  ref,
  run: (direction, parameters, input) => {
    const out = Buffer.alloc(core.cipherLength(direction, parameters, input.length));
    return out.subarray(0, core.cipher(ref, direction, parameters, input, out));
  },
});

export const serviceGcm = (application: Application, handle: number): GcmKey => ({
  run: (direction, parameters, input) =>
    application.ask(direction, handle, cipherHead(parameters), ownCopy(input)).then(({ raw }) => raw),
});

const nothing: MessageResult = { iv: null, tag: null };
const only = (length: number): MessageStep => ({ data: new LengthOnly(length), result: nothing });
const noBytes = new Uint8Array(0);

/** Bytes of tag; 96 to 128 bits as with CK_GCM_PARAMS, and whole bytes. */
const tagLengthOf = ({ tagBits }: MessageParameter): number => {
  if (tagBits % 8 !== 0 || tagBits < 96 || tagBits > 128) throw parameterInvalid();
  return tagBits / 8;
};

const checkIv = ({ iv }: MessageParameter): void => {
  if (iv.length < 1 || iv.length > mostGcmIv) throw parameterInvalid();
};

const then = <T, R>(later: Later<T>, next: (value: T) => R): Later<R> =>
  later instanceof Promise ? later.then(next) : next(later);

const gcm = (iv: Uint8Array, aad: Uint8Array, tagLength: number): Gcm => ({
  algorithm: 'aes-gcm',
  iv,
  // A copy: what came with a call is in its frame, and `slice` of a Buffer is not one.
  aad: Uint8Array.from(aad),
  tagLength,
});

/** A message that comes in parts. */
interface Begun {
  readonly parameters: Gcm;
  /** In the addon, where parts come back as they are encrypted; null where they are collected. */
  readonly running: OperationRef | null;
  readonly parts: Parts;
}

const forget = ({ running, parts }: Begun): void => {
  if (running !== null) core.operationCancel(running);
  parts.wipe();
};

abstract class Messages {
  readonly private: boolean;
  protected readonly gcmKey: GcmKey;
  protected begun: Begun | null = null;

  constructor(gcmKey: GcmKey, isPrivate: boolean) {
    this.gcmKey = gcmKey;
    this.private = isPrivate;
  }

  get inMessage(): boolean {
    return this.begun !== null;
  }

  cancel(): void {
    const { begun } = this;
    this.begun = null;
    if (begun !== null) forget(begun);
  }

  protected checkBetween(): void {
    if (this.begun !== null) throw operationActive();
  }

  /** The message that was begun, checked against the parameter that came with its next part. */
  protected current(parameter: MessageParameter, last: boolean): Begun {
    const { begun } = this;
    if (begun === null) throw operationMissing();
    if (last && tagLengthOf(parameter) !== begun.parameters.tagLength) throw parameterInvalid();
    return begun;
  }

  /** One step of the message that was begun. Whatever goes wrong ends it, and so does the step that is its last. */
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

  constructor(gcmKey: GcmKey, initialValues: InitialValues, isPrivate: boolean) {
    super(gcmKey, isPrivate);
    this.#initialValues = initialValues;
  }

  whole(parameter: MessageParameter, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep> {
    this.checkBetween();
    const tagLength = tagLengthOf(parameter);
    checkIv(parameter);
    if (!fits(out, input.length)) return only(input.length);
    const iv = this.#initialValues.next(parameter);
    const result = this.gcmKey.run('encrypt', gcm(iv, aad, tagLength), input);
    return then(result, (sealed) => this.#split(sealed, iv === parameter.iv ? null : iv, tagLength));
  }

  begin(parameter: MessageParameter, aad: Uint8Array): MessageResult {
    this.checkBetween();
    const tagLength = tagLengthOf(parameter);
    checkIv(parameter);
    const iv = this.#initialValues.next(parameter);
    const parameters = gcm(iv, aad, tagLength);
    const { ref } = this.gcmKey;
    const running = ref === undefined ? null : core.cipherBegin(ref, 'encrypt', parameters);
    this.begun = { parameters, running, parts: new Parts() };
    return { iv: iv === parameter.iv ? null : iv, tag: null };
  }

  next(parameter: MessageParameter, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    return this.step(() => {
      const begun = this.current(parameter, last);
      return begun.running === null
        ? this.#collect(begun, part, out, last)
        : this.#stream(begun.running, begun.parameters.tagLength, part, out, last);
    }, last);
  }

  #stream(running: OperationRef, tagLength: number, part: Uint8Array, out: OutBuffer, last: boolean): MessageStep {
    const most = core.cipherUpdateLength(running, part.length);
    if (!fits(out, most)) return only(most);
    const data = Buffer.alloc(most);
    const written = core.cipherUpdate(running, part, data);
    if (!last) return { data: data.subarray(0, written), result: nothing };
    const tag = Buffer.alloc(tagLength);
    core.cipherFinal(running, tag);
    return { data: data.subarray(0, written), result: { iv: null, tag } };
  }

  #collect({ parameters, parts }: Begun, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    // Nothing comes back before the end, so a query takes nothing in either.
    const length = last ? parts.length + part.length : 0;
    if (!fits(out, length)) return only(length);
    parts.add(part);
    if (!last) return { data: noBytes, result: nothing };
    const result = this.gcmKey.run('encrypt', parameters, parts.view());
    return then(result, (sealed) => this.#split(sealed, null, parameters.tagLength));
  }

  #split(sealed: Uint8Array, iv: Uint8Array | null, tagLength: number): MessageStep {
    const length = sealed.length - tagLength;
    return { data: sealed.subarray(0, length), result: { iv, tag: sealed.subarray(length) } };
  }
}

/** Nothing of a message is given out before its tag is checked: its parts are collected. */
export class DecryptMessages extends Messages implements MessageOperation {
  get key(): KeyRef | undefined {
    return this.gcmKey.ref;
  }

  whole(parameter: MessageParameter, aad: Uint8Array, input: Uint8Array, out: OutBuffer): Later<MessageStep> {
    this.checkBetween();
    checkIv(parameter);
    const parameters = gcm(parameter.iv, aad, tagLengthOf(parameter));
    if (!fits(out, input.length)) return only(input.length);
    return this.#open(parameters, parameter.tag, input);
  }

  begin(parameter: MessageParameter, aad: Uint8Array): MessageResult {
    this.checkBetween();
    checkIv(parameter);
    const parameters = gcm(parameter.iv, aad, tagLengthOf(parameter));
    this.begun = { parameters, running: null, parts: new Parts() };
    return nothing;
  }

  next(parameter: MessageParameter, part: Uint8Array, out: OutBuffer, last: boolean): Later<MessageStep> {
    return this.step(() => {
      const { parameters, parts } = this.current(parameter, last);
      const length = last ? parts.length + part.length : 0;
      if (!fits(out, length)) return only(length);
      parts.add(part);
      return last ? this.#open(parameters, parameter.tag, parts.view()) : { data: noBytes, result: nothing };
    }, last);
  }

  #open(parameters: Gcm, tag: Uint8Array, input: Uint8Array): Later<MessageStep> {
    if (tag.length !== parameters.tagLength) throw parameterInvalid();
    if (input.length + tag.length > maxMessage) {
      throw new CryptokiError(CKR.ENCRYPTED_DATA_LEN_RANGE, 'more data than one message may have');
    }
    const sealed = Buffer.concat([input, tag]);
    return then(this.gcmKey.run('decrypt', parameters, sealed), (plain) => ({
      data: wipeAfterReply(plain),
      result: nothing,
    }));
  }
}
