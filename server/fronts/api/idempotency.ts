// `Idempotency-Key` on creates: a repeat under the same key gets the first answer and makes nothing twice. Kept in this
// process for a day; a restart forgets them. Answers that show a secret are not kept: their repeat is told that the first
// one did its work, and where to find what it made.

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { ServiceError } from '../../base/errors.ts';

export const idempotencyHeader = 'idempotency-key';

const lifetime = 24 * 3_600_000;
const maxEntries = 5000;

export interface KeptAnswer {
  readonly location: string;
  /** Null when the answer showed a secret. */
  readonly body: string | null;
}

interface Entry {
  readonly fingerprint: string;
  readonly at: number;
  readonly answer: Promise<KeptAnswer>;
}

export interface Idempotency {
  /** Runs `work` unless the same request did; the same key with another request is 'conflict'. */
  once(
    request: { readonly key: string; readonly actorId: string; readonly target: string; readonly body: Uint8Array },
    work: () => Promise<KeptAnswer>,
  ): Promise<{ readonly kept: KeptAnswer; readonly repeated: boolean }>;
}

export const createIdempotency = (clock: Clock): Idempotency => {
  const entries = new Map<string, Entry>();
  const digest = (...parts: readonly (string | Uint8Array)[]): string => {
    const hash = createHash('sha256');
    // Lengths in front, so that no two lists of parts give the same input.
    for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
    return hash.digest('base64');
  };

  const makeRoom = (now: number): void => {
    for (const [name, entry] of entries) {
      // In the order of their making: the first young one ends the walk.
      if (now < entry.at + lifetime && entries.size < maxEntries) break;
      entries.delete(name);
    }
  };

  return {
    async once({ key, actorId, target, body }, work) {
      if (!/^[\x21-\x7e]{1,200}$/.test(key)) {
        throw new ServiceError('validation', 'Idempotency-Key must be 1 to 200 printable characters without blanks');
      }
      // Not by the calendar: a clock that jumps ahead would have a request carried out twice.
      makeRoom(clock.monotonic());
      const name = digest(actorId, key);
      const fingerprint = digest(target, body);
      const known = entries.get(name);
      if (known !== undefined) {
        if (known.fingerprint !== fingerprint) {
          throw new ServiceError('conflict', 'this Idempotency-Key was used with another request', {
            hint: 'use a new key for a new request',
          });
        }
        return { kept: await known.answer, repeated: true };
      }
      const answer = work();
      entries.set(name, { fingerprint, at: clock.monotonic(), answer });
      try {
        return { kept: await answer, repeated: false };
      } catch (error) {
        // Nothing was made: the same key may try again.
        entries.delete(name);
        throw error;
      }
    },
  };
};
