// Whether what this node has in memory is recent enough to be used. A node that no longer receives
// changes uses it for a limited time: a key that was destroyed on another node must not be used for
// longer.

import { ServiceError } from '../../base/service-error.ts';
import type { Clock } from '../../base/time.ts';
import { mayUseKeys } from '../../domain/change-protocol.ts';
import type { ShownChanges } from './shown-changes.ts';

/** One moment by both clocks: one of them may have stood still. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export interface Contact {
  now(): Moment;
  /** Everything that was committed before this moment is shown. */
  renew(began: Moment): void;
  /** How long ago that was, by the clock that says more. */
  silentMs(): number;
  /** How long ago that was, by the monotonic clock. */
  monotonicMs(): number;
  /** Whether keys may be used. */
  isFresh(): boolean;
  /** 'unavailable', with the reason, when they may not. */
  require(): void;
}

/** `contactMs`: how long keys are used without contact; 0: without a limit. */
export const createContact = (
  clock: Pick<Clock, 'now' | 'monotonic'>,
  contactMs: number,
  changes: Pick<ShownChanges, 'isLost'>,
): Contact => {
  const now = (): Moment => ({ monotonic: clock.monotonic(), wall: clock.now() });
  let last = now();
  const monotonicMs = (): number => clock.monotonic() - last.monotonic;
  const silentMs = (): number => Math.max(monotonicMs(), clock.now() - last.wall);
  const isFresh = (): boolean => mayUseKeys({ lost: changes.isLost() }, { contactMs, silentMs: silentMs() });
  return {
    now,
    renew: (began) => {
      last = began;
    },
    silentMs,
    monotonicMs,
    isFresh,
    require: () => {
      if (isFresh()) return;
      if (changes.isLost())
        throw new ServiceError(
          'unavailable',
          'confirmed changes are missing in the database: this node does not use keys',
          {
            hint: 'run dke quarantine show for what to do',
          },
        );
      throw new ServiceError('unavailable', 'this node has received no changes for too long: it does not use keys', {
        hint: 'check why it does not reach its database; other nodes may still work',
      });
    },
  };
};
