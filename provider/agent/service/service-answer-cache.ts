// What the service has said a moment ago: of keys of the token, that they may be used so, and of
// objects, what they are. An Init of a key that was just used need not ask again, because the
// operation that follows asks anyway and is refused when the key was disabled or destroyed in the
// meantime; and who has just found an object, or read one of its attributes, need not fetch it
// again. The answer to a search says what the objects found may be used for, so that find, Init and
// operation are two requests. What is remembered counts for a part of a heartbeat's period (three
// seconds), so that a heartbeat, which may be an Init alone, always asks; and it no longer counts
// when an answer of the service has another epoch: then something has changed there.
//
// What no longer counts is still held for a while, because it is probably asked for again: one
// request then proves all of it (`refresh`), so that a heartbeat of hundreds of keys is one
// request. It counts from when that request was sent. What it does not prove is asked for alone.
//
// Values of data objects are held with the version of their object, and count while the object, as
// it is proven now, has that version. They take a bounded part of the agent's memory and are wiped
// when they go.
import { core } from '../../../addon/core.ts';
import {
  type HeldAnswer,
  type HeldObject,
  type KeyUsage,
  mostHeld,
  mostValues,
  type TokenObject,
  type ValueOf,
} from '../../../server/contract/tde.ts';
import type { Answer, RouteName, ServiceRequest } from './service-door.ts';

/** Objects that are remembered; beyond that those go that were asked for longest ago. */
const mostRemembered = 4096;
/** What was not asked for during several heartbeats is not proven with the rest. */
const heldMs = 15_000;
/**
 * Objects that were found and not asked for yet, in one request: a process that goes through a list
 * asks for the next ones.
 */
const mostFound = 256;
/** The fewest objects that are proven with one request. */
const leastRefreshed = 2;
/**
 * Bytes of attributes and values of one configuration, and of one value: what databases keep in
 * data objects has some hundred.
 */
const mostBytes = 8 << 20;
const longestValue = 64 * 1024;

/** Routes that succeed only for a key that may be used so. */
const usageOf: Partial<Record<RouteName, KeyUsage>> = {
  encrypt: 'encrypt',
  decrypt: 'decrypt',
  sign: 'sign',
  verify: 'verify',
};

/** Undefined for requests that say nothing of a use. */
const askedUse = ({ route, head }: ServiceRequest): KeyUsage | undefined =>
  route === 'checkUse' ? (head as { readonly usage: KeyUsage }).usage : usageOf[route];

/** The objects that an answer describes. */
const objectsIn = (route: RouteName, answer: unknown): readonly TokenObject[] => {
  if (route === 'getObject') return [answer as TokenObject];
  return route === 'findObjects' ? (answer as Answer<'findObjects'>).objects : [];
};

/** What is held of one object. `until`: when it stops to count. */
interface Held {
  /** When it was found or asked for last. */
  seenAt: number;
  isAsked: boolean;
  object: TokenObject | null;
  until: number;
  readonly uses: Map<KeyUsage, number>;
  /** Whether the object was proven with others and not asked for since. */
  isUnused: boolean;
}
interface HeldValue {
  readonly version: number;
  readonly value: Uint8Array;
}
export interface Recalled {
  readonly answer: Answer<RouteName>;
  /** Owned by the receiver. */
  readonly raw: Uint8Array;
}

const noBytes = new Uint8Array(0);
const sizeOf = (object: TokenObject | null): number =>
  object === null ? 0 : object.attributes.length + object.label.length;

export class ServiceAnswerCache {
  readonly #lastMs: number;
  readonly #now: () => number;
  /** What is held of each object, by handle; what was asked for longest ago comes first. */
  readonly #held = new Map<number, Held>();
  /** Values of data objects, by handle, in the same order. */
  readonly #values = new Map<number, HeldValue>();
  #bytes = 0;
  /** How many objects are proven with one request: fewer while most of them are not asked for. */
  #mostRefreshed = mostHeld;
  /**
   * How many objects the last such request proved, and how many of them were asked for while it
   * counted.
   */
  #proven = 0;
  #used = 0;
  #epoch = 0;
  /**
   * When the epoch became known: an answer with another one is newer only if it was asked for
   * later.
   */
  #epochAt = 0;

  /** `lastMs`: how long an answer counts; 0 has everything asked. */
  constructor(lastMs: number, now: () => number) {
    this.#lastMs = lastMs;
    this.#now = now;
  }

  /**
   * The answer to this request, if it was given a moment ago. `askedAt`: when the caller asked;
   * what the service was asked at that time or later answers it, however long that took.
   */
  recall(request: ServiceRequest, askedAt = Number.POSITIVE_INFINITY): Recalled | null {
    const { route, handle } = request;
    const held = handle === null ? undefined : this.#held.get(handle);
    if (held === undefined || handle === null) return null;
    const counts = (until: number): boolean => {
      if (this.#now() >= until && until - this.#lastMs < askedAt) return false;
      if (held.isUnused) this.#used += 1;
      held.isUnused = false;
      return true;
    };
    if (route === 'checkUse') {
      this.#asked(handle, held);
      const until = held.uses.get(askedUse(request) as KeyUsage);
      return until !== undefined && counts(until) ? { answer: {}, raw: noBytes } : null;
    }
    if (held.object === null) return null;
    if (route === 'getObject') {
      this.#asked(handle, held);
      return counts(held.until) ? { answer: held.object, raw: noBytes } : null;
    }
    const value = this.#isValueOf(request) && counts(held.until) ? this.#valueOf(handle, held) : undefined;
    if (value === undefined) return null;
    this.#values.delete(handle);
    this.#values.set(handle, value);
    return { answer: {}, raw: new Uint8Array(value.value) };
  }

  #asked(handle: number, held: Held): void {
    held.seenAt = this.#now();
    held.isAsked = true;
    this.#held.delete(handle);
    this.#held.set(handle, held);
  }

  #isValueOf({ route, head }: ServiceRequest): boolean {
    return route === 'readValue' && (head as { readonly recipient?: unknown }).recipient === undefined;
  }

  #valueOf(handle: number, { object }: Held): HeldValue | undefined {
    const value = this.#values.get(handle);
    return value !== undefined && value.version === object?.version ? value : undefined;
  }

  /** Whether this was said once, and can be proven again. */
  isHeld(request: ServiceRequest): boolean {
    const { route, handle } = request;
    const held = handle === null ? undefined : this.#held.get(handle);
    if (held === undefined || this.#lastMs === 0) return false;
    if (route === 'checkUse') return held.uses.has(askedUse(request) as KeyUsage);
    return route === 'getObject' && held.object?.version !== undefined;
  }

  /**
   * What to prove with one request, because this one asks for something that is held and no longer
   * counts: all that is held in the same way, and what will be asked for soonest first. Fewer than
   * two: a request for one object alone says more.
   */
  toRefresh(request: ServiceRequest): readonly HeldObject[] {
    const { handle } = request;
    const held = handle === null ? undefined : this.#held.get(handle);
    if (held === undefined || handle === null || !this.isHeld(request)) return [];
    const now = this.#now();
    const asked: HeldObject[] = [];
    const found: HeldObject[] = [];
    for (const [each, { seenAt, isAsked, object, until, uses }] of this.#held) {
      if (each === handle || seenAt + heldMs < now) continue;
      const stale = isAsked ? [...uses].filter(([, end]) => end <= now).map(([usage]) => usage) : [];
      const version = until <= now ? (object?.version ?? 0) : 0;
      if (stale.length > 0 || version > 0) (isAsked ? asked : found).push({ handle: each, uses: stale, version });
    }
    if (asked.length + found.length === 0) return [];
    if (this.#proven > 0) this.#fitToUse();
    const own = { handle, uses: [...held.uses.keys()], version: held.object?.version ?? 0 };
    return [own, ...asked, ...found.slice(0, mostFound)].slice(0, this.#mostRefreshed);
  }

  /** The service has answered what `toRefresh` named. */
  refreshed(asked: readonly HeldObject[], sentAt: number, epoch: number, answers: readonly HeldAnswer[]): void {
    this.#proven = asked.length;
    if (!this.#isCurrent(epoch, sentAt)) return;
    for (const [at, { handle, uses, version }] of asked.entries()) {
      const held = this.#held.get(handle);
      const answer = answers[at];
      if (held === undefined || answer === undefined) continue;
      held.isUnused = true;
      for (const usage of uses)
        if (answer.uses.includes(usage)) held.uses.set(usage, sentAt + this.#lastMs);
        else held.uses.delete(usage);
      if (version === 0 || held.object?.version !== version) continue;
      if (answer.same) held.until = sentAt + this.#lastMs;
      else this.#setObject(held, null);
    }
  }

  /**
   * An answer that takes longer than it counts proves nothing to the next caller, so that each of
   * them would have everything proven again; and who uses one key has no use for a proof of
   * hundreds.
   */
  #fitToUse(): void {
    if (4 * this.#used <= this.#proven) this.#mostRefreshed = Math.max(leastRefreshed, Math.floor(this.#proven / 4));
    else if (2 * this.#used > this.#proven) this.#mostRefreshed = Math.min(mostHeld, 2 * this.#mostRefreshed);
    this.#proven = 0;
    this.#used = 0;
  }

  /**
   * Handles of data objects whose values are not held, this one's first, as far as it asks for one.
   */
  valuesToRead(request: ServiceRequest): readonly number[] {
    const { handle } = request;
    if (!this.#isValueOf(request) || handle === null || this.#lastMs === 0) return [];
    const now = this.#now();
    const isWanted = (each: number, held: Held): boolean =>
      held.object?.class === 'data' &&
      held.object.version !== undefined &&
      held.seenAt + heldMs >= now &&
      this.#valueOf(each, held) === undefined;
    const own = this.#held.get(handle);
    if (own === undefined || !isWanted(handle, own)) return [];
    const others: number[] = [];
    for (const [each, held] of this.#held) {
      if (others.length === mostValues - 1) break;
      if (each !== handle && isWanted(each, held)) others.push(each);
    }
    return [handle, ...others];
  }

  /** The service has answered with these values; they are copied. */
  valuesRead(values: readonly ValueOf[]): void {
    for (const { handle, version, value } of values) {
      if (version === 0 || value.length > longestValue || !this.#held.has(handle)) continue;
      this.#dropValue(handle);
      this.#values.set(handle, { version, value: new Uint8Array(value) });
      this.#bytes += value.length;
    }
    this.#makeRoom();
  }

  #makeRoom(): void {
    for (const handle of this.#values.keys()) {
      if (this.#bytes <= mostBytes) return;
      this.#dropValue(handle);
    }
    for (const handle of this.#held.keys()) {
      if (this.#bytes <= mostBytes && this.#held.size <= mostRemembered) return;
      this.#drop(handle);
    }
  }

  #setObject(held: Held, object: TokenObject | null): void {
    this.#bytes += sizeOf(object) - sizeOf(held.object);
    held.object = object;
  }

  /** The service has answered what was asked, at `sentAt` of this clock or later. */
  answered(request: ServiceRequest, sentAt: number, epoch: number, answer: unknown): void {
    if (!this.#isCurrent(epoch, sentAt)) return;
    const until = sentAt + this.#lastMs;
    const { route, handle } = request;
    const use = askedUse(request);
    if (use !== undefined && handle !== null) {
      const held = this.#hold(handle);
      held.isAsked = true;
      held.uses.set(use, until);
    }
    for (const object of objectsIn(route, answer)) {
      const held = this.#hold(object.handle);
      held.isAsked ||= route === 'getObject';
      this.#setObject(held, object);
      held.until = until;
      for (const usage of object.admits ?? []) held.uses.set(usage, until);
    }
    this.#makeRoom();
    if (route === 'updateObject' || route === 'destroyObject') this.#drop(handle ?? 0);
  }

  /** Whether the answer says how things are. An answer that a change has overtaken does not. */
  #isCurrent(epoch: number, sentAt: number): boolean {
    if (epoch !== this.#epoch) {
      if (epoch < this.#epoch && sentAt <= this.#epochAt) return false;
      this.#forget();
      this.#epoch = epoch;
      this.#epochAt = this.#now();
    }
    return this.#lastMs > 0;
  }

  #hold(handle: number): Held {
    let held = this.#held.get(handle);
    if (held === undefined) {
      held = { seenAt: this.#now(), isAsked: false, object: null, until: 0, uses: new Map(), isUnused: false };
      this.#held.set(handle, held);
    }
    held.seenAt = this.#now();
    return held;
  }

  /**
   * A request has failed, whatever the reason is: drops what is held of this object; null: of all
   * objects.
   */
  failed(handle: number | null = null): void {
    if (handle === null) this.#forget();
    else this.#drop(handle);
  }

  now(): number {
    return this.#now();
  }

  /** Its last user is gone. */
  close(): void {
    for (const handle of [...this.#held.keys()]) this.#drop(handle);
  }

  /** Nothing counts until it is proven again. */
  #forget(): void {
    for (const held of this.#held.values()) {
      held.until = 0;
      for (const usage of held.uses.keys()) held.uses.set(usage, 0);
    }
  }

  #drop(handle: number): void {
    const held = this.#held.get(handle);
    if (held !== undefined) this.#setObject(held, null);
    this.#held.delete(handle);
    this.#dropValue(handle);
  }

  #dropValue(handle: number): void {
    const value = this.#values.get(handle);
    if (value === undefined) return;
    this.#values.delete(handle);
    this.#bytes -= value.value.length;
    if (value.value.length > 0) core.wipe(value.value);
  }
}
