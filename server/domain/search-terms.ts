// The terms of the search. Text is folded: case, accents and separators between words make no
// difference. A name is found by the beginning of any of its words: "Payroll" in
// `prod-payroll.2026` and in `ProdPayroll`. Each beginning of a word is a term that extends to the
// end of the text. A query finds the terms that begin with it, so an index in the order of terms
// can answer it, and several consecutive words are found in their order. The middle of a word is
// not found.

import type { Permission } from './access.ts';

/** What can be found, in the order in which it is shown; the permission that its list needs. */
export const searchKinds = {
  key: 'keys:read',
  vault: 'vaults:read',
  group: 'applications:read',
  application: 'applications:read',
  endpoint: 'endpoints:read',
  'external-key-store': 'endpoints:read',
  user: 'users:read',
  token: 'tokens:read',
  tenant: 'tenants:read',
  node: 'nodes:read',
  snapshot: 'snapshots:read',
  approval: 'approvals:read',
  request: 'requests:read',
  'audit-actor': 'audit:read',
  'audit-request': 'audit:read',
  'audit-subject': 'audit:read',
} as const satisfies Record<string, Permission>;
export type SearchKind = keyof typeof searchKinds;
export const searchKindNames = Object.keys(searchKinds) as SearchKind[];

/** Where something was found. */
export const searchFields = [
  'name',
  'id',
  'display-name',
  'email',
  'app-id',
  'prefix',
  'tag',
  'access-key-id',
  'custom-key-store-id',
  'request-id',
  'kms-request-id',
  'actor',
  'subject',
] as const;
export type SearchField = (typeof searchFields)[number];

export interface Found {
  readonly kind: SearchKind;
  readonly id: string;
  readonly name: string;
  readonly field: SearchField;
  /** Null: the platform's. */
  readonly tenantId: string | null;
  readonly state: string | null;
}

/**
 * Longest term, in UTF-16 units, and beginnings of words of one text; later words do not start a
 * term.
 */
const longestTerm = 120;
const mostWords = 16;

const isWord = /[\p{L}\p{N}]/u;
const isUpper = /\p{Lu}/u;
const isDigit = /\p{N}/u;

/** The folded text, and where its words begin. */
const foldWithWords = (text: string): { readonly folded: string; readonly starts: readonly number[] } => {
  let folded = '';
  const starts: number[] = [];
  let before: 'gap' | 'upper' | 'digit' | 'other' = 'gap';
  let gap = false;
  for (const character of text.normalize('NFKD').replace(/\p{M}/gu, '')) {
    if (!isWord.test(character)) {
      gap = folded !== '';
      before = 'gap';
      continue;
    }
    const now = isUpper.test(character) ? 'upper' : isDigit.test(character) ? 'digit' : 'other';
    if (gap) folded += ' ';
    gap = false;
    // `OrdersProd`, `orders2026`: a word begins, though nothing stands between.
    if (before === 'gap' || (now === 'upper' && before === 'other') || (now === 'digit' && before !== 'digit'))
      starts.push(folded.length);
    folded += character.toLowerCase();
    before = now;
  }
  return { folded, starts };
};

/** What was asked for as terms have it; empty when there is no letter and no digit in it. */
export const foldQuery = (text: string): string => foldWithWords(text).folded.slice(0, longestTerm);

/** The words of a folded query. */
export const wordsOf = (folded: string): readonly string[] => [
  ...new Set(folded.split(' ').filter((word) => word !== '')),
];

/** The terms by which a text is found. */
export const termsOf = (text: string): readonly string[] => {
  const { folded, starts } = foldWithWords(text);
  return [...new Set(starts.slice(0, mostWords).map((start) => folded.slice(start, start + longestTerm)))];
};

/**
 * The terms by which an identifier is found: from its beginning, and by its last part, which
 * differs between ids that were created together.
 */
export const termsOfId = (id: string): readonly string[] => {
  const [whole = ''] = termsOf(id);
  return [...new Set([whole, whole.slice(whole.lastIndexOf(' ') + 1)])].filter((term) => term !== '');
};

/**
 * All terms that begin with this one are from `from` on and below `below`, in the order of their
 * bytes.
 */
export const rangeOf = (folded: string): { readonly from: string; readonly below: string } => ({
  from: folded,
  below: `${folded}\u{10ffff}`,
});

/** Whether a folded query finds something by these terms: as it stands, or by all of its words. */
export const isFoundBy = (terms: readonly string[], folded: string): boolean =>
  folded !== '' &&
  (terms.some((term) => term.startsWith(folded)) ||
    wordsOf(folded).every((word) => terms.some((term) => term.startsWith(word))));
