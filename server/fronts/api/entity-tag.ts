// Entity tags (RFC 9110 section 8.8.3) of representations, and If-Match (section 13.1.1). The tag
// changes with everything that an administrator can change; uses (`firstUsedAt`, `lastUsedAt`) are
// left out, so that a busy endpoint can still be edited, and so is the state of another resource
// (`keyState`), which no change of this one undoes.

import { createHash } from 'node:crypto';

const notOwn: readonly string[] = ['firstUsedAt', 'lastUsedAt', 'keyState'];

export const entityTag = (representation: unknown): string => {
  const text = JSON.stringify(representation, (name, value: unknown) => (notOwn.includes(name) ? undefined : value));
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
};

/**
 * Whether an If-Match header admits the tag. A proxy that compresses answers marks their tags as
 * weak (W/). The tag is a hash of the representation, whatever its coding, so it is compared
 * without that mark.
 */
export const matches = (ifMatch: string, tag: string): boolean =>
  ifMatch.trim() === '*' || ifMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag);
