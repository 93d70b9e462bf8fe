// Deadlines by a clock that is not doubted, for operations that are tested without the deadline
// clock.
import type { Clock } from '../../server/base/time.ts';
import type { Deadlines } from '../../server/ports/deadlines.ts';

export const deadlinesBy = (clock: Pick<Clock, 'now'>): Deadlines => ({
  now: () => Promise.resolve(clock.now()),
  latest: () => Promise.resolve(clock.now()),
  state: () => Promise.resolve({ now: clock.now(), clock: clock.now(), doubt: null }),
});
