// Takes bearer credentials out of text before it reaches a log: access_guid values (anywhere, also
// inside server_url), API tokens, Authorization headers and SigV4 signatures. It is a second line:
// the first is not to log them.

import { createHash } from 'node:crypto';

const hidden = '***';

/**
 * What stands for an access_guid in an address: equal ones are seen, by the beginning of their
 * SHA-256.
 */
export const maskedGuid = (accessGuid: string): string =>
  hidden + createHash('sha256').update(accessGuid).digest('hex').slice(0, 8);
const masked = String.raw`\*{3}[0-9a-f]{8}(?:[/\s"?]|$)`;

const patterns: readonly (readonly [RegExp, string])[] = [
  [/\bdkeg_[A-Za-z0-9_-]+/g, 'dkeg_***'],
  [/\bdket_[A-Za-z0-9_-]+/g, 'dket_***'],
  [/\bdkem_[A-Za-z0-9_-]+/g, 'dkem_***'],
  [/\bdkei_[A-Za-z0-9_-]+/g, 'dkei_***'],
  [/(__Host-dke-[a-z-]+=)[^;\s"]+/g, '$1***'],
  [/\b(Bearer)\s+[^\s",]+/gi, '$1 ***'],
  [/\b(Signature=)[0-9a-f]+/gi, '$1***'],
  [new RegExp(String.raw`(/tde/v1/)(?!${masked})[^/\s"?]+`, 'g'), '$1***'],
];

/** A URL without what may be a secret: user, path and query. */
export const maskUrl = (text: string): string => {
  const url = URL.parse(text);
  if (url === null || url.host === '') return hidden;
  return `${url.protocol}//${url.host}${url.pathname === '/' && url.search === '' ? '' : `/${hidden}`}`;
};

export const redact = (text: string): string =>
  patterns.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), text);
