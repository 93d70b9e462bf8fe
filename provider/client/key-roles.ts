// Which keys have wrapped what is sensitive, so that none of them opens it again in the clear: the attack of Clulow (2003) wraps a
// sensitive key and decrypts what came out; another one unwraps it with a template that makes it readable. Attributes do not
// stop them, because they change, and because two objects can hold one key: a copy, or the same wrapped key unwrapped twice.
// So what counts here is the key itself, known by its type, size and check value (for RSA, its modulus), and what it has done
// is remembered as long as the application lives.
//
// Two different keys that look alike by three bytes of check value cost one refusal in sixteen million.
import { core, type KeyRef } from '../../addon/core.ts';
import { CKA } from '../schema/attributes.ts';
import type { ReadonlyAttributes } from './attribute-blob.ts';

/** A key by what it is, not by its object. Null for what never encrypts. */
const identityOf = (attributes: ReadonlyAttributes): string | null => {
  const modulus = attributes.get(CKA.MODULUS);
  if (modulus instanceof Uint8Array) return Buffer.from(modulus).toString('base64');
  const check = attributes.get(CKA.CHECK_VALUE);
  if (!(check instanceof Uint8Array)) return null;
  return `${attributes.get(CKA.VALUE_LEN)} ${Buffer.from(check).toString('hex')}`;
};

/** The same for a key that is running in an operation, whose object may have changed or gone. */
const isSame = (running: KeyRef, identity: string, modulus: unknown): boolean => {
  const { kind, bits } = core.describe(running);
  if (kind === 'aes') return `${bits / 8} ${core.checkValue(running).toString('hex')}` === identity;
  return modulus instanceof Uint8Array && core.exportPublicKey(running).includes(Buffer.from(modulus));
};

export class KeyRoles {
  readonly #wrappers = new Set<string>();
  readonly #abroad = new Set<string>();

  /**
   * Remembers that the service has this key too, or can come to have it: there it may decrypt. False, and nothing remembered,
   * when it must stay here because it has wrapped what is sensitive.
   */
  mayGoAbroad(attributes: ReadonlyAttributes): boolean {
    const identity = identityOf(attributes);
    if (identity === null) return true;
    if (this.#wrappers.has(identity)) return false;
    this.#abroad.add(identity);
    return true;
  }

  /** Whether the service has this key too, or came to have it. */
  isAbroad(attributes: ReadonlyAttributes): boolean {
    if (this.#abroad.size === 0) return false;
    const identity = identityOf(attributes);
    return identity !== null && this.#abroad.has(identity);
  }

  /**
   * Remembers that a key wraps what is sensitive. False, and nothing remembered, when it may not: the service has the same key,
   * one of `objects`, all that there are, holds it and may decrypt, or one of the `decrypting` keys is the same.
   */
  mayWrap(wrapping: ReadonlyAttributes, objects: Iterable<ReadonlyAttributes>, decrypting: Iterable<KeyRef>): boolean {
    const identity = identityOf(wrapping);
    if (identity === null || this.#abroad.has(identity)) return false;
    if (this.#wrappers.has(identity)) return true;
    for (const object of objects) {
      if (object.get(CKA.DECRYPT) === true && identityOf(object) === identity) return false;
    }
    for (const running of decrypting) if (isSame(running, identity, wrapping.get(CKA.MODULUS))) return false;
    this.#wrappers.add(identity);
    return true;
  }

  /**
   * Whether a key has wrapped what is sensitive: then it neither decrypts, nor unwraps under a padding, nor into what can be
   * read.
   */
  hasWrapped(attributes: ReadonlyAttributes): boolean {
    if (this.#wrappers.size === 0) return false;
    const identity = identityOf(attributes);
    return identity !== null && this.#wrappers.has(identity);
  }
}
