// Two values that had to agree and do not, each with the place that it was read from: what a
// finding about the database is made of, so that its report says what was compared with what. A
// finding without one cannot be built.

export interface Difference {
  readonly what: string;
  readonly found: string;
  readonly foundIn: string;
  readonly expected: string;
  readonly expectedIn: string;
}

/** At least one. */
export type Differences = readonly [Difference, ...Difference[]];

/** Undefined: there is none. */
export const differencesOf = (found: readonly Difference[]): Differences | undefined => {
  const [first, ...others] = found;
  return first === undefined ? undefined : [first, ...others];
};

/** In one line. */
export const toText = ({ what, found, foundIn, expected, expectedIn }: Difference): string =>
  `${what}: ${found} in ${foundIn}, ${expected} in ${expectedIn}`;
