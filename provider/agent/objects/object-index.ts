// The session objects of one application by the values that applications search for, so that a
// search reads only what it may find and not at everything there is. Which of the candidates match,
// and who may see them, is the searcher's business.
import { CKA } from '../../schema/attributes.ts';
import type { Attribute, AttributeValue } from '../../schema/types.ts';
import type { SessionObject } from './object-view.ts';

/** Names first, kinds last: with a name in the template the set is small already. */
const indexed = [CKA.UNIQUE_ID, CKA.ID, CKA.LABEL, CKA.KEY_TYPE, CKA.CLASS] as const;

/** An object alone needs no set: most names are given once. */
type Entry = SessionObject | Set<SessionObject>;

/** A value as a key of a map; undefined for what is not indexed. */
const keyOf = (value: AttributeValue | null | undefined): string | number | undefined => {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1');
  return typeof value === 'number' ? value : undefined;
};

export class ObjectIndex {
  /** Objects that no search has met yet. Many are made, used and destroyed without one. */
  readonly #fresh = new Set<SessionObject>();
  readonly #entries = new Map(indexed.map((type) => [type as number, new Map<string | number, Entry>()]));

  add(object: SessionObject): void {
    this.#fresh.add(object);
  }

  #enter(object: SessionObject): void {
    for (const [type, entries] of this.#entries) {
      const key = keyOf(object.attributes.get(type));
      if (key === undefined) continue;
      const same = entries.get(key);
      if (same === undefined) entries.set(key, object);
      else if (same instanceof Set) same.add(object);
      else entries.set(key, new Set([same, object]));
    }
  }

  /** Before any of its attributes changes. */
  delete(object: SessionObject): void {
    if (this.#fresh.delete(object)) return;
    for (const [type, entries] of this.#entries) {
      const key = keyOf(object.attributes.get(type));
      if (key === undefined) continue;
      const same = entries.get(key);
      if (same instanceof Set) same.delete(object);
      if (same === object || (same instanceof Set && same.size === 0)) entries.delete(key);
    }
  }

  /** Enters up to `most` objects that no search has met. Answers whether none is left. */
  enterSome(most: number): boolean {
    let entered = 0;
    for (const object of this.#fresh) {
      if (entered++ === most) return false;
      this.#fresh.delete(object);
      this.#enter(object);
    }
    return true;
  }

  /**
   * Objects among which all are that match the template; null when it names no indexed attribute.
   * All objects must be entered.
   */
  candidates(template: readonly Attribute[]): Iterable<SessionObject> | null {
    let fewest: Set<SessionObject> | null = null;
    for (const { type, value } of template) {
      const key = keyOf(value);
      const entries = this.#entries.get(type);
      if (entries === undefined || key === undefined) continue;
      const same = entries.get(key);
      if (same === undefined) return [];
      if (!(same instanceof Set)) return [same];
      if (fewest === null || same.size < fewest.size) fewest = same;
    }
    return fewest;
  }
}
