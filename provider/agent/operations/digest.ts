// Digests (PKCS#11 2.40, section 5.10), all in the addon.
import { core, type Digest, type OperationRef } from '../../../addon/core.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import type { SummaryOperation } from '../sessions/operation.ts';
import { accept } from './collected-parts.ts';

export class DigestOperation implements SummaryOperation {
  readonly private = false;
  readonly #digest: Digest;
  readonly #length: number;
  #running: OperationRef | null = null;

  constructor(digest: Digest, length: number) {
    this.#digest = digest;
    this.#length = length;
  }

  get started(): boolean {
    return this.#running !== null;
  }

  whole(input: Uint8Array, out: OutBuffer): BytesOutput {
    if (out.capacity === null || out.capacity < this.#length) return new LengthOnly(this.#length);
    return core.digest(this.#digest, input, out.space);
  }

  announce(_length: number, out: OutBuffer): BytesOutput {
    return accept(out, this.#length);
  }

  update(input: Uint8Array): void {
    this.#running ??= core.digestBegin(this.#digest);
    core.digestUpdate(this.#running, input);
  }

  final(out: OutBuffer): BytesOutput {
    if (out.capacity === null || out.capacity < this.#length) return new LengthOnly(this.#length);
    return core.digestFinal(this.#running ?? core.digestBegin(this.#digest), out.space);
  }

  cancel(): void {
    if (this.#running !== null) core.operationCancel(this.#running);
  }
}
