// Points without a neighbour: a line needs two points, so the chart would not show them.

/** Their positions. */
export const lonely = (values: readonly (number | null)[]): number[] => {
  const isThere = (at: number): boolean => (values[at] ?? null) !== null;
  return values.flatMap((_, at) => (isThere(at) && !isThere(at - 1) && !isThere(at + 1) ? [at] : []));
};
