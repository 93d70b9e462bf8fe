/** A part of a list: what follows an entry, and at most so many. */
export interface Window {
  readonly after?: string | undefined;
  readonly limit: number;
}
