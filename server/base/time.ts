// Time as an argument. Every instant inside the server is a number of milliseconds since the Unix
// epoch; fronts turn it into RFC 3339 text.

export interface Clock {
  /** Milliseconds since the Unix epoch. Used only for time stamps; sequences define the order. */
  now(): number;
  /** Milliseconds from an arbitrary start that never goes back. Used for durations and caches. */
  monotonic(): number;
}

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
});

/** 0000-01-01 and the end of 9999: what RFC 3339 can write. */
const [firstMoment, lastMoment] = [-62_167_219_200_000, 253_402_300_799_999];

/**
 * RFC 3339, UTC, milliseconds. A row that was changed from outside may contain a number that is not
 * a time: it is shown as the nearest time.
 */
export const toRfc3339 = (at: number): string =>
  new Date(Math.min(Math.max(Number.isNaN(at) ? 0 : at, firstMoment), lastMoment)).toISOString();
