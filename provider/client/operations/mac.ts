// HMAC and AES-CMAC (PKCS#11 2.40, sections 5.11 and 5.12) with a session key, in the addon, or with a token key, by the
// service.
import { core, type KeyRef, type MacParameters, type OperationRef } from '../../../addon/core.ts';
import type { MacHead } from '../../../server/fronts/contract/tde.ts';
import { CKR } from '../../schema/return-values.ts';
import { type BytesOutput, CryptokiError, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { Application } from '../application.ts';
import type { Repeatable, SummaryOperation, VerifyOperation } from '../session.ts';
import { macHead } from './heads.ts';
import type { MacRow } from './mechanisms.ts';
import { ownCopy, Parts } from './parts.ts';

const longestMac = 64;

const checkSignature = (computed: Uint8Array, signature: Uint8Array): void => {
  if (!core.timingSafeEqual(computed, signature)) {
    throw new CryptokiError(CKR.SIGNATURE_INVALID, 'the signature does not verify');
  }
};
const checkSignatureLength = (signature: Uint8Array, length: number): void => {
  if (signature.length !== length) {
    throw new CryptokiError(CKR.SIGNATURE_LEN_RANGE, 'the signature is not as long as the mechanism makes it');
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
  final(signature: Uint8Array): void {
    checkSignatureLength(signature, this.length);
    checkSignature(this.finish(), signature);
  }
}

/** A MAC by the service: parts are collected, and the message travels in one call. */
class ServiceMac {
  readonly private: boolean;
  started = false;
  protected readonly application: Application;
  protected readonly handle: number;
  protected readonly length: number;
  protected readonly head: MacHead;
  /** Whether less than the whole MAC is wanted. */
  protected readonly cut: boolean;
  protected readonly parts = new Parts();

  constructor(application: Application, row: MacRow, length: number, handle: number, isPrivate: boolean) {
    this.application = application;
    this.length = length;
    this.handle = handle;
    this.private = isPrivate;
    this.head = macHead(row.parameters);
    this.cut = length < row.length;
  }

  update(input: Uint8Array): void {
    this.started = true;
    this.parts.add(input);
  }

  cancel(): void {
    this.parts.wipe();
  }
}

export class ServiceSign extends ServiceMac implements SummaryOperation {
  whole(input: Uint8Array, out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.#fits(out) ? this.#run(ownCopy(input)) : new LengthOnly(this.length);
  }
  final(out: OutBuffer): BytesOutput | Promise<BytesOutput> {
    return this.#fits(out) ? this.#run(this.parts.copy()) : new LengthOnly(this.length);
  }
  #fits({ capacity }: OutBuffer): boolean {
    return capacity !== null && capacity >= this.length;
  }
  async #run(input: Uint8Array<ArrayBuffer>): Promise<BytesOutput> {
    const { raw } = await this.application.ask('sign', this.handle, this.head, input);
    return raw.subarray(0, this.length);
  }
}

export class ServiceVerify extends ServiceMac implements VerifyOperation {
  whole(input: Uint8Array, signature: Uint8Array): Promise<void> {
    checkSignatureLength(signature, this.length);
    return this.#run(ownCopy(input, prefixed(signature)));
  }
  final(signature: Uint8Array): Promise<void> {
    checkSignatureLength(signature, this.length);
    const data = this.parts.copy();
    const message = ownCopy(data, prefixed(signature));
    core.wipe(data);
    return this.#run(message);
  }
  async #run(message: Uint8Array<ArrayBuffer>): Promise<void> {
    const head = this.cut ? { ...this.head, length: this.length } : this.head;
    await this.application.ask('verify', this.handle, head, message);
  }
}

/** The contract's form: the signature's length (u32) and the signature, before the data. */
const prefixed = (signature: Uint8Array): Buffer => {
  const prefix = Buffer.alloc(4 + signature.length);
  prefix.writeUInt32BE(signature.length);
  prefix.set(signature, 4);
  return prefix;
};
