// Collects the parts of a message that must travel to the service in one piece, in memory that is
// wiped.
import { type CipherParameters, core, type RsaEncryptionParameters } from '../../../addon/core.ts';
import { maxEnvelope } from '../../../server/contract/tde.ts';
import { type BytesOutput, LengthOnly, type OutBuffer } from '../../schema/types.ts';
import { dataTooLong } from '../return-values.ts';

/** Most bytes of data in one call: an envelope less its head. */
export const maxMessage = maxEnvelope - 8192;

/** Whether the caller has room for so many bytes. */
export const fits = ({ capacity }: OutBuffer, length: number): boolean => capacity !== null && capacity >= length;

/**
 * The answer to data that is announced and will come to so many bytes: none yet, or their length
 * where there is no room for them.
 */
export const accept = (out: OutBuffer, length: number): BytesOutput => (fits(out, length) ? 0 : new LengthOnly(length));

/**
 * Refuses data that is announced, because it is longer than one message, where it has to travel to
 * the service in one.
 */
export const checkCarried = (length: number): void => {
  if (length > maxMessage) throw dataTooLong();
};

/**
 * What an Init leaves with its operation, in bytes, as far as it is more than an operation takes
 * anyway.
 */
export const inInit = (parameters: CipherParameters | RsaEncryptionParameters): number => {
  const bytes = 'aad' in parameters ? parameters.aad : 'label' in parameters ? parameters.label : undefined;
  return bytes !== undefined && bytes.length > smallInInit ? bytes.length : 0;
};
const smallInInit = 256;

export class Parts {
  #bytes = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(part: Uint8Array): void {
    const wanted = this.#length + part.length;
    if (wanted > maxMessage) throw dataTooLong();
    if (wanted > this.#bytes.length) {
      const larger = Buffer.alloc(Math.min(Math.max(wanted, this.#bytes.length * 2, 1024), maxMessage));
      this.#bytes.copy(larger, 0, 0, this.#length);
      core.wipe(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(part, this.#length);
    this.#length = wanted;
  }

  /** A copy in memory of its own, to be given to the service's door, which wipes it. */
  copy(): Uint8Array<ArrayBuffer> {
    return ownCopy(this.#bytes.subarray(0, this.#length));
  }

  /** What was collected, in place: until the next change. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  wipe(): void {
    if (this.#bytes.length > 0) core.wipe(this.#bytes);
    this.#bytes = Buffer.alloc(0);
    this.#length = 0;
  }
}

/** A copy whose memory can be given to another thread, behind an optional prefix. */
export const ownCopy = (bytes: Uint8Array, prefix: Uint8Array = new Uint8Array(0)): Uint8Array<ArrayBuffer> => {
  if (prefix.length + bytes.length > maxMessage) throw dataTooLong();
  const copy = new Uint8Array(prefix.length + bytes.length);
  copy.set(prefix, 0);
  copy.set(bytes, prefix.length);
  return copy;
};

/**
 * Wipes a result that goes out in this call's reply. The reply is written in the same turn, before
 * anything that was set aside for the next one, so the bytes are wiped as soon as they are not
 * needed.
 */
export const wipeAfterReply = <T extends Uint8Array>(result: T): T => {
  setImmediate(() => core.wipe(result));
  return result;
};
