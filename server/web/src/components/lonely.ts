// Moments of a line that have no neighbour: nothing would be drawn of them, because a line needs two.

/** Their positions. */
export const lonely = (values: readonly (number | null)[]): number[] => {
  const isThere = (at: number): boolean => (values[at] ?? null) !== null;
  return values.flatMap((_, at) => (isThere(at) && !isThere(at - 1) && !isThere(at + 1) ? [at] : []));
};
