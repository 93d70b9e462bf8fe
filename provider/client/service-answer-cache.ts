// What the service has said a moment ago: of keys of the token, that they may be used so, and of objects, what they are. An Init of
// a key that was just used need not ask again, because the operation that follows asks anyway and is refused when the key was
// disabled or destroyed in the meantime; and who has just found an object, or read one of its attributes, need not fetch it again. The answer to a
// search says what the objects found may be used for, so that find, Init and operation are two requests.
// What is remembered lasts a part of a heartbeat's period (three seconds), so that a heartbeat, which may be an Init alone, always asks;
// and it is dropped when an answer of the service has another epoch: then something has changed there.
import type { KeyUsage, TokenObject } from '../../server/fronts/contract/tde.ts';
import type { Answer, RouteName, ServiceRequest } from './service.ts';

/** Uses and objects that are remembered; beyond that everything is forgotten once. */
const mostRemembered = 4096;

/** Routes that succeed only for a key that may be used so. */
const usageOf: Partial<Record<RouteName, KeyUsage>> = {
  encrypt: 'encrypt',
  decrypt: 'decrypt',
  sign: 'sign',
  verify: 'verify',
};

const nameOfUse = (handle: number, usage: KeyUsage): string => `${handle} ${usage}`;

/** Null for requests that say nothing of a use. */
const askedUse = ({ route, handle, head }: ServiceRequest): string | null => {
  const usage = route === 'checkUse' ? (head as { readonly usage: KeyUsage }).usage : usageOf[route];
  return usage === undefined || handle === null ? null : nameOfUse(handle, usage);
};

/** The objects that an answer describes. */
const objectsIn = (route: RouteName, answer: unknown): readonly TokenObject[] => {
  if (route === 'getObject') return [answer as TokenObject];
  return route === 'findObjects' ? (answer as Answer<'findObjects'>).objects : [];
};

export class ServiceAnswerCache {
  readonly #lastMs: number;
  readonly #now: () => number;
  /** Until when; by handle and usage. */
  readonly #uses = new Map<string, number>();
  readonly #objects = new Map<number, { readonly object: TokenObject; readonly until: number }>();
  #epoch = 0;

  /** `lastMs`: how long an answer counts; 0 has everything asked. */
  constructor(lastMs: number, now: () => number) {
    this.#lastMs = lastMs;
    this.#now = now;
  }

  /** The answer to this request, if it was given a moment ago. */
  recall(request: ServiceRequest): Answer<RouteName> | null {
    const { route, handle } = request;
    if (route === 'checkUse') {
      const until = this.#uses.get(askedUse(request) ?? '');
      return until !== undefined && this.#now() < until ? {} : null;
    }
    if (route !== 'getObject' || handle === null) return null;
    const known = this.#objects.get(handle);
    return known !== undefined && this.#now() < known.until ? known.object : null;
  }

  /** The service has answered what was asked, at `sentAt` of this clock or later. */
  answered(request: ServiceRequest, sentAt: number, epoch: number, answer: unknown): void {
    if (epoch > this.#epoch) {
      this.#forget();
      this.#epoch = epoch;
    }
    // An answer that a change has overtaken is no longer valid.
    if (epoch !== this.#epoch || this.#lastMs === 0) return;
    const until = sentAt + this.#lastMs;
    const use = askedUse(request);
    if (use !== null) this.#admitted(use, until);
    for (const object of objectsIn(request.route, answer)) {
      if (this.#objects.size >= mostRemembered) this.#objects.clear();
      this.#objects.set(object.handle, { object, until });
      for (const usage of object.admits ?? []) this.#admitted(nameOfUse(object.handle, usage), until);
    }
  }

  #admitted(use: string, until: number): void {
    if (this.#uses.size >= mostRemembered) this.#uses.clear();
    this.#uses.set(use, until);
  }

  /** It has not, whatever the reason is. */
  failed(): void {
    this.#forget();
  }

  now(): number {
    return this.#now();
  }

  #forget(): void {
    this.#uses.clear();
    this.#objects.clear();
  }
}
