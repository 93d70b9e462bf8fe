// HMAC and AES-CMAC (PKCS#11 2.40, sections 5.11 and 5.12) with a session key, in the addon, or
// with a token key, by the service.
import { core, type KeyRef, type MacParameters, type OperationRef } from '../../../addon/core.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../sessions/application.ts';
import type { Later } from '../sessions/later.ts';
import type { Repeatable, SummaryOperation, VerifyOperation } from '../sessions/operation.ts';
import { accept, maxMessage, ownCopy, Parts } from './collected-parts.ts';
import type { MacRow } from './mechanism-row.ts';

const longestMac = 64;

const checkSignature = (computed: Uint8Array, signature: Uint8Array): void => {
  if (!core.timingSafeEqual(computed, signature)) {
    throw new CryptokiError(CKR.SIGNATURE_INVALID, 'the signature is not valid');
  }
};
const checkSignatureLength = (signature: Uint8Array, length: number): void => {
  if (signature.length !== length) {
    throw new CryptokiError(CKR.SIGNATURE_LEN_RANGE, 'the mechanism does not produce signatures of this length');
  }
};

/** A MAC being computed in the addon. */
class LocalMac {
  readonly private: boolean;
  protected readonly length: number;
  protected readonly key: KeyRef;
  protected readonly parameters: MacParameters;
  /** Where a whole MAC is made: the wanted part may be shorter. */
  protected readonly scratch = Buffer.alloc(longestMac);
  #running: OperationRef | null = null;

  constructor(row: MacRow, length: number, key: KeyRef, isPrivate: boolean) {
    this.parameters = row.parameters;
    this.length = length;
    this.key = key;
    this.private = isPrivate;
  }

  get started(): boolean {
    return this.#running !== null;
  }

  update(input: Uint8Array): void {
    this.#running ??= core.macBegin(this.key, this.parameters);
    core.macUpdate(this.#running, input);
  }

  protected compute(input: Uint8Array): Uint8Array {
    core.mac(this.key, this.parameters, input, this.scratch);
    return this.scratch.subarray(0, this.length);
  }

  protected finish(): Uint8Array {
    core.macFinal(this.#running ?? core.macBegin(this.key, this.parameters), this.scratch);
    return this.scratch.subarray(0, this.length);
  }

  cancel(): void {
    if (this.#running !== null) core.operationCancel(this.#running);
    core.wipe(this.scratch);
  }
}

export class LocalSign extends LocalMac implements SummaryOperation {
  get repeatable(): Repeatable {
    return { key: this.key, unit: 1, mac: this.parameters, macLength: this.length };
  }
  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    return this.#fits(out) ? this.#put(this.compute(input), out) : new LengthOnly(this.length);
  }
  announce(_length: number, out: OutBuffer): BytesOutput {
    return accept(out, this.length);
  }
  final(out: OutBuffer): BytesOutput {
    return this.#fits(out) ? this.#put(this.finish(), out) : new LengthOnly(this.length);
  }
  #fits({ capacity }: OutBuffer): boolean {
    return capacity !== null && capacity >= this.length;
  }
  #put(mac: Uint8Array, out: OutBuffer): number {
    out.space.set(mac);
    return mac.length;
  }
}

export class LocalVerify extends LocalMac implements VerifyOperation {
  whole(input: Uint8Array, signature: Uint8Array): void {
    checkSignatureLength(signature, this.length);
    checkSignature(this.compute(input), signature);
  }
  announce(_length: number, signature: Uint8Array): void {
    checkSignatureLength(signature, this.length);
  }
  final(signature: Uint8Array): void {
    checkSignatureLength(signature, this.length);
    checkSignature(this.finish(), signature);
  }
}

/** Data that one request carries in addition to a signature. */
const mostInRequest = maxMessage - 4 - longestMac;

/**
 * A MAC by the service. Data are collected as long as one request carries them; what is longer
 * travels part by part.
 */
class ServiceMac {
  readonly private: boolean;
  started = false;
  protected readonly length: number;
  protected readonly parameters: MacParameters;
  /** Whether less than the whole MAC is wanted. */
  protected readonly cut: boolean;
  readonly #application: Application;
  readonly #handle: number;
  readonly #use: 'sign' | 'verify';
  readonly #parts = new Parts();
  /** The sealed state of the parts that the service has seen; empty while there are none. */
  #state = '';

  constructor(
    use: 'sign' | 'verify',
    application: Application,
    row: MacRow,
    length: number,
    handle: number,
    isPrivate: boolean,
  ) {
    this.#use = use;
    this.#application = application;
    this.length = length;
    this.#handle = handle;
    this.private = isPrivate;
    this.parameters = row.parameters;
    this.cut = length < row.length;
  }

  /** The input is copied before this returns. */
  update(input: Uint8Array): Later<void> {
    this.started = true;
    return this.#add(input);
  }

  /** A part of a message that was announced, or of one that is started. */
  #add(input: Uint8Array): Later<void> {
    if (this.#parts.length + input.length <= mostInRequest) {
      this.#parts.add(input);
      return;
    }
    const collected = this.#parts.copy();
    this.#parts.wipe();
    const own = ownCopy(input);
    return this.#send(collected, own);
  }

  async #send(collected: Uint8Array<ArrayBuffer>, input: Uint8Array<ArrayBuffer>): Promise<void> {
    if (collected.length > 0) await this.#part(collected, false);
    if (input.length <= mostInRequest) {
      this.#parts.add(input);
      core.wipe(input);
    } else {
      await this.#part(input, false);
    }
  }

  async #part(input: Uint8Array<ArrayBuffer>, last: boolean): Promise<Uint8Array> {
    const length = this.#use === 'verify' && this.cut ? { length: this.length } : {};
    const head = { use: this.#use, mac: this.parameters, state: this.#state, last, ...length };
    const { answer, raw } = await this.#application.ask('macPart', this.#handle, head, input);
    this.#state = answer.state;
    return raw;
  }

  /** The end: what the service makes of all data, behind what a verification brings. */
  protected async end(signature: Buffer | null, more: Uint8Array): Promise<Uint8Array> {
    await this.#add(more);
    const data = this.#parts.copy();
    this.#parts.wipe();
    const message = signature === null ? data : ownCopy(data, signature);
    if (signature !== null) core.wipe(data);
    if (this.#state !== '') return this.#part(message, true);
    if (this.#use === 'sign') return (await this.#application.ask('sign', this.#handle, this.parameters, message)).raw;
    const head = this.cut ? { ...this.parameters, length: this.length } : this.parameters;
    return (await this.#application.ask('verify', this.#handle, head, message)).raw;
  }

  get held(): number {
    return this.#parts.length;
  }

  cancel(): void {
    this.#parts.wipe();
  }
}

const noBytes = new Uint8Array(0);

export class ServiceSign extends ServiceMac implements SummaryOperation {
  constructor(application: Application, row: MacRow, length: number, handle: number, isPrivate: boolean) {
    super('sign', application, row, length, handle, isPrivate);
  }
  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.#fits(out) ? this.#run(input) : new LengthOnly(this.length);
  }
  announce(_length: number, out: OutBuffer): BytesOutput {
    return accept(out, this.length);
  }
  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.#fits(out) ? this.#run(noBytes) : new LengthOnly(this.length);
  }
  #fits({ capacity }: OutBuffer): boolean {
    return capacity !== null && capacity >= this.length;
  }
  async #run(input: Uint8Array): Promise<BytesOutput> {
    return (await this.end(null, input)).subarray(0, this.length);
  }
}

export class ServiceVerify extends ServiceMac implements VerifyOperation {
  constructor(application: Application, row: MacRow, length: number, handle: number, isPrivate: boolean) {
    super('verify', application, row, length, handle, isPrivate);
  }
  async whole(input: Uint8Array, signature: Uint8Array): Promise<void> {
    checkSignatureLength(signature, this.length);
    await this.end(prefixed(signature), input);
  }
  announce(_length: number, signature: Uint8Array): void {
    checkSignatureLength(signature, this.length);
  }
  async final(signature: Uint8Array): Promise<void> {
    checkSignatureLength(signature, this.length);
    await this.end(prefixed(signature), noBytes);
  }
}

/** The contract's form: the signature's length (u32) and the signature, before the data. */
const prefixed = (signature: Uint8Array): Buffer => {
  const prefix = Buffer.alloc(4 + signature.length);
  prefix.writeUInt32BE(signature.length);
  prefix.set(signature, 4);
  return prefix;
};
