// An event that repeats is reported once and then counted: the first of a name immediately, the
// others in summaries that become rarer while it continues. For logs and records that the
// heartbeats of a failing database would otherwise fill. Has no timer: its owner calls `flush`.

export interface RepeatOptions<Item> {
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
  /**
   * How long after the first the first summary comes; a name that is silent for so long is
   * forgotten.
   */
  readonly quietMs: number;
  /** Summaries double their distance up to this. */
  readonly longestMs: number;
  /** Names that are counted; beyond it the oldest is concluded. */
  readonly most: number;
  /** Names of one family; beyond it all that are new count as one. */
  readonly mostOfFamily: number;
  /** `count` more since `sinceMs` milliseconds ago; `last` is the last of them. */
  readonly summary: (last: Item, count: number, sinceMs: number) => void;
}

interface Entry<Item> {
  readonly family: string;
  since: number;
  windowMs: number;
  count: number;
  last: Item;
}

export class Repeats<Item> {
  readonly #options: RepeatOptions<Item>;
  readonly #entries = new Map<string, Entry<Item>>();
  readonly #families = new Map<string, number>();

  constructor(options: RepeatOptions<Item>) {
    this.#options = options;
  }

  /** Whether to report this event: only the first of its name. The others are counted. */
  admit(name: string, item: Item, family = ''): boolean {
    const now = this.#options.now();
    const of = this.#families.get(family) ?? 0;
    const crowded = family !== '' && of >= this.#options.mostOfFamily && !this.#entries.has(name);
    const counted = crowded ? `${family} *` : name;
    const entry = this.#entries.get(counted);
    if (entry !== undefined) {
      entry.count += 1;
      entry.last = item;
      if (now - entry.since >= entry.windowMs) this.#tell(entry, now);
      return false;
    }
    if (this.#entries.size >= this.#options.most)
      for (const [oldest, each] of this.#entries) {
        this.#conclude(oldest, each, now);
        break;
      }
    this.#entries.set(counted, { family, since: now, windowMs: this.#options.quietMs, count: 0, last: item });
    this.#families.set(family, of + 1);
    return true;
  }

  /**
   * Summaries that are due, and names that have become silent; with `all` everything, as at the
   * end.
   */
  flush(all = false): void {
    const now = this.#options.now();
    for (const [name, entry] of this.#entries) {
      if (!all && now - entry.since < (entry.count > 0 ? entry.windowMs : this.#options.quietMs)) continue;
      if (all || entry.count === 0) this.#conclude(name, entry, now);
      else this.#tell(entry, now);
    }
  }

  #tell(entry: Entry<Item>, now: number): void {
    const { count, last, since, windowMs } = entry;
    entry.count = 0;
    entry.since = now;
    entry.windowMs = Math.min(windowMs * 2, this.#options.longestMs);
    if (count > 0) this.#options.summary(last, count, now - since);
  }

  #conclude(name: string, entry: Entry<Item>, now: number): void {
    this.#tell(entry, now);
    this.#entries.delete(name);
    const of = (this.#families.get(entry.family) ?? 1) - 1;
    if (of === 0) this.#families.delete(entry.family);
    else this.#families.set(entry.family, of);
  }
}
