// Handles for things that live in the agent: sessions and session objects. A handle is never used
// twice by one process, so a stale one cannot come to mean something else: not by one application,
// and not by the next one of the same process, after a restart of the agent.

/**
 * Handles of session objects start above this; those of token objects, which the service assigns,
 * stay below it.
 */
export const firstSessionObject = 2 ** 31;

/**
 * The first handle of a process' session objects on its connection of this number: each has 2^31 of
 * its own.
 */
export const firstOfConnection = (number: number): number => firstSessionObject * (1 + (number % 2 ** 20));

export class HandleMap<T> {
  readonly #entries = new Map<number, T>();
  #next: number;

  constructor(first: number) {
    this.#next = first;
  }

  get size(): number {
    return this.#entries.size;
  }

  add(make: (handle: number) => T): T {
    const handle = this.#next++;
    const entry = make(handle);
    this.#entries.set(handle, entry);
    return entry;
  }

  /** Puts an entry back under the handle that it had before the agent was restarted. */
  restore(handle: number, entry: T): void {
    this.#entries.set(handle, entry);
    this.#next = Math.max(this.#next, handle + 1);
  }

  get(handle: number): T | undefined {
    return this.#entries.get(handle);
  }

  delete(handle: number): boolean {
    return this.#entries.delete(handle);
  }

  values(): IterableIterator<T> {
    return this.#entries.values();
  }
}
