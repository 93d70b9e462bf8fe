// Which keys have wrapped what is sensitive, so that none of them opens it again in the clear: the
// attack of Clulow (2003) wraps a sensitive key and decrypts what came out; another one unwraps it
// with a template that makes it readable. Attributes do not stop them, because they change, and
// because two objects can hold one key: a copy, or the same wrapped key unwrapped twice. So what
// counts here is the key itself, known by its type, size and check value (for RSA, its modulus),
// and what it has done is remembered as long as the application lives.
//
// Two different keys that look alike by three bytes of check value cost one refusal in sixteen
// million.
import { CKA } from '../../schema/attributes.ts';
import type { ReadonlyAttributes } from '../objects/attribute-blob.ts';
import type { Account } from './user-limits.ts';

/** A key by what it is, not by its object. Null for what never encrypts. */
const identityOf = (attributes: ReadonlyAttributes): string | null => {
  const modulus = attributes.get(CKA.MODULUS);
  if (modulus instanceof Uint8Array) return Buffer.from(modulus).toString('base64');
  const check = attributes.get(CKA.CHECK_VALUE);
  if (!(check instanceof Uint8Array)) return null;
  return `${attributes.get(CKA.VALUE_LEN)} ${Buffer.from(check).toString('hex')}`;
};

/** About what an entry takes in memory in addition to its characters. */
const entryBytes = 64;

const sameBytes = (a: unknown, b: unknown): boolean =>
  a instanceof Uint8Array && b instanceof Uint8Array && Buffer.compare(a, b) === 0;

/**
 * Whether two keys have one identity. Quick, because it is asked of every object of an application
 * at once.
 */
const isSame = (a: ReadonlyAttributes, b: ReadonlyAttributes): boolean =>
  a.has(CKA.MODULUS) || b.has(CKA.MODULUS)
    ? sameBytes(a.get(CKA.MODULUS), b.get(CKA.MODULUS))
    : a.get(CKA.VALUE_LEN) === b.get(CKA.VALUE_LEN) && sameBytes(a.get(CKA.CHECK_VALUE), b.get(CKA.CHECK_VALUE));

export class KeyRoles {
  readonly #wrappers = new Set<string>();
  readonly #abroad = new Set<string>();
  readonly #account: Pick<Account, 'take' | 'give'>;
  #bytes = 0;

  /** `account`: pays for what is remembered. */
  constructor(account: Pick<Account, 'take' | 'give'>) {
    this.#account = account;
  }

  /** Throws CKR_DEVICE_MEMORY when the user may not have more. */
  #remember(where: Set<string>, identity: string): void {
    if (where.has(identity)) return;
    const bytes = entryBytes + identity.length;
    this.#account.take('memory', bytes);
    this.#bytes += bytes;
    where.add(identity);
  }

  /** Nothing is asked of it. */
  end(): void {
    this.#wrappers.clear();
    this.#abroad.clear();
    this.#account.give('memory', this.#bytes);
    this.#bytes = 0;
  }

  /**
   * Remembers that the service has this key too, or can come to have it: there it may decrypt.
   * False, and nothing remembered, when it must stay here because it has wrapped what is sensitive.
   */
  mayGoAbroad(attributes: ReadonlyAttributes): boolean {
    const identity = identityOf(attributes);
    if (identity === null) return true;
    if (this.#wrappers.has(identity)) return false;
    this.#remember(this.#abroad, identity);
    return true;
  }

  /** Whether the service has this key too, or came to have it. */
  isAbroad(attributes: ReadonlyAttributes): boolean {
    if (this.#abroad.size === 0) return false;
    const identity = identityOf(attributes);
    return identity !== null && this.#abroad.has(identity);
  }

  /**
   * Remembers that a key wraps what is sensitive. False, and nothing remembered, when it may not:
   * the service has the same key, one of `objects`, all that there are, holds it and may decrypt,
   * or one of the `decrypting` keys is the same.
   */
  mayWrap(
    wrapping: ReadonlyAttributes,
    objects: Iterable<ReadonlyAttributes>,
    decrypting: Iterable<ReadonlyAttributes>,
  ): boolean {
    const identity = identityOf(wrapping);
    if (identity === null || this.#abroad.has(identity)) return false;
    if (this.#wrappers.has(identity)) return true;
    for (const object of objects) {
      if (object.get(CKA.DECRYPT) === true && isSame(object, wrapping)) return false;
    }
    for (const running of decrypting) if (isSame(running, wrapping)) return false;
    this.#remember(this.#wrappers, identity);
    return true;
  }

  /**
   * Whether a key has wrapped what is sensitive: then it neither decrypts, nor unwraps under a
   * padding, nor into what can be read.
   */
  hasWrapped(attributes: ReadonlyAttributes): boolean {
    if (this.#wrappers.size === 0) return false;
    const identity = identityOf(attributes);
    return identity !== null && this.#wrappers.has(identity);
  }
}
