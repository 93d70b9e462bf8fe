// Time as an argument. Every instant inside the server is a number of milliseconds since the Unix epoch; fronts turn it
// into RFC 3339 text.

export interface Clock {
  /** Milliseconds since the Unix epoch. Used for stamps only: order comes from sequences. */
  now(): number;
  /** Milliseconds from an arbitrary start that never goes back. Used for durations and caches. */
  monotonic(): number;
}

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
});

/** RFC 3339, UTC, milliseconds. */
export const toRfc3339 = (at: number): string => new Date(at).toISOString();
