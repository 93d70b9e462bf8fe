// How an answer names the nodes that have not confirmed a change: two headers, with or without a
// body, the same on every path.

import { toRfc3339 } from '../base/time.ts';

/** The names, percent-encoded, between commas. Absent when there are none. */
export const pendingNodesHeader = 'X-Dke-Pending-Nodes';
/**
 * Until when one of them may act on what was before: RFC 3339, or `never` when there is no limit
 * (`contact_seconds = 0`).
 */
export const pendingUntilHeader = 'X-Dke-Pending-Until';

export interface PendingNodes {
  readonly names: readonly string[];
  /** The moment, RFC 3339; null: there is no limit. */
  readonly until: string | null;
}

export const pendingHeaders = (
  names: readonly string[],
  until: number | null,
): readonly (readonly [string, string])[] =>
  names.length === 0
    ? []
    : [
        [pendingNodesHeader, names.map(encodeURIComponent).join(',')],
        [pendingUntilHeader, until === null ? 'never' : toRfc3339(until)],
      ];

/** Reads them from an answer; `header` is given their names in small letters. */
export const readPendingNodes = (header: (name: string) => string | null | undefined): PendingNodes | undefined => {
  const names = header(pendingNodesHeader.toLowerCase()) ?? '';
  if (names === '') return undefined;
  const until = header(pendingUntilHeader.toLowerCase()) ?? 'never';
  return { names: names.split(',').map(nameOf), until: until === 'never' ? null : until };
};

/** What is not encoded properly is shown as it is. */
const nameOf = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
