// The end of a credential ends what is under way for it. Who calls is looked up when a request
// comes, and again before each later step that gives or changes something: the next piece of a file
// in either direction, the work that follows a body, the answer of what reads. These believe a look
// for a while; the unit of work of a change believes none, and reads the caller itself.

import { callerBelievedMs } from '../../base/caller-belief.ts';
import type { Clock } from '../../base/time.ts';
import type { RouteRow } from '../../contract/api/row.ts';

/**
 * Throws what the caller would be refused with, were the request to come now. `fresh`: decided by
 * what the store has now; else a look of a moment ago is believed.
 */
export type StillAllowed = (how?: 'fresh') => Promise<void>;

/** Signing in has no credential yet. */
export const always: StillAllowed = async () => undefined;

/** `look` asks as for a new request; the caller has been looked up just now. */
export const createStillAllowed = (clock: Pick<Clock, 'monotonic'>, look: StillAllowed): StillAllowed => {
  let at = clock.monotonic();
  return async (how) => {
    if (how === undefined && clock.monotonic() - at < callerBelievedMs) return;
    const asked = clock.monotonic();
    await look(how);
    at = asked;
  };
};

/**
 * Whether the answer is withheld when the credential has ended in the meantime. The answer to a
 * change is not: the change was made while the credential was valid, and may itself have ended it.
 * `isMade`: a unit of work has begun for the request. Without one, a call of any method only reads.
 */
export const withholdsAnswer = (
  { method, long }: Pick<RouteRow, 'method' | 'long'>,
  query: Readonly<Record<string, unknown>>,
  isMade: boolean,
): boolean => !isMade || method === 'get' || long === 'reads' || query.dryRun === true;

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
