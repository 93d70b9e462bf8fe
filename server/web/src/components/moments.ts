// Moments as a person fills them in.

/** Local date and time of an input, as RFC 3339 in UTC; absent when it is not a moment. */
export const toUtc = (local: string | undefined): string | undefined => {
  if (local === undefined) return undefined;
  const moment = new Date(local);
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString();
};
