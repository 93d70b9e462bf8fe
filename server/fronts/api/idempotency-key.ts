// `Idempotency-Key` on creates: a repeat under the same key gets the first answer and makes nothing
// twice, for a day. What was made is known to all nodes and after a restart
// (operations/shared/answer-once.ts); here, repeats of what this process carries out wait for the
// one answer. Answers that show a secret are not kept: their repeat is told that the first one did
// its work, and where to find what it made.

import { createHash } from 'node:crypto';
import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import type { IdempotencyOperations, KeptAnswer } from '../../operations/shared/answer-once.ts';

export const idempotencyHeader = 'idempotency-key';

const lifetime = 24 * 3_600_000;
const maxEntries = 5000;

interface Entry {
  readonly fingerprint: string;
  readonly at: number;
  readonly answer: Promise<{ readonly kept: KeptAnswer; readonly repeated: boolean }>;
}

export interface Idempotency {
  /** Runs `work` unless the same request did; the same key with another request is 'conflict'. */
  once(
    request: {
      readonly key: string;
      readonly actorId: string;
      readonly requestId: string;
      readonly target: string;
      readonly body: Uint8Array;
    },
    work: () => Promise<KeptAnswer>,
  ): Promise<{ readonly kept: KeptAnswer; readonly repeated: boolean }>;
}

export const createIdempotency = (clock: Clock, everywhere: IdempotencyOperations): Idempotency => {
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
    async once({ key, actorId, requestId, target, body }, work) {
      if (!/^[\x21-\x7e]{1,200}$/.test(key)) {
        throw new ServiceError('validation', 'Idempotency-Key must be 1 to 200 printable characters without spaces');
      }
      // Not by the calendar: a clock that jumps ahead would have a request carried out twice.
      makeRoom(clock.monotonic());
      const id = digest(actorId, key);
      const fingerprint = digest(target, body);
      const known = entries.get(id);
      if (known !== undefined) {
        if (known.fingerprint !== fingerprint) {
          throw new ServiceError('conflict', 'this Idempotency-Key was already used for another request', {
            hint: 'use a new Idempotency-Key for a new request',
          });
        }
        return { kept: (await known.answer).kept, repeated: true };
      }
      const answer = everywhere.once({ id, fingerprint, requestId }, work);
      entries.set(id, { fingerprint, at: clock.monotonic(), answer });
      try {
        return await answer;
      } catch (error) {
        // Nothing was made: the same key may try again.
        entries.delete(id);
        throw error;
      }
    },
  };
};
