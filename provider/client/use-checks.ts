// What the service has said a moment ago of keys of the token: that they may be used so. An Init of a key that was just used need
// not ask again, because the operation that follows asks anyway and is refused when the key was disabled or destroyed meanwhile.
// What is remembered lasts a part of a heartbeat's period (three seconds), so that a heartbeat, which may be an Init alone, always asks;
// and it is dropped when an answer of the service bears another epoch: then something has changed there.
import type { KeyUsage } from '../../server/fronts/contract/tde.ts';
import type { RouteName, ServiceRequest } from './service.ts';

/** Keys that are remembered; beyond that everything is forgotten once. */
const mostRemembered = 4096;

/** Routes that succeed only for a key that may be used so. */
const usageOf: Partial<Record<RouteName, KeyUsage>> = {
  encrypt: 'encrypt',
  decrypt: 'decrypt',
  sign: 'sign',
  verify: 'verify',
};

/** Null for requests that say nothing of a use. */
const askedUse = ({ route, handle, head }: ServiceRequest): string | null => {
  const usage = route === 'checkUse' ? (head as { readonly usage: KeyUsage }).usage : usageOf[route];
  return usage === undefined || handle === null ? null : `${handle} ${usage}`;
};

export class UseChecks {
  readonly #lastMs: number;
  readonly #now: () => number;
  /** Until when; by handle and usage. */
  readonly #good = new Map<string, number>();
  #epoch = 0;

  /** `lastMs`: how long an answer counts; 0 has every Init ask. */
  constructor(lastMs: number, now: () => number) {
    this.#lastMs = lastMs;
    this.#now = now;
  }

  /** Whether this request is a question that was answered a moment ago. */
  knows(request: ServiceRequest): boolean {
    if (request.route !== 'checkUse') return false;
    const until = this.#good.get(askedUse(request) ?? '');
    return until !== undefined && this.#now() < until;
  }

  /** The service has done what was asked, at `sentAt` of this clock or later. */
  succeeded(request: ServiceRequest, sentAt: number, epoch: number): void {
    if (epoch > this.#epoch) {
      this.#good.clear();
      this.#epoch = epoch;
    }
    const use = askedUse(request);
    // An answer that was overtaken by a change says nothing any more.
    if (use === null || epoch !== this.#epoch || this.#lastMs === 0) return;
    if (this.#good.size >= mostRemembered) this.#good.clear();
    this.#good.set(use, sentAt + this.#lastMs);
  }

  /** It has not, whatever the reason is. */
  failed(): void {
    this.#good.clear();
  }

  now(): number {
    return this.#now();
  }
}
