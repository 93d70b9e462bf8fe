// The end of a credential ends what is written for it. Who calls is looked up when a request comes,
// and again, at most each second, before a later step that gives or changes something: the next
// piece of a file in either direction, the unit of work of a change, the answer of what reads.

import type { Clock } from '../../base/clock.ts';
import type { RouteRow } from '../contract/api/row.ts';

/** How long a look is believed. */
const lookMs = 1_000;

/** Throws what the caller would be refused with, were the request to come now. */
export type StillAllowed = () => Promise<void>;

/** Signing in has no credential yet. */
export const always: StillAllowed = async () => undefined;

/** `look` asks as for a new request; the caller has been looked up just now. */
export const createStillAllowed = (clock: Pick<Clock, 'monotonic'>, look: () => Promise<unknown>): StillAllowed => {
  let at = clock.monotonic();
  return async () => {
    if (clock.monotonic() - at < lookMs) return;
    await look();
    at = clock.monotonic();
  };
};

/**
 * Whether the answer is withheld when the credential has ended in the meantime. The answer to a
 * change is not: the change was made while the credential was valid, and may itself have ended it.
 */
export const withholdsAnswer = (
  { method, long }: Pick<RouteRow, 'method' | 'long'>,
  query: Readonly<Record<string, unknown>>,
): boolean => method === 'get' || long === 'reads' || query.dryRun === true;

/** The body of a request, as long as its caller may send it. */
export async function* whileAllowed(
  pieces: AsyncIterable<Uint8Array>,
  stillAllowed: StillAllowed,
): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    await stillAllowed();
    yield piece;
  }
}
