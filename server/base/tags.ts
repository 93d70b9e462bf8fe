// Tags of keys: plain words, or name=value. Kept sorted, each once, so that two lists of the same
// tags are the same text.

import { ServiceError } from './service-error.ts';

export const mostTags = 20;
/** 1 to 64 lower-case letters (a-z), digits and - . _ : = / */
export const tagPattern = /^[a-z0-9._:=/-]{1,64}$/;

/** Throws ServiceError 'validation' where one is not a tag, or there are too many. */
export const checkTags = (tags: readonly string[]): readonly string[] => {
  const sorted = [...new Set(tags)].toSorted((one, other) => (one < other ? -1 : 1));
  if (sorted.length > mostTags) throw new ServiceError('validation', `a key has ${mostTags} tags at most`);
  if (!sorted.every((tag) => tagPattern.test(tag)))
    throw new ServiceError('validation', 'a tag has 1 to 64 characters: a-z, 0-9 and - . _ : = /');
  return sorted;
};
